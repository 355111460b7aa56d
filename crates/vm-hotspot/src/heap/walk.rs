//! A heap walk through JVMTI: references and values gathered into whole objects.
//!
//! The VM names nothing but tags, so each object gets a tag of its own for the
//! time of the walk: its index in a table that remembers class, size and site.
//! JVMTI then reports all that one object holds before it goes on to the next, so
//! one object is built at a time.
//!
//! This is the way without the VM's own dumper, several times as slow.

use jvmti::{Env, HeapWalk, Jni, Live, Object, Primitive, Reference, Walk};
use rustc_hash::FxHashMap;
use vmpi::{
    BasicType, ClassId, ClassRecord, HeapVisitor, Instance, ObjectArray, ObjectHandle,
    PrimitiveArray, Root, ThreadId, TraceId, Value, VmError,
};

use crate::heap::field_layout::{Layouts, zero};
use crate::heap::records::value_of;
use crate::threads::background::collect_garbage;
use crate::vm::hotspot::HotSpot;
use crate::vm::queries::failed;
use crate::vm::registry::{CLASS_TAG, HANDLE_TAG, WALK_TAG, handles};

/// What is remembered of an object while it has a walk tag.
#[derive(Clone, Copy)]
struct Known {
    /// Number of its site, 0 if it is not followed.
    site: u32,
    class: u32,
    size: u64,
    /// Elements, -1 for objects that are no arrays.
    length: i32,
    /// Something refers to it.
    reached: bool,
    /// It was handed over.
    told: bool,
}

/// Tags every object.
struct Tagger {
    objects: Objects,
}

fn known_of(class_tag: i64, size: i64, old_tag: i64, length: i32) -> Known {
    let class = if class_tag & CLASS_TAG != 0 {
        (class_tag & !CLASS_TAG) as u32
    } else {
        0
    };
    Known {
        site: u32::try_from(old_tag).unwrap_or(0),
        class,
        size: size as u64,
        length,
        reached: false,
        told: false,
    }
}

impl HeapWalk for Tagger {
    fn object(&mut self, class_tag: i64, size: i64, tag: &mut i64, length: i32) -> Walk {
        if *tag & CLASS_TAG == 0 {
            *tag = self.objects.add(known_of(class_tag, size, *tag, length));
        }
        Walk::On
    }
}

/// Takes the tags off.
struct Untagger;

impl HeapWalk for Untagger {
    fn object(&mut self, _class: i64, _size: i64, tag: &mut i64, _length: i32) -> Walk {
        if *tag & CLASS_TAG == 0 {
            *tag = 0;
        }
        Walk::On
    }
}

/// What a class record still needs.
#[derive(Default, Clone)]
struct ClassParts {
    superclass: ObjectHandle,
    loader: ObjectHandle,
    signers: ObjectHandle,
    domain: ObjectHandle,
    statics: FxHashMap<usize, Value>,
}

/// The object being gathered.
enum Current {
    Nothing,
    Instance(Known, ObjectHandle, Vec<Value>),
    Array(Known, ObjectHandle, Vec<ObjectHandle>),
}

struct Gather<'a> {
    visitor: &'a mut dyn HeapVisitor,
    layouts: &'a Layouts,
    /// Class and stack of each site.
    sites: &'a [(ClassId, TraceId)],
    objects: Objects,
    threads: FxHashMap<i64, (ThreadId, TraceId)>,
    classes: FxHashMap<u32, ClassParts>,
    /// Classes and instances that belong to the agent.
    hidden: Option<u32>,
    current: Current,
    at: i64,
}

/// The handle a tag of the walk stands for.
fn handle(tag: i64) -> ObjectHandle {
    if tag & CLASS_TAG != 0 {
        handles::class(ClassId((tag & !CLASS_TAG) as u32))
    } else if tag & HANDLE_TAG != 0 {
        ObjectHandle((tag & !(WALK_TAG | HANDLE_TAG)).cast_unsigned())
    } else {
        handles::object((tag & !WALK_TAG).cast_unsigned())
    }
}

/// Everything remembered of the objects of a walk.
#[derive(Default)]
struct Objects {
    known: Vec<Known>,
    /// Index by tag, for those whose tag is a handle.
    named: FxHashMap<i64, usize>,
}

impl Objects {
    fn index(&self, tag: i64) -> Option<usize> {
        match tag & (CLASS_TAG | HANDLE_TAG) {
            0 => ((tag & !WALK_TAG) as usize).checked_sub(1),
            HANDLE_TAG => self.named.get(&tag).copied(),
            _ => None,
        }
    }

    fn get(&self, tag: i64) -> Option<Known> {
        self.known.get(self.index(tag)?).copied()
    }

    fn mark(&mut self, tag: i64, mark: impl FnOnce(&mut Known)) {
        let index = self.index(tag);
        if let Some(known) = index.and_then(|index| self.known.get_mut(index)) {
            mark(known);
        }
    }

    /// Remembers an object that has no tag of the walk yet; its tag.
    fn add(&mut self, known: Known) -> i64 {
        self.known.push(known);
        WALK_TAG | self.known.len() as i64
    }

    /// Gives an object the tag of a handle it has outside of walks.
    fn name(&mut self, env: Env<Live>, object: Object, handle: ObjectHandle) -> i64 {
        let tag = env.tag(object).unwrap_or(0);
        let named = WALK_TAG | HANDLE_TAG | handle.0.cast_signed();
        if tag & WALK_TAG != 0 && tag & (HANDLE_TAG | CLASS_TAG) == 0 {
            self.named.insert(named, (tag & !WALK_TAG) as usize - 1);
            let _ = env.set_tag(object, named);
        }
        named
    }
}

impl Gather<'_> {
    fn trace_of(&self, known: Known) -> TraceId {
        self.sites
            .get((known.site as usize).wrapping_sub(1))
            .map_or(TraceId::EMPTY, |(_, trace)| *trace)
    }

    /// Hands over the object gathered and begins with the one tagged `tag`.
    fn turn_to(&mut self, tag: i64) {
        if self.at == tag {
            return;
        }
        self.finish();
        self.at = tag;
        let Some(known) = self.objects.get(tag) else {
            return;
        };
        self.objects.mark(tag, |known| known.told = true);
        self.current = if known.length >= 0 {
            Current::Array(
                known,
                handle(tag),
                vec![ObjectHandle::NULL; known.length as usize],
            )
        } else {
            let zeros = self
                .layouts
                .0
                .get(&known.class)
                .map(|layout| layout.zeros.clone());
            Current::Instance(known, handle(tag), zeros.unwrap_or_default())
        };
    }

    fn finish(&mut self) {
        let class_object = |class: u32| handles::class(ClassId(class));
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => {}
            Current::Instance(known, object, values) => self.visitor.instance(&Instance {
                object,
                class: ClassId(known.class),
                class_object: class_object(known.class),
                trace: self.trace_of(known),
                size: known.size,
                values: &values,
            }),
            Current::Array(known, object, elements) => self.visitor.object_array(&ObjectArray {
                object,
                class: ClassId(known.class),
                class_object: class_object(known.class),
                trace: self.trace_of(known),
                size: known.size,
                elements: &elements,
            }),
        }
    }

    fn root(&mut self, reference: &Reference<'_>) {
        let thread = |gather: &Self| {
            let tag = reference.stack.map_or(0, |stack| stack.0);
            gather
                .threads
                .get(&tag)
                .map_or(ThreadId::NONE, |thread| thread.0)
        };
        let depth = reference
            .stack
            .and_then(|stack| u32::try_from(stack.2).ok());
        let why = match reference.kind {
            21 => Root::JniGlobal,
            22 => Root::StickyClass,
            23 => Root::MonitorUsed,
            24 => Root::JavaFrame {
                thread: thread(self),
                depth,
            },
            25 => Root::JniLocal {
                thread: thread(self),
                depth,
            },
            26 => match self.threads.get(reference.tag) {
                Some(&(thread, trace)) => Root::ThreadObject { thread, trace },
                None => Root::Unknown,
            },
            _ => Root::Unknown,
        };
        self.visitor.root(handle(*reference.tag), why);
    }

    fn held_by_class(&mut self, class: u32, reference: &Reference<'_>) {
        let to = handle(*reference.tag);
        let parts = self.classes.entry(class).or_default();
        match reference.kind {
            4 => parts.loader = to,
            5 => parts.signers = to,
            6 => parts.domain = to,
            8 => {
                let place = self
                    .layouts
                    .0
                    .get(&class)
                    .and_then(|l| l.statics.get(&reference.index));
                if let Some(place) = place {
                    parts.statics.insert(*place, Value::Object(to));
                }
            }
            10 => parts.superclass = to,
            _ => {}
        }
    }

    /// Objects that were reached and of which JVMTI said nothing more: mirrors of
    /// classes that are not loaded.
    fn silent(&mut self) {
        for index in 0..self.objects.known.len() {
            let known = self.objects.known[index];
            let is_plain = self.layouts.0.contains_key(&known.class) && known.length < 0;
            let is_ours = Some(known.class) == self.hidden;
            if known.reached && !known.told && is_plain && !is_ours {
                self.turn_to(WALK_TAG | (index as i64 + 1));
            }
        }
        self.finish();
    }

    /// All class records, after the objects.
    fn classes(&mut self) {
        let mut ids: Vec<u32> = self.layouts.0.keys().copied().collect();
        ids.sort_unstable();
        for id in ids.into_iter().filter(|id| Some(*id) != self.hidden) {
            let layout = &self.layouts.0[&id];
            let parts = self.classes.remove(&id).unwrap_or_default();
            let (mut statics, mut fields) = (Vec::new(), Vec::new());
            for (place, field) in layout.declared.iter().enumerate() {
                if field.is_static {
                    let value = parts.statics.get(&place).copied();
                    statics.push((
                        field.clone(),
                        value.unwrap_or_else(|| zero(&field.descriptor)),
                    ));
                } else {
                    fields.push(field.clone());
                }
            }
            let superclass = if layout.superclass.0 != 0 {
                handles::class(layout.superclass)
            } else {
                parts.superclass
            };
            self.visitor.class(&ClassRecord {
                object: handles::class(ClassId(id)),
                class: ClassId(id),
                trace: TraceId::EMPTY,
                superclass,
                loader: parts.loader,
                signers: parts.signers,
                protection_domain: parts.domain,
                statics: &statics,
                fields: &fields,
                instance_size: 0,
            });
        }
    }
}

impl HeapWalk for Gather<'_> {
    fn reference(&mut self, reference: Reference<'_>) -> Walk {
        if *reference.tag == 0 {
            // Made since all objects were tagged.
            let known = known_of(reference.class_tag, reference.size, 0, reference.length);
            *reference.tag = self.objects.add(known);
        }
        self.objects
            .mark(*reference.tag, |known| known.reached = true);
        let class_of = |tag: i64| (tag & CLASS_TAG != 0).then_some((tag & !CLASS_TAG) as u32);
        let target = class_of(*reference.tag);
        let is_ours = target.is_some() && target == self.hidden
            || self.hidden.is_some() && class_of(reference.class_tag) == self.hidden;
        match reference.referrer {
            _ if is_ours && reference.kind != 1 => return Walk::Around,
            None => self.root(&reference),
            Some(referrer) => {
                if let Some(class) = class_of(referrer) {
                    self.turn_to(referrer);
                    self.held_by_class(class, &reference);
                } else {
                    self.turn_to(referrer);
                    let to = handle(*reference.tag);
                    match (&mut self.current, reference.kind) {
                        (Current::Instance(known, _, values), 2) => {
                            let place = self
                                .layouts
                                .0
                                .get(&known.class)
                                .and_then(|l| l.instance.get(&reference.index));
                            if let Some(value) = place.and_then(|place| values.get_mut(*place)) {
                                *value = Value::Object(to);
                            }
                        }
                        (Current::Array(_, _, elements), 3) => {
                            if let Some(element) = usize::try_from(reference.index)
                                .ok()
                                .and_then(|i| elements.get_mut(i))
                            {
                                *element = to;
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        if self.visitor.keep_going() {
            Walk::On
        } else {
            Walk::Stop
        }
    }

    fn primitive(&mut self, _class_tag: i64, tag: i64, primitive: Primitive) -> Walk {
        self.turn_to(tag);
        if primitive.is_static && tag & CLASS_TAG != 0 {
            let class = (tag & !CLASS_TAG) as u32;
            let place = self
                .layouts
                .0
                .get(&class)
                .and_then(|l| l.statics.get(&primitive.index));
            if let Some(place) = place {
                let parts = self.classes.entry(class).or_default();
                parts.statics.insert(*place, value_of(primitive));
            }
        } else if let Current::Instance(known, _, values) = &mut self.current {
            let place = self
                .layouts
                .0
                .get(&known.class)
                .and_then(|l| l.instance.get(&primitive.index));
            if let Some(value) = place.and_then(|place| values.get_mut(*place)) {
                *value = value_of(primitive);
            }
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
        if self.at == tag {
            // The reference to its class came first and made it look like an array of references.
            self.current = Current::Nothing;
        }
        self.finish();
        self.at = 0;
        let element = BasicType::from_descriptor(std::str::from_utf8(&[kind]).unwrap_or(""));
        self.objects.mark(tag, |known| known.told = true);
        if let (Some(known), Some(element)) = (self.objects.get(tag), element) {
            self.visitor.primitive_array(&PrimitiveArray {
                object: handle(tag),
                class: ClassId(known.class),
                trace: self.trace_of(known),
                size: known.size,
                element,
                len: len as u32,
                bytes,
            });
        }
        Walk::On
    }
}

/// Walks the heap for `visitor`.
pub(crate) fn walk(
    hotspot: &HotSpot,
    env: Env<Live>,
    jni: Jni,
    visitor: &mut dyn HeapVisitor,
) -> Result<(), VmError> {
    // The dead would be tagged like the living.
    collect_garbage(hotspot, env, jni).map_err(failed)?;
    let layouts = Layouts::read(env, jni, |mirror| {
        hotspot.lock().registry.class(env, jni, mirror)
    })?;
    let mut tagger = Tagger {
        objects: Objects::default(),
    };
    tag_followed(hotspot, env, jni);
    let tagged = env.iterate_heap(false, &mut tagger);
    let mut objects = tagger.objects;
    let threads = name_threads(hotspot, env, jni, &mut objects);
    // A copy, because other threads go on making sites between the stops.
    let (sites, hidden) = {
        let state = hotspot.lock();
        (
            state.sites.keys(),
            state.registry.tracker.map(|class| class.0),
        )
    };
    let mut gather = Gather {
        visitor,
        layouts: &layouts,
        sites: &sites,
        objects,
        threads,
        classes: FxHashMap::default(),
        hidden,
        current: Current::Nothing,
        at: 0,
    };
    let walked = tagged.and_then(|()| env.follow_references(None, &mut gather));
    gather.finish();
    gather.silent();
    gather.classes();
    let restored = env.iterate_heap(true, &mut Untagger);
    walked.and(restored).map_err(failed)
}

/// Tags followed objects with the numbers of their sites.
fn tag_followed(hotspot: &HotSpot, env: Env<Live>, jni: Jni) {
    hotspot.followed.living(jni, |entries| {
        for entry in entries.iter() {
            let Some(object) = jni.new_local(entry.weak()) else {
                continue;
            };
            if env.tag(object) == Ok(0) {
                let _ = env.set_tag(object, i64::from(entry.site().0));
            }
            jni.delete_local(object);
        }
    });
}

/// Gives threads and loaders their lasting handles; which thread has which tag,
/// and where it is.
fn name_threads(
    hotspot: &HotSpot,
    env: Env<Live>,
    jni: Jni,
    objects: &mut Objects,
) -> FxHashMap<i64, (ThreadId, TraceId)> {
    let depth = hotspot.config.depth;
    let mut threads = FxHashMap::default();
    jni.local_frame(256, || {
        let stacks = env
            .all_stacks(depth.min(1 << 16).cast_signed())
            .unwrap_or_default();
        let mut state = hotspot.lock();
        for row in stacks {
            let thread = state.registry.thread(env, Some(row.thread), false);
            let frames = state.registry.stack(env, jni, &row.frames, depth as usize);
            let owner = if hotspot.config.per_thread {
                thread
            } else {
                ThreadId::NONE
            };
            let trace = state.registry.trace(vmpi::Trace {
                thread: owner,
                frames,
            });
            let Some(object) = state.registry.thread_info(thread).map(|info| info.object) else {
                continue;
            };
            let tag = objects.name(env, row.thread, object);
            threads.insert(tag, (thread, trace));
        }
        for (index, weak) in state.registry.loaders.iter() {
            if let Some(loader) = jni.new_local(weak) {
                objects.name(env, loader, handles::loader(index));
            }
        }
    });
    threads
}
