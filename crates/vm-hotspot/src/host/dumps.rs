//! Dumps on request: of the heap, of one object, of monitors.
//!
//! When the walk begins and all threads are stopped, tracked objects get their ids in the stream, and the events until
//! then are collected to be reported before the dump. Other objects have an id that is valid only in this dump.

use jvmti::{Env, Jni, Live, Object};
use rustc_hash::FxHashMap;
use vmpi::dump::IdLayout;
use vmpi::dump::monitor::{MonitorName, encode};
use vmpi::wire::Item;
use vmpi::{
    ArenaId, Body, ClassId, DumpLevel, EnvId, HeapDump, MonitorDump, ObjectAlloc, ObjectHandle,
    TraceId,
};

use super::names::id_of;
use super::queue::Message;
use super::stream::get_on;
use super::threads::Stack;
use super::{Entry, Host};
use crate::heap::field_layout::Layouts;
use crate::heap::records::{self, Plan};
use crate::heap::tags::{Tagged, Tags};
use crate::heap::used_monitors::{monitor_record, status_of, used_monitors};
use crate::heap::walk::{Classes, Ids, Shape, Wanted};

/// The maximum size of a heap dump in bytes: it is kept in memory, three times while it is sent (a test of `vmpi`
/// counts this).
const MOST: usize = 256 << 20;
/// Ids of objects in only one dump are above all addresses and numbers.
const PASSING_IDS: u64 = 1 << 61;

/// The result of a request, and the events before it.
pub(super) type Dumped = (Option<Body>, Vec<Message>);

/// The ids of objects in one dump.
struct Names<'h> {
    host: &'h Host,
    tags: Tags,
    /// Numbers of the tagged tracked objects, ascending.
    tracked: Vec<u64>,
    /// Their ids, once all threads are stopped.
    ids: Vec<u64>,
    /// The number of the first object that gets an id here.
    first: u64,
    /// The events until all threads were stopped.
    before: Option<Vec<Message>>,
}

impl<'h> Names<'h> {
    fn new(host: &'h Host) -> jvmti::Result<Self> {
        Ok(Self {
            host,
            tags: Tags::new(host.core.java)?,
            tracked: Vec::new(),
            ids: Vec::new(),
            first: host.tracked.lock().passing,
            before: None,
        })
    }

    /// Tags the objects that are tracked by now.
    fn track(&mut self, jni: Jni) {
        self.catch_up(jni, false);
    }

    /// Tags those that have come since; others are tracked when the walk has begun.
    fn hold(&mut self, jni: Jni) {
        self.catch_up(jni, true);
    }

    fn catch_up(&mut self, jni: Jni, is_held: bool) {
        let entries: Vec<(u64, Object)> = {
            let mut tracked = self.host.tracked.lock();
            tracked.is_held = is_held;
            let last = self.tracked.last().copied().unwrap_or(0);
            let new = tracked
                .entries
                .partition_point(|entry| entry.number <= last);
            let pair = |entry: &Entry| (entry.number, entry.weak);
            tracked.entries[new..].iter().map(pair).collect()
        };
        for (number, weak) in entries {
            // Weak references are deleted by this thread only.
            let Some(object) = jni.new_local(weak) else {
                continue;
            };
            if self.tags.track(object) {
                self.tracked.push(number);
            }
            jni.delete_local(object);
        }
    }

    /// The events before the dump.
    fn before(&mut self) -> Vec<Message> {
        if self.before.is_none() {
            self.stopped();
        }
        self.before.take().unwrap_or_default()
    }
}

impl Ids for Names<'_> {
    fn stopped(&mut self) {
        let host = self.host;
        // Threads that hold it are never inside the VM, so they continue while other threads are stopped.
        let mut tracked = host.tracked.lock();
        // The free of a missing object was reported, so the walk cannot find it.
        let unknown = PASSING_IDS | 1 << 60;
        let mut entries = tracked.entries.iter().peekable();
        let id = |number: &u64| {
            while entries.next_if(|entry| entry.number < *number).is_some() {}
            let entry = entries.next_if(|entry| entry.number == *number);
            entry.map_or(unknown | *number << 3, |entry| entry.id)
        };
        self.ids = self.tracked.iter().map(id).collect();
        self.before = Some(host.queued());
        tracked.is_held = false;
        drop(tracked);
        host.gc_over.notify_all();
    }

    fn tag(&mut self, _class: i64, _shape: Option<Shape>, _size: i64) -> i64 {
        get_on();
        self.tags.pass()
    }

    fn id(&self, tag: i64) -> ObjectHandle {
        match Tagged::of(tag) {
            None => ObjectHandle::NULL,
            Some(Tagged::Class(class)) => id_of(class),
            Some(Tagged::Tracked(number)) => {
                ObjectHandle(self.ids.get(number).copied().unwrap_or(0))
            }
            Some(Tagged::Passing(number)) => ObjectHandle(PASSING_IDS | (self.first + number) << 3),
        }
    }
}

impl Drop for Names<'_> {
    fn drop(&mut self) {
        let mut tracked = self.host.tracked.lock();
        tracked.is_held = false;
        tracked.passing = self.first + self.tags.passing;
        drop(tracked);
        self.host.gc_over.notify_all();
    }
}

impl Host {
    /// Reports and tags all classes.
    fn plan(&self, (env, jni): (Env<Live>, Jni), level: DumpLevel, tags: &Tags) -> Option<Plan> {
        let mut tagged = ClassId(0);
        let number = |mirror| {
            let class =
                self.with_names_of((env, jni), Some(mirror), |namer| namer.named(mirror, true));
            let class = class.unwrap_or(ClassId(0));
            tagged = tagged.max(class);
            if class != ClassId(0) && tags.env.tag(mirror).unwrap_or(0) == 0 {
                let _ = tags.env.set_tag(mirror, i64::from(class.0));
            }
            class
        };
        let mut layouts = Layouts::read(env, jni, number).ok()?;
        // A class that the VM does not describe.
        layouts.0.remove(&0);
        let names = &self.core.lock().stream;
        let mut shapes = FxHashMap::default();
        for (number, known) in names.all().filter(|(number, _)| *number <= tagged) {
            if names.has_no_fields(number) {
                layouts.bare(number);
            }
            let (array, class) = (known.array, known.class);
            shapes.insert(i64::from(number.0), Shape { array, class });
        }
        Some(Plan {
            level,
            classes: Classes {
                layouts,
                shapes,
                hidden: None,
            },
            threads: FxHashMap::default(),
            globals: FxHashMap::default(),
            most: MOST,
        })
    }

    /// A dump of level 1 or 2.
    pub(super) fn dump_heap(&self, env: Env<Live>, jni: Jni, level: DumpLevel) -> Option<Dumped> {
        let stacks = self.stacks(env, jni);
        let mut names = Names::new(self).ok()?;
        let mut plan = self.plan((env, jni), level, &names.tags)?;
        names.track(jni);
        for stack in &stacks {
            plan.threads
                .insert(names.tags.of(stack.thread).0, stack.trace.env);
        }
        names.hold(jni);
        let dumped = records::dump_heap(names.tags.env, plan, &mut names);
        let before = names.before();
        let traces = stacks.into_iter().map(|stack| stack.trace).collect();
        let body = |data| {
            Body::HeapDump(Box::new(HeapDump {
                level,
                data,
                traces,
            }))
        };
        Some((self.or_say(dumped).map(body), before))
    }

    /// A dump of an object that the stream has an id for: a class or a tracked object.
    pub(super) fn dump_object(&self, env: Env<Live>, jni: Jni, id: ObjectHandle) -> Option<Dumped> {
        let mirror = self.with_names((env, jni), |namer| {
            let class = namer.names.class_of(id)?;
            namer.mirror_of(class)
        });
        let object = match mirror {
            Some(mirror) => mirror,
            None => self.tracked(jni, id)?.0,
        };
        let mut names = Names::new(self).ok()?;
        let plan = self.plan((env, jni), DumpLevel::Values, &names.tags)?;
        names.track(jni);
        let mirror = jni.object_class(object)?;
        let of = names.tags.env.tag(mirror).unwrap_or(0);
        let array = plan.classes.shapes.get(&of).and_then(|shape| shape.array);
        let wanted = Wanted {
            object,
            tag: names.tags.of(object).0,
            class: of,
            array: array.map(|element| (element, jni.array_len(object))),
        };
        names.hold(jni);
        let dumped = records::dump_object(names.tags.env, plan, &mut names, wanted);
        let before = names.before();
        let body = |data| Body::ObjectDump { data };
        Some((self.or_say(dumped).map(body), before))
    }

    fn or_say(&self, dumped: Result<Vec<u8>, records::Fault>) -> Option<Vec<u8>> {
        if let Err(fault) = &dumped {
            self.message(&format!("a dump was requested and not made: {fault}"));
        }
        dumped.ok()
    }

    /// All threads, and the monitors they use. Objects of monitors that are not tracked are
    /// described first.
    pub(super) fn dump_monitors(&self, env: Env<Live>, jni: Jni) -> Option<Dumped> {
        let stacks = self.stacks(env, jni);
        let threads = stacks.iter().map(|stack| stack.thread);
        let mut used = Vec::new();
        for object in used_monitors(env, jni, threads) {
            let env_of = |thread| self.env_of(env, thread);
            let record = monitor_record((env, jni), object, ObjectHandle::NULL, env_of);
            used.extend(record.map(|record| (object, record)));
        }
        let mut names = Names::new(self).ok()?;
        names.track(jni);
        names.hold(jni);
        let mut named = Vec::new();
        for (object, record) in used {
            let (tag, is_new) = names.tags.of(object);
            if is_new {
                self.describe(env, jni, object, names.id(tag));
            }
            named.push((tag, record));
        }
        let before = names.before();
        let mut data = Vec::new();
        for (tag, mut record) in named {
            record.monitor = MonitorName::Java(names.id(tag));
            encode(&mut data, &record, IdLayout::NATIVE);
        }
        let status = |stack: &Stack| status_of(stack.state, false);
        let dump = MonitorDump {
            data,
            status: stacks.iter().map(status).collect(),
            traces: stacks.into_iter().map(|stack| stack.trace).collect(),
        };
        Some((Some(Body::MonitorDump(Box::new(dump))), before))
    }

    /// Reports the class of an object with an id in only one dump; it is in no arena.
    fn describe(&self, env: Env<Live>, jni: Jni, object: Object, id: ObjectHandle) {
        let Some(mirror) = jni.object_class(object) else {
            return;
        };
        let known = self.with_names_of((env, jni), Some(mirror), |namer| namer.class(mirror));
        jni.delete_local(mirror);
        let alloc = ObjectAlloc {
            object: id,
            class: known.class,
            size: env.object_size(object).unwrap_or(0),
            arena: ArenaId(0),
            trace: TraceId::EMPTY,
            array: known.array,
        };
        let (requested, body) = (true, Body::ObjectAlloc(alloc));
        self.item(EnvId(0), Item::Event { requested, body });
    }
}
