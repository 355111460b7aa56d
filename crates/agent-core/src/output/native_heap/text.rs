//! The text form of a dump that the VM wrote. It contains the size of each object, which the VM's file does not have,
//! so a first pass computes the sizes from the distances between adjacent objects.

use super::super::text::TextOutput;
use super::survey::{Survey, read_segments};
use super::{Source, Threads, ids_of, primitive_classes};
use crate::ids::{thread_serial, trace_serial};
use crate::mutf8::encode;
use crate::output::Context;
use hprof::{
    BasicType, FileOffset, HeapTag, HeapVisitor, IdSize, Instance, ObjectArray, ObjectId,
    PrimitiveArray, Root, SubRecord, read_sub_record, readable_class_name,
};
use hprof_text::{HeapArray, HeapClass, HeapObject, Root as TextRoot, RootKind, TextRecord};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmpi::{ClassId, HeapSummary, ThreadId, TraceId};

/// Writes the dump as a section of text. Returns a note about objects with incomplete data.
pub(super) fn write(
    out: &mut TextOutput,
    context: &mut Context<'_>,
    summary: HeapSummary,
    source: &Source<'_>,
) -> Option<String> {
    let survey = Survey::of(source);
    let numbers: FxHashMap<u64, ClassId> = source.dump.classes.iter().copied().collect();
    out.put(&TextRecord::HeapBegin {
        objects: summary.live_objects,
        bytes: summary.live_bytes,
        date: context.date.as_bytes(),
    });
    let mut text = Text {
        ids: ids_of(context, out.ids, source.dump),
        primitive: primitive_classes(source.top, &numbers),
        join: super::Join::new(&source.dump.objects),
        threads: Threads::of(source.dump),
        traces: stacks(context),
        classes: FxHashMap::default(),
        references: 0,
        left_out: 0,
        objects: 0,
        out,
        source,
        survey: &survey,
        numbers,
    };
    text.roots();
    text.left_out += read_segments(source, &mut text);
    text.class_records();
    let is_short = text.join.joined < source.dump.objects.len() as u64 || text.left_out > 0;
    let note = super::summary(&text.join, text.objects, text.left_out, source.dump);
    out.put(&TextRecord::HeapEnd);
    (source.dump.moved > 0 || is_short).then_some(note)
}

/// The stack of each thread, if the file has it.
fn stacks(context: &Context<'_>) -> FxHashMap<ThreadId, TraceId> {
    let known = context.catalog.trace_ids();
    let stacks = context.vm.all_stacks().unwrap_or_default();
    let stacks = stacks.into_iter().map(|stack| (stack.thread, stack.trace));
    stacks
        .filter(|(_, trace)| known.binary_search(trace).is_ok())
        .collect()
}

/// A field: its width, and its name if it is a reference.
struct Field {
    width: usize,
    name: Option<Box<[u8]>>,
}

/// The data that is needed to write every instance of a class.
struct Shape {
    class: ClassId,
    name: Arc<[u8]>,
    size: u64,
    fields: Box<[Field]>,
}

struct Text<'a, 's> {
    out: &'a mut TextOutput,
    source: &'s Source<'s>,
    survey: &'s Survey,
    ids: super::Ids,
    join: super::Join<'s>,
    threads: Threads,
    traces: FxHashMap<ThreadId, TraceId>,
    numbers: FxHashMap<u64, ClassId>,
    primitive: [ClassId; 12],
    classes: FxHashMap<u64, Arc<Shape>>,
    references: u64,
    objects: u64,
    left_out: u64,
}

impl Text<'_, '_> {
    fn class_name(&self, class: u64) -> Vec<u8> {
        let name = self.source.top.classes.get(&class).copied();
        let name = self.source.top.name(ObjectId(name.unwrap_or_default()));
        encode(&readable_class_name(&name)).into_owned()
    }

    fn field_name(&self, name: ObjectId) -> Vec<u8> {
        encode(&self.source.top.name(name)).into_owned()
    }

    fn roots(&mut self) {
        // The owner of roots whose thread is not known.
        let no_thread = RootKind::Thread {
            thread: thread_serial(ThreadId::NONE).0,
            trace: trace_serial(TraceId::EMPTY).0,
        };
        self.out.put(&TextRecord::Root(TextRoot {
            object: 0,
            kind: no_thread,
        }));
        for root in &self.survey.roots {
            self.root(root);
        }
    }

    fn root(&mut self, root: &Root) {
        let object = root.object.0;
        let thread = self.threads.of_root(root);
        let is_class = root.kind == HeapTag::RootStickyClass;
        let is_missing = is_class && !self.survey.classes.contains_key(&object);
        let is_local_thread = root.kind == HeapTag::RootJniLocal && self.threads.is_thread(object);
        if is_missing || is_local_thread || self.ids.is_own(object) {
            return;
        }
        let serial = thread_serial(thread).0;
        let frame = root.frame.cast_signed();
        let name;
        let kind = match root.kind {
            HeapTag::RootJniGlobal => {
                self.references += 1;
                RootKind::JniGlobal {
                    reference: self.references,
                    trace: trace_serial(TraceId::EMPTY).0,
                }
            }
            HeapTag::RootJniLocal => RootKind::JniLocal {
                thread: serial,
                frame,
            },
            HeapTag::RootJavaFrame => RootKind::JavaStack {
                thread: serial,
                frame,
            },
            HeapTag::RootNativeStack => RootKind::NativeStack { thread: serial },
            HeapTag::RootThreadBlock => RootKind::ThreadBlock { thread: serial },
            HeapTag::RootMonitorUsed => RootKind::BusyMonitor,
            HeapTag::RootStickyClass => {
                name = self.class_name(object);
                RootKind::SystemClass { name: &name }
            }
            HeapTag::RootThreadObject => RootKind::Thread {
                thread: serial,
                trace: trace_serial(self.traces.get(&thread).copied().unwrap_or_default()).0,
            },
            _ => RootKind::Unknown,
        };
        let object = self.ids.id(object);
        self.out.put(&TextRecord::Root(TextRoot { object, kind }));
    }

    fn shape(&mut self, class: u64) -> Option<Arc<Shape>> {
        if let Some(shape) = self.classes.get(&class) {
            return Some(Arc::clone(shape));
        }
        let fields = self.survey.fields(class)?.into_iter().map(|(name, kind)| {
            let is_reference = kind == BasicType::Object;
            let name = is_reference.then(|| self.field_name(name).into_boxed_slice());
            Field {
                width: kind.size(8),
                name,
            }
        });
        let shape = Arc::new(Shape {
            class: self.numbers.get(&class).copied().unwrap_or_default(),
            name: self.class_name(class).into(),
            size: self.survey.size(class),
            fields: fields.collect(),
        });
        self.classes.insert(class, Arc::clone(&shape));
        Some(shape)
    }

    /// All classes, after the objects.
    fn class_records(&mut self) {
        let data = self.source.data;
        for (at, end) in &self.survey.class_records {
            let read = read_sub_record(data, IdSize::Eight, *at, *end);
            let Ok((SubRecord::Class(class), _)) = read else {
                continue;
            };
            if self.ids.is_own(class.id.0) {
                continue;
            }
            let statics = class.statics().filter_map(|(name, value)| {
                let target = value.as_id().filter(|id| id.0 != 0)?;
                Some((self.field_name(name), target.0))
            });
            let statics: Vec<(Vec<u8>, u64)> = statics.collect();
            let statics = statics
                .iter()
                .map(|(name, target)| (&name[..], self.ids.id(*target)));
            let record = HeapClass {
                statics: statics.collect(),
                id: self.ids.id(class.id.0),
                name: &self.class_name(class.id.0),
                trace: trace_serial(TraceId::EMPTY).0,
                superclass: self.ids.id(class.super_class.0),
                loader: self.ids.id(class.loader.0),
                signers: self.ids.id(class.signers.0),
                domain: self.ids.id(class.domain.0),
                constants: Vec::new(),
            };
            self.out.put(&TextRecord::Class(record));
        }
    }
}

impl HeapVisitor for Text<'_, '_> {
    fn instance(&mut self, _: FileOffset, instance: Instance<'_>) {
        let Some(shape) = self.shape(instance.class.0) else {
            self.left_out += 1;
            return;
        };
        if self.ids.is_own(instance.class.0) {
            self.ids.add_own(instance.id.0);
        }
        if self.ids.is_own(instance.id.0) {
            return;
        }
        let mut rest = instance.fields;
        let mut fields = Vec::new();
        for Field { width, name } in &shape.fields {
            let Some((value, tail)) = rest.split_at_checked(*width) else {
                break;
            };
            rest = tail;
            if let (Some(name), Ok(word)) = (name, value.try_into()) {
                let target = self.ids.id(u64::from_be_bytes(word));
                if target != 0 {
                    fields.push((&name[..], target));
                }
            }
        }
        self.objects += 1;
        let record = HeapObject {
            id: self.ids.id(instance.id.0),
            size: shape.size,
            trace: self.join.serial(instance.id.0, shape.class),
            class: &shape.name,
            class_id: self.ids.id(instance.class.0),
            fields,
        };
        self.out.put(&TextRecord::Object(record));
    }

    fn object_array(&mut self, _: FileOffset, array: ObjectArray<'_>) {
        if self.ids.is_own(array.id.0) {
            return;
        }
        let number = self.numbers.get(&array.class.0).copied();
        let (elements, _) = array.elements.as_chunks::<8>();
        let elements = elements.iter().map(|element| u64::from_be_bytes(*element));
        let elements = elements.enumerate().filter(|(_, target)| *target != 0);
        let elements = elements.map(|(at, target)| (at as u64, self.ids.id(target)));
        let record = HeapArray {
            elements: elements.filter(|(_, target)| *target != 0).collect(),
            id: self.ids.id(array.id.0),
            size: self.survey.array_size(u64::from(array.len)),
            trace: self.join.serial(array.id.0, number.unwrap_or_default()),
            length: u64::from(array.len),
            class: &self.class_name(array.class.0),
            class_id: Some(self.ids.id(array.class.0)),
        };
        self.objects += 1;
        self.out.put(&TextRecord::Array(record));
    }

    fn primitive_array(&mut self, _: FileOffset, array: PrimitiveArray<'_>) {
        if self.ids.is_own(array.id.0) {
            return;
        }
        let class = self.primitive.get(array.element as usize).copied();
        let record = HeapArray {
            id: self.ids.id(array.id.0),
            // The original shows the bytes of the elements here, not of the object.
            size: array.data.len() as u64,
            trace: self.join.serial(array.id.0, class.unwrap_or_default()),
            length: u64::from(array.len),
            class: array_name(array.element),
            class_id: None,
            elements: Vec::new(),
        };
        self.objects += 1;
        self.out.put(&TextRecord::Array(record));
    }
}

fn array_name(element: BasicType) -> &'static [u8] {
    match element {
        BasicType::Boolean => b"boolean[]",
        BasicType::Char => b"char[]",
        BasicType::Float => b"float[]",
        BasicType::Double => b"double[]",
        BasicType::Byte => b"byte[]",
        BasicType::Short => b"short[]",
        BasicType::Int => b"int[]",
        BasicType::Long => b"long[]",
        BasicType::Object => b"java.lang.Object[]",
    }
}
