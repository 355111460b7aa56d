//! A dump as tables.

use hprof::{
    BasicType, ClassDump, FileOffset, HeapTag, HeapVisitor, Instance, ObjectArray, PrimitiveArray,
    Record, Root, map_file,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class {
    /// Superclass, loader, signers, protection domain.
    pub(crate) ids: [u64; 4],
    pub(crate) instance_size: u32,
    pub(crate) statics: BTreeSet<(String, u8, Vec<u8>)>,
    pub(crate) fields: Vec<(String, BasicType)>,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Its class, or of an array of a primitive type the number of the type.
    pub(crate) class: u64,
    /// Its contents as they stand in the dump.
    pub(crate) contents: Vec<u8>,
    /// 0 an instance, 1 an array of references, 2 of a primitive type.
    pub(crate) kind: u8,
}

/// A dump.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    names: HashMap<u64, String>,
    /// Names of classes.
    pub(crate) loaded: BTreeMap<u64, String>,
    pub(crate) classes: BTreeMap<u64, Class>,
    pub(crate) objects: BTreeMap<u64, Object>,
    /// Objects, and the references of JNI globals, by kind.
    pub(crate) roots: BTreeMap<HeapTag, BTreeSet<(u64, u64)>>,
    pub(crate) twice: u64,
    /// Stacks that have frames: methods with their lines.
    pub(crate) traces: Vec<Vec<(String, i32)>>,
}

impl Heap {
    pub(crate) fn read(data: &[u8]) -> Heap {
        let mut heap = Heap::default();
        let (mut loads, mut frames, mut traces) = (Vec::new(), HashMap::new(), Vec::new());
        let map = map_file(data, |raw| match raw.decode(hprof::IdSize::Eight) {
            Some(Record::Utf8 { id, bytes }) => {
                heap.names
                    .insert(id.0, hprof::decode_modified_utf8(bytes).to_string());
            }
            Some(Record::LoadClass { class, name, .. }) => loads.push((class.0, name.0)),
            Some(Record::Frame(frame)) => {
                frames.insert(frame.id, (frame.method.0, frame.line));
            }
            Some(Record::Trace { frames, .. }) if !frames.is_empty() => traces.push(frames),
            _ => {}
        });
        let map = map.expect("a dump");
        for trace in traces {
            let frame = |id| {
                let (method, line) = frames[id];
                (heap.name(method), line)
            };
            let trace: Vec<_> = trace.iter().map(frame).collect();
            heap.traces.push(trace);
        }
        heap.traces.sort();
        for (class, name) in loads {
            heap.loaded.insert(class, heap.names[&name].clone());
        }
        map.walk(data, &mut heap);
        heap
    }

    /// The values of an instance with the names of their fields and of the classes that have them.
    pub(crate) fn values(&self, object: &Object) -> BTreeMap<(u64, String), Vec<u8>> {
        let mut values = BTreeMap::new();
        let (mut class, mut at) = (object.class, 0);
        while let Some(one) = self.classes.get(&class) {
            for (name, kind) in &one.fields {
                let end = at + kind.size(8);
                values.insert((class, name.clone()), object.contents[at..end].to_vec());
                at = end;
            }
            class = one.ids[0];
        }
        assert_eq!(at, object.contents.len(), "class {:#x}", object.class);
        values
    }

    /// The objects of a root kind.
    pub(crate) fn of_root(&self, kind: HeapTag) -> BTreeSet<u64> {
        let roots = self.roots.get(&kind).into_iter().flatten();
        roots.map(|(object, _)| *object).collect()
    }

    /// The objects of all roots.
    pub(crate) fn of_roots(&self) -> BTreeSet<u64> {
        self.roots
            .values()
            .flatten()
            .map(|(object, _)| *object)
            .collect()
    }

    /// The name of an object's class; of an array of a primitive type its number.
    pub(crate) fn class_name(&self, object: &Object) -> String {
        match object.kind {
            2 => format!("primitive {}", object.class),
            _ => self.loaded[&object.class].clone(),
        }
    }

    /// Everything that some object or class refers to.
    pub(crate) fn referred(&self) -> BTreeSet<u64> {
        let mut all = BTreeSet::new();
        for object in self.objects.values() {
            match object.kind {
                0 => all.extend(
                    self.values(object)
                        .values()
                        .filter(|v| v.len() == 8)
                        .map(|value| word(value)),
                ),
                1 => all.extend(object.contents.as_chunks::<8>().0.iter().map(|v| word(v))),
                _ => {}
            }
        }
        for class in self.classes.values() {
            all.extend(class.ids);
            let references = class.statics.iter().filter(|(_, kind, _)| *kind == 2);
            all.extend(references.map(|(_, _, value)| word(value)));
        }
        all
    }

    fn add(&mut self, id: u64, object: Object) {
        self.twice += u64::from(self.objects.insert(id, object).is_some());
    }

    fn name(&self, id: u64) -> String {
        self.names.get(&id).cloned().unwrap_or_default()
    }
}

fn word(value: &[u8]) -> u64 {
    u64::from_be_bytes(*value.first_chunk().expect("eight bytes"))
}

impl HeapVisitor for Heap {
    fn root(&mut self, _: FileOffset, root: Root) {
        let of_kind = self.roots.entry(root.kind).or_default();
        of_kind.insert((root.object.0, root.reference.0));
    }

    fn class(&mut self, _: FileOffset, class: &ClassDump<'_>) {
        let ids = [class.super_class, class.loader, class.signers, class.domain];
        let statics = class.statics().map(|(name, value)| {
            // JDK 8 writes this name without brackets.
            let name = self.name(name.0).replace("<init_lock>", "init_lock");
            (name, value.kind as u8, value.bytes.to_vec())
        });
        let mut fields: Vec<_> = class
            .fields()
            .map(|(name, kind)| (self.name(name.0), kind))
            .collect();
        let read = Class {
            ids: ids.map(|id| id.0),
            instance_size: class.instance_size,
            statics: statics.collect(),
            fields: std::mem::take(&mut fields),
        };
        self.twice += u64::from(self.classes.insert(class.id.0, read).is_some());
    }

    fn instance(&mut self, _: FileOffset, object: Instance<'_>) {
        let (class, contents) = (object.class.0, object.fields.to_vec());
        self.add(
            object.id.0,
            Object {
                class,
                contents,
                kind: 0,
            },
        );
    }

    fn object_array(&mut self, _: FileOffset, array: ObjectArray<'_>) {
        let (class, contents) = (array.class.0, array.elements.to_vec());
        self.add(
            array.id.0,
            Object {
                class,
                contents,
                kind: 1,
            },
        );
    }

    fn primitive_array(&mut self, _: FileOffset, array: PrimitiveArray<'_>) {
        let (class, contents) = (array.element as u64, array.data.to_vec());
        self.add(
            array.id.0,
            Object {
                class,
                contents,
                kind: 2,
            },
        );
    }
}
