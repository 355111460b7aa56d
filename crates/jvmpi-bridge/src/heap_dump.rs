//! HEAP_DUMP at its three levels, and OBJECT_DUMP.
//!
//! One walk from the roots. The VM reports all that one object holds before it goes
//! on to the next, so one object is gathered at a time and written when the next
//! begins; classes, whose parts may come in between, are written at the end.

use jvmti::{Env, HeapWalk, Jni, Live, Primitive, Reference, Walk};
use rustc_hash::FxHashMap;
use vm_hotspot::field_layout::{Layout, Layouts, zero};
use vmpi::dump::heap::{encode, encode_ids};
use vmpi::dump::{
    ClassDump, HeapRecord, IdLayout, IdRecord, RootKind, basic_type, element_bytes, field_bytes,
};
use vmpi::{BasicType, ClassId, DumpLevel, EnvId, ObjectHandle, RefId, Value};

use crate::bridge::Bridge;
use crate::classes::ARRAY_OF_OBJECTS;
use crate::monitor_dump::Stacks;
use crate::objects::{Objects, Record, narrow};
use vmpi::c_interface::layout::{HeapDump, ObjectDump, ObjectId, Payload, REQUESTED, event};

/// The number under which [`Layouts`] know a class: its id without the step.
fn number(id: ObjectId) -> ClassId {
    ClassId((id / 8) as u32)
}

fn handle(id: ObjectId) -> ObjectHandle {
    ObjectHandle(id as u64)
}

fn handle_of(class: ClassId) -> ObjectHandle {
    handle(class.0 as ObjectId * 8)
}

/// What a class record needs beside its fields.
#[derive(Default)]
struct ClassParts {
    loader: ObjectId,
    signers: ObjectId,
    domain: ObjectId,
    statics: FxHashMap<usize, Value>,
    instance_size: i32,
}

/// The object being gathered.
enum Current {
    Nothing,
    Instance(ObjectId, ClassId, Vec<Value>),
    Array(ObjectId, ObjectId, Vec<ObjectId>),
}

/// A walk under way.
struct Gather<'a> {
    objects: &'a Objects,
    shapes: FxHashMap<ObjectId, (i32, ObjectId)>,
    layouts: Layouts,
    /// Env of each thread, by the id of its object.
    threads: FxHashMap<ObjectId, usize>,
    globals: FxHashMap<ObjectId, usize>,
    level: DumpLevel,
    /// The one object that is wanted.
    only: Option<ObjectId>,
    /// Whom the walk has met, by id without the step.
    met: Vec<u64>,
    classes: FxHashMap<u32, ClassParts>,
    /// Class and length (-1 if no array) of what was met and not gathered yet.
    kinds: FxHashMap<ObjectId, (ObjectId, i32)>,
    current: Current,
    at: ObjectId,
    /// Records of level 0.
    ids: Vec<IdRecord>,
    out: Vec<u8>,
}

impl Gather<'_> {
    /// The id of what a walk meets; given if it has none.
    fn id(&mut self, reference: &mut Reference<'_>) -> ObjectId {
        let class = reference.class_tag as ObjectId;
        if *reference.tag == 0 {
            let (kind, class) = self.shapes.get(&class).copied().unwrap_or((0, class));
            let record = Record {
                class,
                kind,
                size: narrow(reference.size),
            };
            *reference.tag = self.objects.add(record) as i64;
        }
        let id = *reference.tag as ObjectId;
        if self.level > DumpLevel::Ids && self.only.is_none() && self.meet(id) {
            self.kinds.insert(id, (class, reference.length));
            if reference.length < 0 {
                let parts = self.classes.entry(number(class).0).or_default();
                parts.instance_size = narrow(reference.size);
            }
        }
        id
    }

    /// Whether the walk meets an object for the first time.
    fn meet(&mut self, id: ObjectId) -> bool {
        let (word, bit) = (id / 8 / 64, id / 8 % 64);
        if self.met.len() <= word {
            self.met.resize(word + 1, 0);
        }
        let is_new = self.met[word] >> bit & 1 == 0;
        self.met[word] |= 1 << bit;
        is_new
    }

    fn is_class(&self, id: ObjectId) -> bool {
        self.shapes.contains_key(&id)
    }

    fn layout(&self, class: ClassId) -> Option<&Layout> {
        self.layouts.0.get(&class.0)
    }

    /// Level 0: type and id of each object, once.
    fn list(&mut self, id: ObjectId) {
        if self.meet(id) {
            let kind = self.objects.get(id).map_or(0, |record| record.kind);
            self.ids.push(IdRecord {
                object: handle(id),
                array: basic_type(kind as u8),
            });
        }
    }

    fn put(&mut self, record: &HeapRecord) {
        encode(&mut self.out, record, self.level, IdLayout::NATIVE);
    }

    /// Writes what was gathered and begins with `id`.
    fn turn_to(&mut self, id: ObjectId) {
        if self.at == id {
            return;
        }
        self.finish();
        self.at = id;
        if self.is_class(id) || self.only.is_some_and(|only| only != id) {
            return;
        }
        let Some((class, length)) = self.kinds.remove(&id) else {
            return;
        };
        self.current = match usize::try_from(length) {
            Ok(length) => {
                let element = self.shapes.get(&class).map_or(0, |shape| shape.1);
                Current::Array(id, element, vec![0; length])
            }
            Err(_) => {
                let zeros = self
                    .layout(number(class))
                    .map(|layout| layout.zeros.clone());
                Current::Instance(id, number(class), zeros.unwrap_or_default())
            }
        };
    }

    fn finish(&mut self) {
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => {}
            Current::Instance(id, class, values) => {
                let references_only = self.level != DumpLevel::Values;
                self.put(&HeapRecord::Instance {
                    object: handle(id),
                    class: handle_of(class),
                    fields: field_bytes(&values, references_only, IdLayout::NATIVE),
                });
            }
            Current::Array(id, element, elements) => self.put(&HeapRecord::ObjectArray {
                object: handle(id),
                element_class: handle(element),
                elements: elements.into_iter().map(handle).collect(),
            }),
        }
    }

    fn root(&mut self, id: ObjectId, reference: &Reference<'_>) {
        let place = reference.stack.map(|(thread, _, depth)| {
            let env = self.threads.get(&(thread as ObjectId)).copied();
            (env.unwrap_or(0), depth)
        });
        let (env, depth) = place.unwrap_or((0, -1));
        let env = EnvId(env as u64);
        let why = match reference.kind {
            21 => RootKind::JniGlobal(RefId(self.globals.get(&id).copied().unwrap_or(0) as u64)),
            22 => RootKind::StickyClass,
            23 => RootKind::MonitorUsed,
            24 => RootKind::JavaFrame(env, depth),
            25 => RootKind::JniLocal(env, depth),
            26 => {
                let env = self.threads.get(&id).copied().unwrap_or(0);
                RootKind::ThreadBlock(EnvId(env as u64))
            }
            _ => RootKind::Unknown,
        };
        let object = handle(id);
        self.put(&HeapRecord::Root { object, why });
    }

    /// What a class holds.
    fn held_by_class(&mut self, class: ObjectId, to: ObjectId, reference: &Reference<'_>) {
        let class = number(class);
        let place = match reference.kind {
            8 => self
                .layout(class)
                .and_then(|layout| layout.statics.get(&reference.index).copied()),
            _ => None,
        };
        let parts = self.classes.entry(class.0).or_default();
        match (reference.kind, place) {
            (4, _) => parts.loader = to,
            (5, _) => parts.signers = to,
            (6, _) => parts.domain = to,
            (8, Some(place)) => {
                let value = Value::Object(ObjectHandle(to as u64));
                parts.statics.insert(place, value);
            }
            _ => {}
        }
    }

    /// Puts a value of an instance in its place.
    fn field(&mut self, index: i32, value: Value) {
        if let Current::Instance(_, class, values) = &mut self.current {
            let layout = self.layouts.0.get(&class.0);
            let place = layout.and_then(|layout| layout.instance.get(&index));
            if let Some(slot) = place.and_then(|place| values.get_mut(*place)) {
                *slot = value;
            }
        }
    }

    /// One class record.
    fn class(&mut self, class: u32) {
        let nothing = Layout::default();
        let layout = self.layouts.0.get(&class).unwrap_or(&nothing);
        let parts = self.classes.remove(&class).unwrap_or_default();
        let mut statics = Vec::new();
        for (place, field) in layout.declared.iter().enumerate() {
            if field.is_static {
                let value = parts.statics.get(&place).copied();
                statics.push(value.unwrap_or_else(|| zero(&field.descriptor)));
            }
        }
        let record = HeapRecord::Class(ClassDump {
            class: handle_of(ClassId(class)),
            superclass: handle_of(layout.superclass),
            loader: handle(parts.loader),
            signers: handle(parts.signers),
            protection_domain: handle(parts.domain),
            instance_size: parts.instance_size.cast_unsigned(),
            interfaces: layout.interfaces.iter().copied().map(handle_of).collect(),
            // The constant pool holds no objects that are not found elsewhere.
            constants: Vec::new(),
            statics,
        });
        self.put(&record);
    }
}

impl HeapWalk for Gather<'_> {
    fn reference(&mut self, mut reference: Reference<'_>) -> Walk {
        let to = self.id(&mut reference);
        if self.level == DumpLevel::Ids {
            self.list(to);
            return Walk::On;
        }
        match reference.referrer.map(|referrer| referrer as ObjectId) {
            None if self.only.is_none() => self.root(to, &reference),
            None => {}
            Some(0) => {}
            Some(referrer) => {
                self.turn_to(referrer);
                if self.is_class(referrer) {
                    self.held_by_class(referrer, to, &reference);
                } else if reference.kind == 2 {
                    self.field(reference.index, Value::Object(ObjectHandle(to as u64)));
                } else if let (Current::Array(_, _, elements), 3) =
                    (&mut self.current, reference.kind)
                {
                    let index = usize::try_from(reference.index).ok();
                    if let Some(element) = index.and_then(|index| elements.get_mut(index)) {
                        *element = to;
                    }
                }
            }
        }
        if self.only.is_none_or(|only| only == to) {
            Walk::On
        } else {
            Walk::Around
        }
    }

    fn primitive(&mut self, _class_tag: i64, tag: i64, primitive: Primitive) -> Walk {
        if self.level < DumpLevel::Values {
            return Walk::On;
        }
        let id = tag as ObjectId;
        self.turn_to(id);
        let value = value_of(primitive);
        if primitive.is_static && self.is_class(id) {
            let layout = self.layout(number(id));
            let place = layout.and_then(|layout| layout.statics.get(&primitive.index).copied());
            if let Some(place) = place {
                let parts = self.classes.entry(number(id).0).or_default();
                parts.statics.insert(place, value);
            }
        } else {
            self.field(primitive.index, value);
        }
        Walk::On
    }

    fn array(
        &mut self,
        _class: i64,
        _size: i64,
        tag: i64,
        kind: u8,
        len: i32,
        bytes: &[u8],
    ) -> Walk {
        let id = tag as ObjectId;
        if self.level == DumpLevel::Ids || self.only.is_some_and(|only| only != id) {
            return Walk::On;
        }
        if self.at == id {
            // The reference to its class came first and made it look like an array
            // of references.
            self.current = Current::Nothing;
        }
        self.finish();
        self.at = 0;
        self.kinds.remove(&id);
        let descriptor = [kind];
        let element = BasicType::from_descriptor(std::str::from_utf8(&descriptor).unwrap_or(""));
        if let Some((element, width)) = element.and_then(|e| Some((e, e.width()?))) {
            let full = self.level == DumpLevel::Values;
            self.put(&HeapRecord::PrimitiveArray {
                object: handle(id),
                element,
                len: len.cast_unsigned(),
                data: element_bytes(if full { bytes } else { &[] }, width),
            });
        }
        Walk::On
    }
}

fn value_of(primitive: Primitive) -> Value {
    let bits = primitive.bits;
    match primitive.kind {
        b'Z' => Value::Boolean(bits as u8 != 0),
        b'B' => Value::Byte(bits as i8),
        b'C' => Value::Char(bits as u16),
        b'S' => Value::Short(bits as i16),
        b'I' => Value::Int(bits as i32),
        b'F' => Value::Float(f32::from_bits(bits as u32)),
        b'D' => Value::Double(f64::from_bits(bits)),
        _ => Value::Long(bits.cast_signed()),
    }
}

impl Bridge {
    /// Everything a walk needs to know beforehand.
    fn gather(
        &self,
        env: Env<Live>,
        jni: Jni,
        level: DumpLevel,
        stacks: Option<&Stacks>,
    ) -> Option<Gather<'_>> {
        self.name_all_classes(env, jni);
        let name = |mirror| number(self.name_class(env, jni, mirror));
        let mut layouts = Layouts(FxHashMap::default());
        if level > DumpLevel::Ids {
            let bare = self.complete_classes(env, jni);
            layouts = Layouts::read(env, jni, name).ok()?;
            for id in bare {
                // The agent knows of no fields, even if the VM does by now.
                if let Some(layout) = layouts.0.get_mut(&number(id).0) {
                    (layout.declared, layout.interfaces) = (Vec::new(), Vec::new());
                    layout.statics.clear();
                }
            }
        }
        let envs = stacks.into_iter().flat_map(Stacks::envs);
        let threads = envs
            .map(|(thread, raw)| (self.id_of(env, jni, thread), raw))
            .collect();
        Some(Gather {
            objects: &self.objects,
            shapes: self.classes.shapes(),
            layouts,
            threads,
            globals: self.refs.by_object(),
            level,
            only: None,
            met: Vec::new(),
            classes: FxHashMap::default(),
            kinds: FxHashMap::default(),
            current: Current::Nothing,
            at: 0,
            ids: Vec::new(),
            out: Vec::new(),
        })
    }

    /// Dumps the heap; whether that was possible.
    pub(crate) fn dump_heap(&self, env: Env<Live>, jni: Jni, level: DumpLevel) -> bool {
        let mut stacks = (level > DumpLevel::Ids).then(|| Stacks::read(self, env, jni));
        let Some(mut gather) = self.gather(env, jni, level, stacks.as_ref()) else {
            return false;
        };
        let walked = {
            let _naming = self.objects.naming();
            env.follow_references(None, &mut gather)
        };
        if walked.is_err() {
            return false;
        }
        if level > DumpLevel::Ids {
            // Who holds nothing was not reported as a holder: classes of primitives.
            let mut rest: Vec<ObjectId> = gather.kinds.keys().copied().collect();
            rest.sort_unstable();
            rest.into_iter().for_each(|id| gather.turn_to(id));
            gather.finish();
            // Classes of primitives are not among the loaded ones.
            let mut classes: Vec<u32> = gather.layouts.0.keys().copied().collect();
            let mut others: Vec<ObjectId> = gather.shapes.keys().copied().collect();
            // Who was not met by the walk is being unloaded.
            others.retain(|id| !gather.meet(*id));
            classes.extend(others.into_iter().map(|id| number(id).0));
            classes.sort_unstable();
            classes.dedup();
            for class in classes {
                gather.class(class);
            }
        }
        let traces = stacks.as_mut().map(Stacks::traces).unwrap_or_default();
        let ids = encode_ids(&gather.ids, IdLayout::NATIVE);
        let bytes = if level == DumpLevel::Ids {
            ids.as_ptr_range()
        } else {
            gather.out.as_ptr_range()
        };
        let heap_dump = HeapDump {
            level: level as i32,
            begin: bytes.start,
            end: bytes.end,
            trace_count: traces.len() as i32,
            traces: traces.as_ptr(),
        };
        let kind = event::HEAP_DUMP | REQUESTED;
        self.send(jni.raw(), kind, Payload { heap_dump });
        true
    }

    /// Dumps one object; whether there is such a one.
    pub(crate) fn dump_object(&self, env: Env<Live>, jni: Jni, id: ObjectId) -> bool {
        let Some(object) = self.object_of(env, jni, id) else {
            return false;
        };
        let Some(mut gather) = self.gather(env, jni, DumpLevel::Values, None) else {
            return false;
        };
        let Some(record) = self.objects.get(id) else {
            return false;
        };
        gather.only = Some(id);
        let class = jni
            .object_class(object)
            .map(|class| self.name_class(env, jni, class));
        let length = match record.kind {
            0 => -1,
            _ => i32::try_from(jni.array_len(object)).unwrap_or(i32::MAX),
        };
        gather.kinds.insert(id, (class.unwrap_or(0), length));
        let walked = {
            let _naming = self.objects.naming();
            env.follow_references(Some(object), &mut gather)
        };
        // An object that holds nothing is reported by nobody.
        let may_hold = matches!(record.kind, 0 | ARRAY_OF_OBJECTS);
        if may_hold && gather.at != id && gather.out.is_empty() {
            gather.turn_to(id);
        }
        gather.finish();
        if gather.is_class(id) {
            gather.class(number(id).0);
        }
        if walked.is_err() || gather.out.is_empty() {
            return false;
        }
        let object_dump = ObjectDump {
            len: i32::try_from(gather.out.len()).unwrap_or(i32::MAX),
            data: gather.out.as_ptr(),
        };
        let kind = event::OBJECT_DUMP | REQUESTED;
        self.send(jni.raw(), kind, Payload { object_dump });
        true
    }
}
