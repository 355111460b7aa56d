//! Commands of the front end, carried out by the writer between two rounds.

use std::sync::atomic::Ordering;
use std::time::Instant;

use jvmti::{Env, Jni, Live, Object};
use vmpi::dump::heap::encode_ids;
use vmpi::dump::{IdLayout, IdRecord};
use vmpi::mode::Request;
use vmpi::wire::{Answer, Command, Item, Numbered};
use vmpi::{
    Body, DumpLevel, EnvId, EventKind, HeapDump, ObjectAlloc, ObjectHandle, Outcome, TraceId,
};

use super::dumps::Dumped;
use super::queue::Message;
use super::stream::Stream;
use super::{Entry, Host};

/// Events of this host that can be disabled: they are then left out of the stream. [`EventKind::ObjectAlloc`] is
/// switched at its source.
const SWITCHED: [EventKind; 8] = [
    EventKind::ObjectFree,
    EventKind::ObjectMove,
    EventKind::GcStart,
    EventKind::GcFinish,
    EventKind::ThreadStart,
    EventKind::ThreadEnd,
    EventKind::ClassLoad,
    EventKind::ClassUnload,
];

impl Host {
    /// Carries out one command; its events are in the stream before the answer. Returns whether garbage was collected
    /// meanwhile.
    pub(super) fn answer(
        &self,
        env: Env<Live>,
        jni: Jni,
        stream: &mut Stream,
        asked: Numbered,
    ) -> bool {
        let mut messages = None;
        let mut dumped = |dumped: Option<Dumped>| {
            let (body, before) = dumped.unzip();
            messages = before;
            found(body.flatten())
        };
        let (outcome, body) = jni.local_frame(8, || match asked.command {
            Command::Enable(kind) => (self.switch((env, jni), stream, kind, true), None),
            Command::Disable(kind) => (self.switch((env, jni), stream, kind, false), None),
            Command::RunGc => match env.force_gc() {
                Ok(()) => (Outcome::Success, None),
                Err(_) => (Outcome::Fail, None),
            },
            Command::HeapDump(DumpLevel::Ids) => dumped(Some(self.dump_of_ids())),
            Command::HeapDump(level) => dumped(self.dump_heap(env, jni, level)),
            Command::MonitorDump => dumped(self.dump_monitors(env, jni)),
            Command::Request(kind, object) => match Request::new(kind, object) {
                Some(request) => dumped(self.requested(env, jni, request)),
                None => (Outcome::NotAvailable, None),
            },
        });
        let messages = messages.unwrap_or_else(|| self.queued());
        // An object that was freed after the moment of a dump is in the dump, so its free must not be reported before
        // it.
        let has_collected = self.emit_all(messages, stream, jni, body.is_none());
        if let Some(body) = body {
            let requested = true;
            stream.item(Instant::now(), EnvId(0), &Item::Event { requested, body });
        }
        stream.answer(Answer {
            serial: asked.serial,
            outcome,
        });
        has_collected
    }

    /// The answer to a request, and the events before it.
    fn requested(&self, env: Env<Live>, jni: Jni, request: Request) -> Option<Dumped> {
        let now = |body| (Some(body), self.queued());
        match request {
            Request::ClassLoad(class) => {
                let load = self.with_names((env, jni), |namer| namer.load_of(class))?;
                Some(now(Body::ClassLoad(Box::new(load))))
            }
            Request::ObjectAlloc(object) => {
                let (alloc, before) = self.alloc_of(env, jni, object)?;
                Some((Some(Body::ObjectAlloc(alloc)), before))
            }
            Request::ThreadStart(object) => {
                let (held, entry) = self.tracked(jni, object)?;
                let (entry, before) = self.at_once(|entries| now_of(entries, entry));
                let id = ObjectHandle(entry.id);
                Some((self.start_of(env, jni, held, id), before))
            }
            Request::ObjectDump(object) => self.dump_object(env, jni, object),
            Request::HeapDump(DumpLevel::Ids) => Some(self.dump_of_ids()),
            Request::HeapDump(level) => self.dump_heap(env, jni, level),
            Request::MonitorDump => self.dump_monitors(env, jni),
        }
    }

    fn switch(
        &self,
        (env, jni): (Env<Live>, Jni),
        stream: &mut Stream,
        kind: EventKind,
        on: bool,
    ) -> Outcome {
        if kind == EventKind::ObjectAlloc {
            let is_here = self.core.samples_allocations() || self.switch_sampling(env, jni, on);
            if !is_here {
                return Outcome::NotAvailable;
            }
            self.is_on.store(on, Ordering::Relaxed);
            return Outcome::Success;
        }
        if !SWITCHED.contains(&kind) {
            return Outcome::NotAvailable;
        }
        stream.switch(kind, on);
        Outcome::Success
    }

    /// The result of `read` on the tracked objects, and all events until then: allocations and collections are queued
    /// under the same lock.
    fn at_once<T>(&self, read: impl FnOnce(&[Entry]) -> T) -> (T, Vec<Message>) {
        let tracked = self.tracked.lock();
        let answer = read(&tracked.entries);
        (answer, self.queued())
    }

    /// Where a tracked object is, and what happened before. The stack that made it is
    /// not known any more.
    fn alloc_of(
        &self,
        env: Env<Live>,
        jni: Jni,
        object: ObjectHandle,
    ) -> Option<(ObjectAlloc, Vec<Message>)> {
        let (held, entry) = self.tracked(jni, object)?;
        let mirror = jni.object_class(held)?;
        let known = self.with_names_of((env, jni), Some(mirror), |namer| namer.class(mirror));
        let size = env.object_size(held).ok()?;
        let (now, before) = self.at_once(|entries| now_of(entries, entry));
        let alloc = ObjectAlloc {
            object: ObjectHandle(now.id),
            class: known.class,
            size,
            arena: now.arena,
            trace: TraceId::EMPTY,
            array: known.array,
        };
        Some((alloc, before))
    }

    /// A local reference to a tracked object, and its entry.
    pub(super) fn tracked(&self, jni: Jni, object: ObjectHandle) -> Option<(Object, Entry)> {
        let by_id = |entry: &&Entry| entry.id == object.0;
        let entry = *self.tracked.lock().entries.iter().find(by_id)?;
        // Only this thread deletes weak references.
        Some((jni.new_local(entry.weak)?, entry))
    }

    /// The tracked objects (in a sampled stream, the live sampled ones), and the events before.
    fn dump_of_ids(&self) -> Dumped {
        let record = |entry: &Entry| IdRecord {
            object: ObjectHandle(entry.id),
            array: entry.array,
        };
        let (ids, before) =
            self.at_once(|entries| entries.iter().map(record).collect::<Vec<IdRecord>>());
        let dump = HeapDump {
            level: DumpLevel::Ids,
            data: encode_ids(&ids, IdLayout::NATIVE),
            traces: Vec::new(),
        };
        (Some(Body::HeapDump(Box::new(dump))), before)
    }
}

/// The entry of an object that has a reference and may have been moved meanwhile.
fn now_of(entries: &[Entry], entry: Entry) -> Entry {
    let now = entries.binary_search_by_key(&entry.number, |entry| entry.number);
    now.map_or(entry, |at| entries[at])
}

fn found(body: Option<Body>) -> (Outcome, Option<Body>) {
    match body {
        Some(body) => (Outcome::Success, Some(body)),
        None => (Outcome::Fail, None),
    }
}
