//! Heap dumps of levels 0 to 2 and object dumps, as records of [`vmpi::dump`], from one walk.
//!
//! The VM reports all that one object holds before it goes on to the next, so one object is
//! gathered at a time and written when the next begins; classes, whose parts may come in
//! between, are written at the end. Classes go on being loaded until all threads stand still; what is
//! held by one that was not planned for, or by its objects, has a root of its own, so that nobody takes
//! it for garbage. What objects are called is the affair of [`Ids`].

use jvmti::{Env, HeapWalk, Live, Object, Primitive, Reference, Walk};
use rustc_hash::FxHashMap;
use vmpi::dump::heap::{encode, encode_ids};
use vmpi::dump::{ClassDump, HeapRecord, IdLayout, IdRecord, RootKind, element_bytes, field_bytes};
use vmpi::{BasicType, ClassId, DumpLevel, EnvId, ObjectHandle, RefId, Value};

use crate::heap::field_layout::{Layout, Layouts, zero};

/// What OBJECT_ALLOC says of the instances of a class.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The element type, if they are arrays.
    pub array: Option<BasicType>,
    /// The class, the element class of an array of references, null for arrays of primitives.
    pub class: ObjectHandle,
}

/// What objects are called: in the walk by tags, in the dump by ids.
pub trait Ids {
    /// All threads stand still from here to the end of the walk. Called once, by the VM thread,
    /// before anything else.
    fn stopped(&mut self) {}
    /// The tag of an object that has none: of a class with this tag and shape, of so many bytes.
    fn tag(&mut self, class: i64, shape: Option<Shape>, size: i64) -> i64;
    /// What the dump calls the object with a tag; null for tag 0.
    fn id(&self, tag: i64) -> ObjectHandle;
    /// A number for each tag, no larger than need be.
    fn place(&self, tag: i64) -> usize;
    /// The number under which [`Layouts`] know the class with a tag.
    fn class(&self, tag: i64) -> ClassId;
    /// The tag of a class, 0 for none.
    fn class_tag(&self, class: ClassId) -> i64;
}

/// What a walk must know beforehand. Maps are by tag.
pub struct Plan {
    /// How much is dumped.
    pub level: DumpLevel,
    /// The fields of all classes.
    pub layouts: Layouts,
    /// All classes.
    pub shapes: FxHashMap<i64, Shape>,
    /// Threads.
    pub threads: FxHashMap<i64, EnvId>,
    /// Objects that a JNI global reference is known of.
    pub globals: FxHashMap<i64, RefId>,
    /// Bytes that a dump may have.
    pub most: usize,
}

/// What a class record needs beside its fields.
#[derive(Default)]
struct ClassParts {
    loader: ObjectHandle,
    signers: ObjectHandle,
    domain: ObjectHandle,
    constants: Vec<(u16, Value)>,
    statics: FxHashMap<usize, Value>,
    instance_size: u32,
}

/// The object being gathered.
enum Current {
    Nothing,
    Instance(i64, ClassId, Vec<Value>),
    Array(i64, ObjectHandle, Vec<ObjectHandle>),
}

/// A walk under way.
struct Gather<'a> {
    plan: Plan,
    ids: &'a mut dyn Ids,
    has_begun: bool,
    /// The one object that is wanted.
    only: Option<i64>,
    /// Whom the walk has met, by place.
    met: Vec<u64>,
    classes: FxHashMap<u32, ClassParts>,
    /// Class and length (-1 if no array) of what was met and not gathered yet.
    kinds: FxHashMap<i64, (i64, i32)>,
    current: Current,
    at: i64,
    /// Records of level 0.
    list: Vec<IdRecord>,
    out: Vec<u8>,
}

impl<'a> Gather<'a> {
    fn new(plan: Plan, ids: &'a mut dyn Ids, only: Option<i64>) -> Self {
        Self {
            plan,
            ids,
            has_begun: false,
            only,
            met: Vec::new(),
            classes: FxHashMap::default(),
            kinds: FxHashMap::default(),
            current: Current::Nothing,
            at: 0,
            list: Vec::new(),
            out: Vec::new(),
        }
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.ids.stopped();
        }
    }

    /// The tag of what a walk meets; given if it has none.
    fn tag(&mut self, reference: &mut Reference<'_>) -> i64 {
        let class = reference.class_tag;
        let shape = self.plan.shapes.get(&class).copied();
        if *reference.tag == 0 {
            *reference.tag = self.ids.tag(class, shape, reference.size);
        }
        let tag = *reference.tag;
        if self.only.is_some() || !self.meet(tag) {
            return tag;
        }
        if self.plan.level == DumpLevel::Ids {
            self.list.push(IdRecord {
                object: self.ids.id(tag),
                array: shape.and_then(|shape| shape.array),
            });
        } else {
            self.kinds.insert(tag, (class, reference.length));
            if reference.length < 0 {
                let parts = self.classes.entry(self.ids.class(class).0).or_default();
                parts.instance_size = u32::try_from(reference.size).unwrap_or(u32::MAX);
            }
        }
        tag
    }

    /// Whether the walk meets an object for the first time.
    fn meet(&mut self, tag: i64) -> bool {
        let place = self.ids.place(tag);
        let (word, bit) = (place / 64, place % 64);
        if self.met.len() <= word {
            self.met.resize(word + 1, 0);
        }
        let is_new = self.met[word] >> bit & 1 == 0;
        self.met[word] |= 1 << bit;
        is_new
    }

    fn is_class(&self, tag: i64) -> bool {
        self.plan.shapes.contains_key(&tag)
    }

    fn layout(&self, class: ClassId) -> Option<&Layout> {
        self.plan.layouts.0.get(&class.0)
    }

    fn handle_of(&self, class: ClassId) -> ObjectHandle {
        self.ids.id(self.ids.class_tag(class))
    }

    fn put(&mut self, record: &HeapRecord) {
        encode(&mut self.out, record, self.plan.level, IdLayout::NATIVE);
    }

    /// Writes what was gathered and begins with the object that has `tag`.
    fn turn_to(&mut self, tag: i64) {
        if self.at == tag {
            return;
        }
        self.finish();
        self.at = tag;
        if self.is_class(tag) || self.only.is_some_and(|only| only != tag) {
            return;
        }
        let Some((class, length)) = self.kinds.remove(&tag) else {
            return;
        };
        self.current = match usize::try_from(length) {
            Ok(length) => {
                let shape = self.plan.shapes.get(&class);
                let element = shape.map_or(ObjectHandle::NULL, |shape| shape.class);
                Current::Array(tag, element, vec![ObjectHandle::NULL; length])
            }
            Err(_) => {
                let class = self.ids.class(class);
                let zeros = self.layout(class).map(|layout| layout.zeros.clone());
                Current::Instance(tag, class, zeros.unwrap_or_default())
            }
        };
    }

    fn finish(&mut self) {
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => {}
            Current::Instance(tag, class, values) => {
                let references_only = self.plan.level != DumpLevel::Values;
                self.put(&HeapRecord::Instance {
                    object: self.ids.id(tag),
                    class: self.handle_of(class),
                    fields: field_bytes(&values, references_only, IdLayout::NATIVE),
                });
            }
            Current::Array(tag, element_class, elements) => self.put(&HeapRecord::ObjectArray {
                object: self.ids.id(tag),
                element_class,
                elements,
            }),
        }
    }

    fn root(&mut self, tag: i64, reference: &Reference<'_>) {
        let thread = |tag: i64| self.plan.threads.get(&tag).copied();
        let place = reference.stack.map(|(tag, _, depth)| (thread(tag), depth));
        let (env, depth) = place.map_or((EnvId(0), -1), |(env, depth)| {
            (env.unwrap_or(EnvId(0)), depth)
        });
        let why = match reference.kind {
            21 => {
                let known = self.plan.globals.get(&tag);
                RootKind::JniGlobal(known.copied().unwrap_or(RefId(0)))
            }
            22 => RootKind::StickyClass,
            23 => RootKind::MonitorUsed,
            24 => RootKind::JavaFrame(env, depth),
            25 => RootKind::JniLocal(env, depth),
            26 => RootKind::ThreadBlock(thread(tag).unwrap_or(EnvId(0))),
            _ => RootKind::Unknown,
        };
        let object = self.ids.id(tag);
        self.put(&HeapRecord::Root { object, why });
    }

    /// Something is held in a way that no record can tell.
    fn held_somehow(&mut self, to: i64) {
        if self.only.is_none() {
            let (object, why) = (self.ids.id(to), RootKind::Unknown);
            self.put(&HeapRecord::Root { object, why });
        }
    }

    /// What a class holds.
    fn held_by_class(&mut self, class: i64, to: i64, reference: &Reference<'_>) {
        let class = self.ids.class(class);
        let layout = self.layout(class);
        let place = layout.and_then(|layout| layout.statics.get(&reference.index).copied());
        if (reference.kind, place) == (8, None) {
            return self.held_somehow(to);
        }
        let to = self.ids.id(to);
        let parts = self.classes.entry(class.0).or_default();
        match (reference.kind, place) {
            (4, _) => parts.loader = to,
            (5, _) => parts.signers = to,
            (6, _) => parts.domain = to,
            (8, Some(place)) => {
                parts.statics.insert(place, Value::Object(to));
            }
            (9, _) => {
                let index = u16::try_from(reference.index).unwrap_or(0);
                // Their number has 16 bits, too.
                if parts.constants.len() < usize::from(u16::MAX) {
                    parts.constants.push((index, Value::Object(to)));
                }
            }
            _ => {}
        }
    }

    /// Puts a value of an instance in its place; whether there is one.
    fn field(&mut self, index: i32, value: Value) -> bool {
        let Current::Instance(_, class, values) = &mut self.current else {
            return false;
        };
        let layout = self.plan.layouts.0.get(&class.0);
        let place = layout.and_then(|layout| layout.instance.get(&index));
        let slot = place.and_then(|place| values.get_mut(*place));
        let is_there = slot.is_some();
        slot.into_iter().for_each(|slot| *slot = value);
        is_there
    }

    /// One class record.
    fn class(&mut self, class: u32) {
        let nothing = Layout::default();
        let layout = self.plan.layouts.0.get(&class).unwrap_or(&nothing);
        let parts = self.classes.remove(&class).unwrap_or_default();
        let mut statics = Vec::new();
        for (place, field) in layout.declared.iter().enumerate() {
            if field.is_static {
                let value = parts.statics.get(&place).copied();
                statics.push(value.unwrap_or_else(|| zero(&field.descriptor)));
            }
        }
        let interfaces = layout.interfaces.iter();
        let record = HeapRecord::Class(ClassDump {
            class: self.handle_of(ClassId(class)),
            superclass: self.handle_of(layout.superclass),
            loader: parts.loader,
            signers: parts.signers,
            protection_domain: parts.domain,
            instance_size: parts.instance_size,
            interfaces: interfaces.map(|class| self.handle_of(*class)).collect(),
            constants: parts.constants,
            statics,
        });
        self.put(&record);
    }

    /// What the walk did not write: who holds nothing, and the classes.
    fn rest(&mut self) {
        // Classes of primitives are reported as holders by nobody.
        let mut rest: Vec<i64> = self.kinds.keys().copied().collect();
        rest.sort_unstable();
        rest.into_iter().for_each(|tag| self.turn_to(tag));
        self.finish();
        // They are not among the loaded ones either.
        let mut classes: Vec<u32> = self.plan.layouts.0.keys().copied().collect();
        let mut others: Vec<i64> = self.plan.shapes.keys().copied().collect();
        // Who was not met by the walk is being unloaded.
        others.retain(|tag| !self.meet(*tag));
        classes.extend(others.into_iter().map(|tag| self.ids.class(tag).0));
        classes.sort_unstable();
        classes.dedup();
        for class in classes {
            self.class(class);
        }
    }
}

impl HeapWalk for Gather<'_> {
    fn reference(&mut self, mut reference: Reference<'_>) -> Walk {
        self.begin();
        let to = self.tag(&mut reference);
        if self.plan.level == DumpLevel::Ids {
            return Walk::On;
        }
        match reference.referrer {
            None if self.only.is_none() => self.root(to, &reference),
            None | Some(0) => {}
            Some(referrer) => {
                self.turn_to(referrer);
                if self.is_class(referrer) {
                    self.held_by_class(referrer, to, &reference);
                } else if reference.kind == 2 {
                    if !self.field(reference.index, Value::Object(self.ids.id(to))) {
                        self.held_somehow(to);
                    }
                } else if (4..=9).contains(&reference.kind) {
                    // A class, but not one of the plan's.
                    self.held_somehow(to);
                } else if let (Current::Array(_, _, elements), 3) =
                    (&mut self.current, reference.kind)
                {
                    let index = usize::try_from(reference.index).ok();
                    if let Some(element) = index.and_then(|index| elements.get_mut(index)) {
                        *element = self.ids.id(to);
                    }
                }
            }
        }
        match self.only {
            _ if self.out.len() > self.plan.most => Walk::Stop,
            Some(only) if only != to => Walk::Around,
            _ => Walk::On,
        }
    }

    fn primitive(&mut self, _class_tag: i64, tag: i64, primitive: Primitive) -> Walk {
        self.begin();
        if self.plan.level < DumpLevel::Values {
            return Walk::On;
        }
        self.turn_to(tag);
        let value = value_of(primitive);
        if primitive.is_static && self.is_class(tag) {
            let class = self.ids.class(tag);
            let layout = self.layout(class);
            let place = layout.and_then(|layout| layout.statics.get(&primitive.index).copied());
            if let Some(place) = place {
                let parts = self.classes.entry(class.0).or_default();
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
        self.begin();
        if self.plan.level == DumpLevel::Ids || self.only.is_some_and(|only| only != tag) {
            return Walk::On;
        }
        if self.at == tag {
            // The reference to its class came first and made it look like an array
            // of references.
            self.current = Current::Nothing;
        }
        self.finish();
        self.at = 0;
        self.kinds.remove(&tag);
        let descriptor = [kind];
        let element = BasicType::from_descriptor(std::str::from_utf8(&descriptor).unwrap_or(""));
        if let Some((element, width)) = element.and_then(|e| Some((e, e.width()?))) {
            let full = self.plan.level == DumpLevel::Values;
            self.put(&HeapRecord::PrimitiveArray {
                object: self.ids.id(tag),
                element,
                len: len.cast_unsigned(),
                data: element_bytes(if full { bytes } else { &[] }, width),
            });
        }
        if self.out.len() > self.plan.most {
            Walk::Stop
        } else {
            Walk::On
        }
    }
}

/// A field's value as the vocabulary has it.
pub(crate) fn value_of(primitive: Primitive) -> Value {
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

/// Why there is no dump.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The VM does not let itself be walked.
    #[error("the VM refused: {0}")]
    Refused(#[from] jvmti::Error),
    /// There is more than [`Plan::most`].
    #[error("it would have more than {0} bytes")]
    TooLarge(usize),
    /// The walk did not come to the object.
    #[error("the object was not found")]
    Missing,
}

/// Dumps what the roots reach; `env` has the tags.
///
/// # Errors
/// As [`Fault`] says.
pub fn dump_heap(env: Env<Live>, plan: Plan, ids: &mut dyn Ids) -> Result<Vec<u8>, Fault> {
    let (level, most) = (plan.level, plan.most);
    let mut gather = Gather::new(plan, ids, None);
    env.follow_references(None, &mut gather)?;
    if level == DumpLevel::Ids {
        return Ok(encode_ids(&gather.list, IdLayout::NATIVE));
    }
    if gather.out.len() <= most {
        gather.rest();
    }
    if gather.out.len() > most {
        return Err(Fault::TooLarge(most));
    }
    Ok(gather.out)
}

/// An object that is to be dumped.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// A reference to it.
    pub object: Object,
    /// Its tag.
    pub tag: i64,
    /// The tag of its class.
    pub class: i64,
    /// The element type and the length, if it is an array.
    pub array: Option<(BasicType, usize)>,
}

/// Dumps one object. The plan's level is [`DumpLevel::Values`].
///
/// # Errors
/// As [`Fault`] says.
pub fn dump_object(
    env: Env<Live>,
    plan: Plan,
    ids: &mut dyn Ids,
    wanted: Wanted,
) -> Result<Vec<u8>, Fault> {
    let (tag, most) = (wanted.tag, plan.most);
    let mut gather = Gather::new(plan, ids, Some(tag));
    let length = wanted
        .array
        .map_or(-1, |(_, length)| i32::try_from(length).unwrap_or(i32::MAX));
    gather.kinds.insert(tag, (wanted.class, length));
    env.follow_references(Some(wanted.object), &mut gather)?;
    gather.begin();
    // An object that holds nothing is reported by nobody.
    let may_hold = matches!(wanted.array, None | Some((BasicType::Object, _)));
    if may_hold && gather.at != tag && gather.out.is_empty() {
        gather.turn_to(tag);
    }
    gather.finish();
    if gather.is_class(tag) {
        gather.class(gather.ids.class(tag).0);
    }
    match gather.out.len() {
        0 => Err(Fault::Missing),
        len if len > most => Err(Fault::TooLarge(most)),
        _ => Ok(gather.out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use vmpi::dump::heap::decode;

    /// Tags are ids; classes have the tags 1 and 2.
    struct Plain(i64);

    impl Ids for Plain {
        fn tag(&mut self, _class: i64, _shape: Option<Shape>, _size: i64) -> i64 {
            self.0 += 1;
            self.0
        }

        fn id(&self, tag: i64) -> ObjectHandle {
            ObjectHandle(tag.cast_unsigned())
        }

        fn place(&self, tag: i64) -> usize {
            tag as usize
        }

        fn class(&self, tag: i64) -> ClassId {
            ClassId(tag as u32)
        }

        fn class_tag(&self, class: ClassId) -> i64 {
            i64::from(class.0)
        }
    }

    /// One step of a walk: the kind, who holds, whom, and the class of whom.
    fn step(gather: &mut Gather<'_>, kind: i32, from: Option<i64>, to: i64, class: i64) -> i64 {
        let mut tag = to;
        let reference = Reference {
            kind,
            index: 0,
            stack: None,
            class_tag: class,
            referrer_class_tag: 0,
            size: 16,
            tag: &mut tag,
            referrer: from,
            length: -1,
        };
        assert_eq!(gather.reference(reference), Walk::On);
        tag
    }

    #[test]
    fn what_a_class_of_the_last_moment_holds_is_no_garbage() {
        let shape = Shape {
            array: None,
            class: ObjectHandle::NULL,
        };
        let known = (1..3).map(|class| (class as u32, Layout::default()));
        let plan = Plan {
            level: DumpLevel::Values,
            layouts: Layouts(known.collect()),
            shapes: [(1, shape), (2, shape)].into_iter().collect(),
            threads: FxHashMap::default(),
            globals: FxHashMap::default(),
            most: 1 << 20,
        };
        let mut ids = Plain(100);
        let mut gather = Gather::new(plan, &mut ids, None);
        // A loader holds a class (an object of `Class`, which is 1) that nobody has planned for.
        let loader = step(&mut gather, 25, None, 0, 2);
        let class = step(&mut gather, 2, Some(loader), 0, 1);
        step(&mut gather, 1, Some(class), 1, 1);
        let by_static = step(&mut gather, 8, Some(class), 0, 2);
        // An object of that class: it has no tag, so that of the object's class is 0.
        let object = step(&mut gather, 25, None, 0, 0);
        let by_field = step(&mut gather, 2, Some(object), 0, 2);
        gather.rest();
        let shapes: HashMap<ObjectHandle, vmpi::ClassLoad> = [1, 2]
            .map(|class| (ObjectHandle(class), vmpi::ClassLoad::default()))
            .into();
        let (records, damage) = decode(&gather.out, DumpLevel::Values, IdLayout::NATIVE, &shapes);
        assert_eq!(damage, None);
        let kept = |record: &HeapRecord| match record {
            HeapRecord::Root {
                object,
                why: RootKind::Unknown,
            } => Some(object.0.cast_signed()),
            _ => None,
        };
        let kept: Vec<i64> = records.iter().filter_map(kept).collect();
        for held in [by_static, by_field] {
            assert!(kept.contains(&held), "{held} {kept:?}");
        }
        let is_there = |tag: i64| {
            records.iter().any(|record| {
                matches!(record, HeapRecord::Instance { object, .. } if object.0.cast_signed() == tag)
            })
        };
        assert!(
            [class, by_static, object, by_field]
                .into_iter()
                .all(is_there)
        );
    }
}
