//! A walk through the heap, for every kind of sink: combines the reports of JVMTI into complete objects.
//!
//! The VM reports all references of one object before it continues with the next, so objects are collected one at a
//! time. Each is passed on when the next begins; classes, whose parts may come in between, follow at the end. Classes
//! are loaded until all threads are stopped. Objects that an unplanned class refers to, and its instances, get a root
//! of their own, so that they do not look like garbage. [`Ids`] name the objects; a [`Sink`] receives them.

use jvmti::{Env, HeapWalk, Live, Object, Primitive, Reference, Walk};
use rustc_hash::FxHashMap;
use vmpi::{BasicType, ClassId, DumpLevel, ObjectHandle, Value};

use crate::heap::field_layout::{Layout, Layouts, zero};
use crate::heap::tags::Tagged;

/// What OBJECT_ALLOC says of the instances of a class.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The element type, if they are arrays.
    pub array: Option<BasicType>,
    /// The class, the element class of an array of references, null for arrays of primitives.
    pub class: ObjectHandle,
}

/// Names of objects: tags in the walk, ids in what it yields.
pub trait Ids {
    /// All threads stand still from here to the end of the walk. Called once, by the VM thread,
    /// before anything else.
    fn stopped(&mut self) {}
    /// The tag of an object that has none: of a class with this tag and shape, of so many bytes.
    fn tag(&mut self, class: i64, shape: Option<Shape>, size: i64) -> i64;
    /// What the dump calls the object with a tag; null for tag 0.
    fn id(&self, tag: i64) -> ObjectHandle;
    /// A number for each tag, no larger than need be.
    fn place(&self, tag: i64) -> usize {
        Tagged::of(tag).map_or(0, Tagged::place)
    }
    /// The number under which [`Layouts`] know the class with a tag.
    fn class(&self, tag: i64) -> ClassId {
        ClassId(u32::try_from(tag).unwrap_or(0))
    }
    /// The tag of a class, 0 for none.
    fn class_tag(&self, class: ClassId) -> i64 {
        i64::from(class.0)
    }
}

/// What a walk must know of classes beforehand.
pub struct Classes {
    /// Their fields.
    pub layouts: Layouts,
    /// All classes, by tag.
    pub shapes: FxHashMap<i64, Shape>,
    /// The tag of a class of the agent's own, which is left out with its objects.
    pub hidden: Option<i64>,
}

/// An object that the walk has met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    pub(crate) tag: i64,
    pub(crate) object: ObjectHandle,
    pub(crate) class: ClassId,
    pub(crate) class_object: ObjectHandle,
    /// Of its class.
    pub(crate) shape: Option<Shape>,
    /// Bytes in the heap.
    pub(crate) size: i64,
}

/// What a class holds beside its fields.
#[derive(Default)]
pub(crate) struct ClassParts {
    pub(crate) loader: ObjectHandle,
    pub(crate) signers: ObjectHandle,
    pub(crate) domain: ObjectHandle,
    pub(crate) constants: Vec<(u16, Value)>,
    statics: FxHashMap<usize, Value>,
    /// Bytes of an instance.
    pub(crate) instance_size: u32,
}

/// A class, when all its parts are known.
pub(crate) struct WholeClass<'a> {
    pub(crate) class: ClassId,
    pub(crate) object: ObjectHandle,
    pub(crate) superclass: ObjectHandle,
    pub(crate) interfaces: Vec<ObjectHandle>,
    pub(crate) layout: &'a Layout,
    /// Values of the static fields, in the order of the layout.
    pub(crate) statics: Vec<Value>,
    pub(crate) parts: ClassParts,
}

/// Receives what a walk has gathered, on the thread of the VM.
pub(crate) trait Sink {
    /// An object is met for the first time. If nothing but these are wanted, the level is [`DumpLevel::Ids`].
    fn met(&mut self, _object: ObjectHandle, _shape: Option<Shape>) {}
    /// An object is a root.
    fn root(&mut self, tag: i64, object: ObjectHandle, reference: &Reference<'_>);
    /// Something that was not planned for holds an object.
    fn held(&mut self, object: ObjectHandle);
    /// A plain object.
    fn instance(&mut self, met: &Met, values: &[Value]);
    /// An array of references.
    fn object_array(&mut self, met: &Met, elements: Vec<ObjectHandle>);
    /// An array of primitives.
    fn primitive_array(&mut self, met: &Met, element: BasicType, len: u32, bytes: &[u8]);
    /// A class.
    fn class(&mut self, class: WholeClass<'_>);
    /// Whether the walk continues; asked between references.
    fn goes_on(&self) -> bool;
}

/// Class, length (-1 if no array) and bytes of what was met and not gathered yet.
#[derive(Clone, Copy, Default)]
struct Kind {
    class: i64,
    length: i32,
    size: i64,
}

/// The object being gathered.
enum Current {
    Nothing,
    Instance(Met, Vec<Value>),
    Array(Met, Vec<ObjectHandle>),
}

/// A walk under way.
pub(crate) struct Walker<'a, S> {
    level: DumpLevel,
    classes: Classes,
    pub(crate) ids: &'a mut dyn Ids,
    pub(crate) sink: S,
    has_begun: bool,
    /// The one object that is wanted.
    only: Option<i64>,
    /// Objects that the walk has met, by place.
    met: Vec<u64>,
    parts: FxHashMap<u32, ClassParts>,
    kinds: FxHashMap<i64, Kind>,
    current: Current,
    at: i64,
}

impl<'a, S: Sink> Walker<'a, S> {
    pub(crate) fn new(level: DumpLevel, classes: Classes, ids: &'a mut dyn Ids, sink: S) -> Self {
        Self {
            level,
            classes,
            ids,
            sink,
            has_begun: false,
            only: None,
            met: Vec::new(),
            parts: FxHashMap::default(),
            kinds: FxHashMap::default(),
            current: Current::Nothing,
            at: 0,
        }
    }

    /// Hands over all that the roots reach.
    pub(crate) fn walk_all(&mut self, env: Env<Live>) -> jvmti::Result<()> {
        env.follow_references(None, self)?;
        if self.level > DumpLevel::Ids && self.sink.goes_on() {
            self.rest();
        }
        Ok(())
    }

    /// Hands over one object.
    pub(crate) fn walk_one(&mut self, env: Env<Live>, wanted: Wanted) -> jvmti::Result<()> {
        let tag = wanted.tag;
        self.only = Some(tag);
        let length = wanted
            .array
            .map_or(-1, |(_, length)| i32::try_from(length).unwrap_or(i32::MAX));
        let kind = Kind {
            class: wanted.class,
            length,
            size: 0,
        };
        self.kinds.insert(tag, kind);
        env.follow_references(Some(wanted.object), self)?;
        self.begin();
        // The VM does not report an object that holds nothing.
        if matches!(wanted.array, None | Some((BasicType::Object, _))) {
            self.turn_to(tag);
        }
        self.finish();
        if self.is_class(tag) {
            self.class(self.ids.class(tag).0);
        }
        Ok(())
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.ids.stopped();
        }
    }

    /// The tag of what a walk meets; given if it has none.
    fn tag(&mut self, reference: &mut Reference<'_>) -> i64 {
        let class = reference.class_tag;
        let shape = self.classes.shapes.get(&class).copied();
        if *reference.tag == 0 {
            *reference.tag = self.ids.tag(class, shape, reference.size);
        }
        let tag = *reference.tag;
        if self.only.is_some() || !self.meet(tag) {
            return tag;
        }
        self.sink.met(self.ids.id(tag), shape);
        if self.level > DumpLevel::Ids {
            let kind = Kind {
                class,
                length: reference.length,
                size: reference.size,
            };
            self.kinds.insert(tag, kind);
            if reference.length < 0 {
                let parts = self.parts.entry(self.ids.class(class).0).or_default();
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
        self.classes.shapes.contains_key(&tag)
    }

    fn handle_of(&self, class: ClassId) -> ObjectHandle {
        self.ids.id(self.ids.class_tag(class))
    }

    fn whole(&self, tag: i64, kind: Kind) -> Met {
        let class = self.ids.class(kind.class);
        Met {
            tag,
            object: self.ids.id(tag),
            class,
            class_object: self.handle_of(class),
            shape: self.classes.shapes.get(&kind.class).copied(),
            size: kind.size,
        }
    }

    /// Hands over what was gathered and begins with the object that has `tag`.
    fn turn_to(&mut self, tag: i64) {
        if self.at == tag {
            return;
        }
        self.finish();
        self.at = tag;
        if self.is_class(tag) || self.only.is_some_and(|only| only != tag) {
            return;
        }
        let Some(kind) = self.kinds.remove(&tag) else {
            return;
        };
        let met = self.whole(tag, kind);
        self.current = match usize::try_from(kind.length) {
            Ok(length) => Current::Array(met, vec![ObjectHandle::NULL; length]),
            Err(_) => {
                let layout = self.classes.layouts.0.get(&met.class.0);
                let zeros = layout.map(|layout| layout.zeros.clone());
                Current::Instance(met, zeros.unwrap_or_default())
            }
        };
    }

    fn finish(&mut self) {
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => {}
            Current::Instance(met, values) => self.sink.instance(&met, &values),
            Current::Array(met, elements) => self.sink.object_array(&met, elements),
        }
    }

    /// Something is held in a way that no record can express.
    fn held_somehow(&mut self, to: i64) {
        if self.only.is_none() {
            self.sink.held(self.ids.id(to));
        }
    }

    /// The place of a static field.
    fn static_place(&self, class: ClassId, index: i32) -> Option<usize> {
        let layout = self.classes.layouts.0.get(&class.0)?;
        layout.statics.get(&index).copied()
    }

    /// What a class holds.
    fn held_by_class(&mut self, class: i64, to: i64, reference: &Reference<'_>) {
        let class = self.ids.class(class);
        let place = self.static_place(class, reference.index);
        if (reference.kind, place) == (8, None) {
            return self.held_somehow(to);
        }
        let to = self.ids.id(to);
        let parts = self.parts.entry(class.0).or_default();
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
        let Current::Instance(met, values) = &mut self.current else {
            return false;
        };
        let layout = self.classes.layouts.0.get(&met.class.0);
        let place = layout.and_then(|layout| layout.instance.get(&index));
        let slot = place.and_then(|place| values.get_mut(*place));
        let is_there = slot.is_some();
        slot.into_iter().for_each(|slot| *slot = value);
        is_there
    }

    /// Hands over one class.
    fn class(&mut self, class: u32) {
        let nothing = Layout::default();
        let layout = self.classes.layouts.0.get(&class).unwrap_or(&nothing);
        let parts = self.parts.remove(&class).unwrap_or_default();
        let fields = layout.declared.iter().enumerate();
        let statics = fields.filter(|(_, field)| field.is_static);
        let value = |(place, field): (usize, &vmpi::FieldInfo)| {
            let value = parts.statics.get(&place).copied();
            value.unwrap_or_else(|| zero(&field.descriptor))
        };
        let interfaces = layout.interfaces.iter();
        self.sink.class(WholeClass {
            class: ClassId(class),
            object: self.ids.id(self.ids.class_tag(ClassId(class))),
            superclass: self.ids.id(self.ids.class_tag(layout.superclass)),
            interfaces: interfaces
                .map(|class| self.ids.id(self.ids.class_tag(*class)))
                .collect(),
            layout,
            statics: statics.map(value).collect(),
            parts,
        });
    }

    /// What the walk did not hand over: objects that hold nothing, and the classes.
    pub(crate) fn rest(&mut self) {
        // The VM does not report what classes of primitives hold.
        let mut rest: Vec<i64> = self.kinds.keys().copied().collect();
        rest.sort_unstable();
        rest.into_iter().for_each(|tag| self.turn_to(tag));
        self.finish();
        // They are not among the loaded ones either.
        let mut classes: Vec<u32> = self.classes.layouts.0.keys().copied().collect();
        let mut others: Vec<i64> = self.classes.shapes.keys().copied().collect();
        // One that the walk has not met is being unloaded.
        others.retain(|tag| !self.meet(*tag));
        classes.extend(others.into_iter().map(|tag| self.ids.class(tag).0));
        classes.sort_unstable();
        classes.dedup();
        let hidden = self.classes.hidden.map(|tag| self.ids.class(tag).0);
        for class in classes.into_iter().filter(|class| Some(*class) != hidden) {
            self.class(class);
        }
    }

    fn goes_on(&self) -> Walk {
        match self.sink.goes_on() {
            true => Walk::On,
            false => Walk::Stop,
        }
    }
}

impl<S: Sink> HeapWalk for Walker<'_, S> {
    fn reference(&mut self, mut reference: Reference<'_>) -> Walk {
        self.begin();
        if self
            .classes
            .hidden
            .is_some_and(|hidden| [*reference.tag, reference.class_tag].contains(&hidden))
        {
            return Walk::Around;
        }
        let to = self.tag(&mut reference);
        if self.level == DumpLevel::Ids {
            return Walk::On;
        }
        match reference.referrer {
            None if self.only.is_none() => self.sink.root(to, self.ids.id(to), &reference),
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
                } else if let (Current::Array(_, elements), 3) = (&mut self.current, reference.kind)
                {
                    let index = usize::try_from(reference.index).ok();
                    if let Some(element) = index.and_then(|index| elements.get_mut(index)) {
                        *element = self.ids.id(to);
                    }
                }
            }
        }
        match self.only {
            Some(only) if only != to && self.sink.goes_on() => Walk::Around,
            _ => self.goes_on(),
        }
    }

    fn primitive(&mut self, _class_tag: i64, tag: i64, primitive: Primitive) -> Walk {
        self.begin();
        if self.level < DumpLevel::Values {
            return Walk::On;
        }
        self.turn_to(tag);
        let value = value_of(primitive);
        if primitive.is_static && self.is_class(tag) {
            let class = self.ids.class(tag);
            if let Some(place) = self.static_place(class, primitive.index) {
                let parts = self.parts.entry(class.0).or_default();
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
        if self.level == DumpLevel::Ids || self.only.is_some_and(|only| only != tag) {
            return Walk::On;
        }
        let met = match std::mem::replace(&mut self.current, Current::Nothing) {
            // The reference to its class came first and made it look like an array of references.
            Current::Array(met, _) if self.at == tag => met,
            other => {
                self.current = other;
                self.finish();
                let kind = self.kinds.remove(&tag).unwrap_or_default();
                self.whole(tag, kind)
            }
        };
        self.at = 0;
        let descriptor = [kind];
        let element = BasicType::from_descriptor(std::str::from_utf8(&descriptor).unwrap_or(""));
        if let Some(element) = element {
            self.sink
                .primitive_array(&met, element, len.cast_unsigned(), bytes);
        }
        self.goes_on()
    }
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
