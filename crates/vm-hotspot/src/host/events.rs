//! JVMTI events, in.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jvmti::sys::MethodPtr;
use jvmti::{Agent, Env, FrameRow, Jni, Live, Object};
use vmpi::wire::Item;
use vmpi::{ArenaId, Body, EnvId, ObjectAlloc, ObjectHandle, TraceId};

use super::Host;
use super::queue::{Collection, What};
use super::stream::progress;

/// Frames that are read where inserted code and constructors stand on top.
const CONSTRUCTORS: usize = 16;
/// When the VM ends, the agent waits for the writer until it has made no progress for so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// And not longer than this: a reader may take what is left by the byte.
const AT_ALL: Duration = Duration::from_secs(30);

impl Host {
    pub(super) fn sampled(
        &self,
        env: Env<Live>,
        jni: Jni,
        object: Object,
        class: Object,
        size: i64,
    ) {
        let Some(place) = self.place.get() else {
            return;
        };
        if !self.has_room() {
            return;
        }
        let thread = EnvId(jni.raw() as u64);
        self.meet(env, thread);
        let mut rows = [FrameRow {
            method: MethodPtr(std::ptr::null_mut()),
            location: 0,
        }; super::MOST_DEPTH + CONSTRUCTORS];
        let constructors = if self.samples() { 0 } else { CONSTRUCTORS };
        let most = self.depth + constructors;
        let count = env.stack_into(None, &mut rows[..most]).unwrap_or(0);
        let hidden = self.hidden(env, jni, class, &rows[..count]);
        let rows = &rows[hidden..count.min(hidden + self.depth)];
        let (known, trace): (_, TraceId) = {
            let mut names = self.names.lock();
            // Pushed under the lock: no thread can use a name before it is reported.
            let mut tell = |item: Item| self.item(thread, item);
            (
                names.class((env, jni), class, &mut tell),
                names.trace((env, jni), rows, &mut tell),
            )
        };
        let Some(weak) = jni.weak(object) else {
            self.leave_room();
            return;
        };
        let alloc = ObjectAlloc {
            object: ObjectHandle::NULL,
            class: known.class,
            size: size.max(0).cast_unsigned(),
            arena: ArenaId(0),
            trace,
            array: known.array,
        };
        if !self.follow(thread, weak, alloc, place) {
            self.leave_room();
            jni.delete_weak(weak);
        }
    }
}

impl Agent for Host {
    fn vm_init(&self, env: Env<Live>, jni: Jni, _thread: Object) {
        let Some(host) = super::HOST.get() else {
            return;
        };
        let begun = jni.local_frame(16, || host.begin(env, jni));
        if let Err(error) = begun {
            (self.message)(&format!("events are not recorded: {error}"));
        }
    }

    fn vm_death(&self, env: Env<Live>, jni: Jni) {
        self.tell_sampled(env, jni, false);
        self.item(EnvId(0), Item::event(Body::JvmShutDown));
        self.is_stopped.store(true, Ordering::SeqCst);
        if self.writer.get().is_none() {
            return;
        }
        self.wake();
        let (finished, changed) = &self.is_finished;
        let is_open = |finished: &mut bool| !*finished;
        let (begun, mut finished) = (Instant::now(), finished.lock());
        let mut before = progress().wrapping_sub(1);
        while !*finished && before != progress() && begun.elapsed() < AT_ALL {
            before = progress();
            finished = changed.wait_timeout_while(finished, PATIENCE, is_open);
        }
    }

    fn thread_end(&self, env: Env<Live>, jni: Jni, _thread: Object) {
        self.part(env, EnvId(jni.raw() as u64));
    }

    fn sampled_alloc(
        &self,
        env: Env<Live>,
        jni: Jni,
        _thread: Object,
        object: Object,
        class: Object,
        size: i64,
    ) {
        self.sampled(env, jni, object, class, size);
    }

    fn vm_object_alloc(
        &self,
        env: Env<Live>,
        jni: Jni,
        _thread: Object,
        object: Object,
        class: Object,
        size: i64,
    ) {
        self.made_by_vm(env, jni, object, class, size);
    }

    fn class_file(&self, _redefined: Option<Object>, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        self.with_births(name, bytes)
    }

    fn gc_start(&self) {
        let mut tracked = self.tracked.lock();
        tracked.in_gc = true;
        tracked.gc_started = Instant::now();
    }

    fn gc_finish(&self) {
        let Some(place) = self.place.get() else {
            return;
        };
        let mut tracked = self.tracked.lock();
        tracked.moment = place.spaces.now();
        let is_room = self.queue.lock().takes_collection(&self.memory);
        if is_room {
            let (changes, dead) = self.look(&mut tracked, place);
            let collection = Collection {
                started: tracked.gc_started,
                changes,
                dead,
                states: place.spaces.states(),
                refused: std::mem::take(&mut tracked.refused),
                missed: std::mem::take(&mut tracked.missed),
            };
            self.push(EnvId(0), What::Gc(Box::new(collection)));
        } else {
            // The next collection that is examined finds the changes of both.
            tracked.missed += 1;
            self.memory.refuse();
        }
        tracked.in_gc = false;
        drop(tracked);
        self.gc_over.notify_all();
        self.wake();
    }

    fn object_free(&self, tag: i64) {
        self.push(EnvId(0), What::ClassGone(tag));
    }

    fn panicked(&self, callback: &'static str) {
        (self.message)(&format!(
            "internal fault in {callback}; the recording may be incomplete"
        ));
    }
}
