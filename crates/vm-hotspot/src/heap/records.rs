//! Heap dumps of levels 0 to 2 and object dumps, as records of [`vmpi::dump`].

use jvmti::{Env, Live, Reference};
use rustc_hash::FxHashMap;
use vmpi::dump::heap::{encode, encode_ids};
use vmpi::dump::{ClassDump, HeapRecord, IdLayout, IdRecord, RootKind, element_bytes, field_bytes};
use vmpi::{BasicType, DumpLevel, EnvId, ObjectHandle, RefId, Value};

use crate::heap::walk::{Classes, Ids, Met, Shape, Sink, Walker, Wanted, WholeClass};

/// What is dumped, and what a dump must know beforehand. Maps are by tag.
pub struct Plan {
    /// How much is dumped.
    pub level: DumpLevel,
    /// All classes.
    pub classes: Classes,
    /// Threads.
    pub threads: FxHashMap<i64, EnvId>,
    /// Objects that a JNI global reference is known of.
    pub globals: FxHashMap<i64, RefId>,
    /// Bytes that a dump may have.
    pub most: usize,
}

/// Encodes a walk.
struct Records {
    level: DumpLevel,
    threads: FxHashMap<i64, EnvId>,
    globals: FxHashMap<i64, RefId>,
    most: usize,
    /// Records of level 0.
    list: Vec<IdRecord>,
    out: Vec<u8>,
}

impl Records {
    fn new(
        level: DumpLevel,
        threads: FxHashMap<i64, EnvId>,
        globals: FxHashMap<i64, RefId>,
        most: usize,
    ) -> Self {
        Self {
            level,
            threads,
            globals,
            most,
            list: Vec::new(),
            out: Vec::new(),
        }
    }

    fn put(&mut self, record: &HeapRecord) {
        encode(&mut self.out, record, self.level, IdLayout::NATIVE);
    }
}

impl Sink for Records {
    fn met(&mut self, object: ObjectHandle, shape: Option<Shape>) {
        if self.level == DumpLevel::Ids {
            let array = shape.and_then(|shape| shape.array);
            self.list.push(IdRecord { object, array });
        }
    }

    fn root(&mut self, tag: i64, object: ObjectHandle, reference: &Reference<'_>) {
        let thread = |tag: i64| self.threads.get(&tag).copied();
        let place = reference.stack.map(|(tag, _, depth)| (thread(tag), depth));
        let (env, depth) = place.map_or((EnvId(0), -1), |(env, depth)| {
            (env.unwrap_or(EnvId(0)), depth)
        });
        let why = match reference.kind {
            21 => {
                let known = self.globals.get(&tag);
                RootKind::JniGlobal(known.copied().unwrap_or(RefId(0)))
            }
            22 => RootKind::StickyClass,
            23 => RootKind::MonitorUsed,
            24 => RootKind::JavaFrame(env, depth),
            25 => RootKind::JniLocal(env, depth),
            26 => RootKind::ThreadBlock(thread(tag).unwrap_or(EnvId(0))),
            _ => RootKind::Unknown,
        };
        self.put(&HeapRecord::Root { object, why });
    }

    fn held(&mut self, object: ObjectHandle) {
        let why = RootKind::Unknown;
        self.put(&HeapRecord::Root { object, why });
    }

    fn instance(&mut self, met: &Met, values: &[Value]) {
        let references_only = self.level != DumpLevel::Values;
        self.put(&HeapRecord::Instance {
            object: met.object,
            class: met.class_object,
            fields: field_bytes(values, references_only, IdLayout::NATIVE),
        });
    }

    fn object_array(&mut self, met: &Met, elements: Vec<ObjectHandle>) {
        self.put(&HeapRecord::ObjectArray {
            object: met.object,
            element_class: met.shape.map_or(ObjectHandle::NULL, |shape| shape.class),
            elements,
        });
    }

    fn primitive_array(&mut self, met: &Met, element: BasicType, len: u32, bytes: &[u8]) {
        let Some(width) = element.width() else {
            return;
        };
        let full = self.level == DumpLevel::Values;
        self.put(&HeapRecord::PrimitiveArray {
            object: met.object,
            element,
            len,
            data: element_bytes(if full { bytes } else { &[] }, width),
        });
    }

    fn class(&mut self, class: WholeClass<'_>) {
        let parts = class.parts;
        self.put(&HeapRecord::Class(ClassDump {
            class: class.object,
            superclass: class.superclass,
            loader: parts.loader,
            signers: parts.signers,
            protection_domain: parts.domain,
            instance_size: parts.instance_size,
            interfaces: class.interfaces,
            constants: parts.constants,
            statics: class.statics,
        }));
    }

    fn goes_on(&self) -> bool {
        self.out.len() <= self.most
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

impl Plan {
    fn walker(self, ids: &mut dyn Ids) -> Walker<'_, Records> {
        let records = Records::new(self.level, self.threads, self.globals, self.most);
        Walker::new(self.level, self.classes, ids, records)
    }
}

/// Dumps what the roots reach; `env` has the tags.
///
/// # Errors
/// As [`Fault`] says.
pub fn dump_heap(env: Env<Live>, plan: Plan, ids: &mut dyn Ids) -> Result<Vec<u8>, Fault> {
    let mut walker = plan.walker(ids);
    walker.walk_all(env)?;
    let records = walker.sink;
    match records.level {
        DumpLevel::Ids => Ok(encode_ids(&records.list, IdLayout::NATIVE)),
        _ if !records.goes_on() => Err(Fault::TooLarge(records.most)),
        _ => Ok(records.out),
    }
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
    let mut walker = plan.walker(ids);
    walker.walk_one(env, wanted)?;
    let records = walker.sink;
    match records.out.len() {
        0 => Err(Fault::Missing),
        _ if !records.goes_on() => Err(Fault::TooLarge(records.most)),
        _ => Ok(records.out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::field_layout::{Layout, Layouts};
    use crate::heap::walk::Shape;
    use jvmti::{HeapWalk, Walk};
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
    }

    /// One step of a walk: the kind, who holds, whom, and the class of whom.
    fn step(
        gather: &mut Walker<'_, Records>,
        kind: i32,
        from: Option<i64>,
        to: i64,
        class: i64,
    ) -> i64 {
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
        let classes = Classes {
            layouts: Layouts(known.collect()),
            shapes: [(1, shape), (2, shape)].into_iter().collect(),
            hidden: None,
        };
        let (threads, globals) = (FxHashMap::default(), FxHashMap::default());
        let records = Records::new(DumpLevel::Values, threads, globals, 1 << 20);
        let mut ids = Plain(100);
        let mut gather = Walker::new(DumpLevel::Values, classes, &mut ids, records);
        // A loader holds a class (an object of `Class`, which is 1) that was not planned for.
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
        let (records, damage) = decode(
            &gather.sink.out,
            DumpLevel::Values,
            IdLayout::NATIVE,
            &shapes,
        );
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
