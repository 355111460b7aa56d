//! A walk for [`HeapVisitor`]s: the heap with the stacks of tracked objects.
//!
//! This is used if the VM's own dumper is not available; it is several times as slow.

use jvmti::{Env, Jni, Live, Object, Reference};
use rustc_hash::FxHashMap;
use vmpi::{
    BasicType, ClassId, ClassRecord, DumpLevel, FieldInfo, HeapVisitor, Instance, ObjectArray,
    ObjectHandle, PrimitiveArray, Root, ThreadId, TraceId, Value, VmError,
};

use crate::heap::field_layout::Layouts;
use crate::heap::tags::{Tagged, Tags};
use crate::heap::walk::{Classes, Ids, Met, Shape, Sink, Walker, WholeClass};
use crate::threads::background::collect_garbage;
use crate::vm::hotspot::HotSpot;
use crate::vm::queries::failed;
use crate::vm::registry::handles;

/// Names of objects in one walk.
struct Names {
    tags: Tags,
    /// Sites of the tagged tracked objects.
    sites: Vec<u32>,
    /// Handles that objects have outside of walks.
    named: FxHashMap<i64, ObjectHandle>,
}

impl Names {
    /// Gives an object the handle it has outside of walks; its tag.
    fn name(&mut self, object: Object, handle: ObjectHandle) -> i64 {
        let (tag, _) = self.tags.of(object);
        self.named.insert(tag, handle);
        tag
    }

    /// Tags tracked objects.
    fn track(&mut self, hotspot: &HotSpot, jni: Jni) {
        hotspot.tracked.living(jni, |entries| {
            for entry in entries.iter() {
                let Some(object) = jni.new_local(entry.weak()) else {
                    continue;
                };
                if self.tags.track(object) {
                    self.sites.push(entry.site().0);
                }
                jni.delete_local(object);
            }
        });
    }

    /// Gives threads and loaders their handles; which thread has which tag, and where it is.
    fn name_threads(
        &mut self,
        hotspot: &HotSpot,
        (env, jni): (Env<Live>, Jni),
    ) -> FxHashMap<i64, (ThreadId, TraceId)> {
        let depth = hotspot.config.depth;
        let mut threads = FxHashMap::default();
        jni.local_frame(256, || {
            let stacks = env.all_stacks(jni, depth.min(1 << 16).cast_signed());
            for row in stacks.unwrap_or_default() {
                let numbers = hotspot.number_stack((env, jni), row.thread, &row.frames, depth);
                let info = hotspot.lock().registry.thread_info(numbers.0).cloned();
                if let Some(info) = info {
                    threads.insert(self.name(row.thread, info.object), numbers);
                }
            }
            for (loader, handle) in hotspot.loaders(jni) {
                self.name(loader, handle);
            }
        });
        threads
    }
}

impl Ids for Names {
    fn tag(&mut self, _class: i64, _shape: Option<Shape>, _size: i64) -> i64 {
        self.tags.pass()
    }

    fn id(&self, tag: i64) -> ObjectHandle {
        let number = match Tagged::of(tag) {
            None => return ObjectHandle::NULL,
            Some(Tagged::Class(class)) => return handles::class(class),
            Some(Tagged::Tracked(number)) => number as u64,
            Some(Tagged::Passing(number)) => self.sites.len() as u64 + number,
        };
        let named = self.named.get(&tag).copied();
        named.unwrap_or_else(|| handles::object(1 + number))
    }
}

/// Hands a walk over to a visitor.
struct Visits<'a> {
    visitor: &'a mut dyn HeapVisitor,
    /// Stacks of the tracked objects, by the low bits of their tags.
    traces: Vec<TraceId>,
    threads: FxHashMap<i64, (ThreadId, TraceId)>,
}

impl Visits<'_> {
    fn trace_of(&self, met: &Met) -> TraceId {
        match Tagged::of(met.tag) {
            Some(Tagged::Tracked(number)) => self.traces[number],
            _ => TraceId::EMPTY,
        }
    }
}

impl Sink for Visits<'_> {
    fn root(&mut self, tag: i64, object: ObjectHandle, reference: &Reference<'_>) {
        let stack = reference.stack.unwrap_or((0, 0, -1));
        let thread = self.threads.get(&stack.0);
        let thread = thread.map_or(ThreadId::NONE, |thread| thread.0);
        let depth = u32::try_from(stack.2).ok();
        let why = match reference.kind {
            21 => Root::JniGlobal,
            22 => Root::StickyClass,
            23 => Root::MonitorUsed,
            24 => Root::JavaFrame { thread, depth },
            25 => Root::JniLocal { thread, depth },
            26 => match self.threads.get(&tag) {
                Some(&(thread, trace)) => Root::ThreadObject { thread, trace },
                None => Root::Unknown,
            },
            _ => Root::Unknown,
        };
        self.visitor.root(object, why);
    }

    fn held(&mut self, object: ObjectHandle) {
        self.visitor.root(object, Root::Unknown);
    }

    fn instance(&mut self, met: &Met, values: &[Value]) {
        self.visitor.instance(&Instance {
            object: met.object,
            class: met.class,
            class_object: met.class_object,
            trace: self.trace_of(met),
            size: met.size.cast_unsigned(),
            values,
        });
    }

    fn object_array(&mut self, met: &Met, elements: Vec<ObjectHandle>) {
        self.visitor.object_array(&ObjectArray {
            object: met.object,
            class: met.class,
            class_object: met.class_object,
            trace: self.trace_of(met),
            size: met.size.cast_unsigned(),
            elements: &elements,
        });
    }

    fn primitive_array(&mut self, met: &Met, element: BasicType, len: u32, bytes: &[u8]) {
        self.visitor.primitive_array(&PrimitiveArray {
            object: met.object,
            class: met.class,
            trace: self.trace_of(met),
            size: met.size.cast_unsigned(),
            element,
            len,
            bytes,
        });
    }

    fn class(&mut self, class: WholeClass<'_>) {
        let declared = class.layout.declared.iter().cloned();
        let (statics, fields): (Vec<FieldInfo>, _) = declared.partition(|field| field.is_static);
        let statics: Vec<(FieldInfo, Value)> = statics.into_iter().zip(class.statics).collect();
        self.visitor.class(&ClassRecord {
            object: class.object,
            class: class.class,
            trace: TraceId::EMPTY,
            superclass: class.superclass,
            loader: class.parts.loader,
            signers: class.parts.signers,
            protection_domain: class.parts.domain,
            statics: &statics,
            fields: &fields,
            instance_size: 0,
        });
    }

    fn goes_on(&self) -> bool {
        self.visitor.keep_going()
    }
}

/// Walks the heap for `visitor`.
pub(crate) fn walk(
    hotspot: &HotSpot,
    jni: Jni,
    visitor: &mut dyn HeapVisitor,
) -> Result<(), VmError> {
    let live = hotspot.live().ok_or(VmError::WrongPhase)?;
    // JDK 8 holds copies of retransformed classes until the next collection.
    collect_garbage(hotspot, live, jni).map_err(failed)?;
    let mut names = Names {
        tags: Tags::new(hotspot.java).map_err(failed)?,
        sites: Vec::new(),
        named: FxHashMap::default(),
    };
    let env = names.tags.env;
    let mut shapes = FxHashMap::default();
    let layouts = Layouts::read(live, jni, |mirror| {
        let class = hotspot.lock().registry.registered_class(live, jni, mirror);
        if class != ClassId(0) {
            let (array, element) = (None, ObjectHandle::NULL);
            shapes.entry(i64::from(class.0)).or_insert_with(|| {
                let _ = env.set_tag(mirror, i64::from(class.0));
                Shape {
                    array,
                    class: element,
                }
            });
        }
        class
    })?;
    names.track(hotspot, jni);
    let threads = names.name_threads(hotspot, (live, jni));
    // A copy, because other threads make sites until the walk stops them.
    let keys = hotspot.keys_of_sites();
    let trace = |site: &u32| {
        let key = (*site as usize).checked_sub(1).and_then(|at| keys.get(at));
        key.map_or(TraceId::EMPTY, |(_, trace)| *trace)
    };
    let traces = names.sites.iter().map(trace).collect();
    let hidden = hotspot.lock().registry.tracker;
    let classes = Classes {
        layouts,
        shapes,
        hidden: hidden.map(|class| i64::from(class.0)),
    };
    let visits = Visits {
        visitor,
        traces,
        threads,
    };
    let mut walker = Walker::new(DumpLevel::Values, classes, &mut names, visits);
    walker.walk_all(env).map_err(failed)
}
