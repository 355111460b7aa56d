//! HEAP_DUMP at its three levels, and OBJECT_DUMP, for the agent.

use jvmti::{Env, Jni, Live};
use rustc_hash::FxHashMap;
use vm_hotspot::heap::field_layout::Layouts;
use vm_hotspot::heap::records::{self, Plan};
use vm_hotspot::heap::walk::{Classes, Ids, Shape, Wanted};
use vmpi::{ClassId, DumpLevel, EnvId, ObjectHandle, RefId};

use crate::bridge::Bridge;
use crate::classes::kind_of;
use crate::monitor_dump::Stacks;
use crate::objects::{Objects, Record, STEP, narrow};
use vmpi::c_interface::layout::{HeapDump, ObjectDump, ObjectId, Payload, REQUESTED, event};
use vmpi::dump::basic_type;

/// The class number for [`Layouts`]: the id divided by the step.
fn number(id: ObjectId) -> ClassId {
    ClassId((id / STEP) as u32)
}

/// Heap walk tags, which are ids.
struct Named<'a>(&'a Objects);

impl Ids for Named<'_> {
    fn tag(&mut self, class: i64, shape: Option<Shape>, size: i64) -> i64 {
        let of_instances = shape.map(|shape| shape.class.0 as ObjectId);
        let record = Record {
            class: of_instances.unwrap_or(class as ObjectId),
            kind: kind_of(shape.and_then(|shape| shape.array)),
            size: narrow(size),
        };
        self.0.add(record) as i64
    }

    fn id(&self, tag: i64) -> ObjectHandle {
        ObjectHandle(tag.cast_unsigned())
    }

    fn place(&self, tag: i64) -> usize {
        tag as usize / STEP
    }

    fn class(&self, tag: i64) -> ClassId {
        number(tag as ObjectId)
    }

    fn class_tag(&self, class: ClassId) -> i64 {
        (class.0 as usize * STEP) as i64
    }
}

impl Bridge {
    /// Collects everything that a walk needs before it starts.
    fn plan(
        &self,
        env: Env<Live>,
        jni: Jni,
        level: DumpLevel,
        stacks: Option<&Stacks>,
    ) -> Option<Plan> {
        self.name_all_classes(env, jni);
        let name = |mirror| number(self.name_class(env, jni, mirror));
        let mut layouts = Layouts(FxHashMap::default());
        if level > DumpLevel::Ids {
            let bare = self.complete_classes(env, jni);
            layouts = Layouts::read(env, jni, name).ok()?;
            // The fields were not reported to the agent, even if the VM knows them by now.
            bare.into_iter().for_each(|id| layouts.bare(number(id)));
        }
        let envs = stacks.into_iter().flat_map(Stacks::envs);
        let thread = |(thread, raw)| (self.id_of(env, jni, thread) as i64, EnvId(raw as u64));
        let shape = |(id, (kind, class)): (ObjectId, (i32, ObjectId))| {
            let array = basic_type(kind as u8);
            let class = ObjectHandle(class as u64);
            (id as i64, Shape { array, class })
        };
        let global = |(id, raw): (ObjectId, usize)| (id as i64, RefId(raw as u64));
        Some(Plan {
            level,
            classes: Classes {
                layouts,
                shapes: self.classes.shapes().into_iter().map(shape).collect(),
                hidden: None,
            },
            threads: envs.map(thread).collect(),
            globals: self.refs.by_object().into_iter().map(global).collect(),
            most: usize::MAX,
        })
    }

    /// Dumps the heap; returns whether that was possible.
    pub(crate) fn dump_heap(&self, env: Env<Live>, jni: Jni, level: DumpLevel) -> bool {
        let mut stacks = (level > DumpLevel::Ids).then(|| Stacks::read(self, env, jni));
        let Some(plan) = self.plan(env, jni, level, stacks.as_ref()) else {
            return false;
        };
        let dumped = {
            let _naming = self.objects.naming();
            records::dump_heap(env, plan, &mut Named(&self.objects))
        };
        let Ok(bytes) = dumped else {
            return false;
        };
        let traces = stacks.as_mut().map(Stacks::traces).unwrap_or_default();
        let bytes = bytes.as_ptr_range();
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

    /// Dumps one object; returns whether it exists.
    pub(crate) fn dump_object(&self, env: Env<Live>, jni: Jni, id: ObjectId) -> bool {
        let Some(object) = self.object_of(env, jni, id) else {
            return false;
        };
        let Some(plan) = self.plan(env, jni, DumpLevel::Values, None) else {
            return false;
        };
        let Some(record) = self.objects.get(id) else {
            return false;
        };
        let class = jni
            .object_class(object)
            .map(|class| self.name_class(env, jni, class));
        let wanted = Wanted {
            object,
            tag: id as i64,
            class: class.unwrap_or(0) as i64,
            array: basic_type(record.kind as u8).map(|kind| (kind, jni.array_len(object))),
        };
        let dumped = {
            let _naming = self.objects.naming();
            records::dump_object(env, plan, &mut Named(&self.objects), wanted)
        };
        let Ok(bytes) = dumped else {
            return false;
        };
        let object_dump = ObjectDump {
            len: i32::try_from(bytes.len()).unwrap_or(i32::MAX),
            data: bytes.as_ptr(),
        };
        let kind = event::OBJECT_DUMP | REQUESTED;
        self.send(jni.raw(), kind, Payload { object_dump });
        true
    }
}
