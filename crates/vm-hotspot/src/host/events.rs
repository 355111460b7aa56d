//! Callbacks of the VM, as events of the stream.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jvmti::sys::MethodPtr;
use jvmti::{Env, FrameRow, Jni, Live, Object};
use vmpi::wire::Item;
use vmpi::{ArenaId, Body, ClassId, EnvId, ObjectAlloc, ObjectHandle};

use super::Host;
use super::queue::{Collection, What};
use super::stream::progress;

/// Additional frames that are read, for inserted code and constructors at the top.
const CONSTRUCTORS: usize = 16;
/// When the VM ends, the agent waits for the writer until it has made no progress for this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// It waits at most this long, because a reader may read byte by byte.
const AT_ALL: Duration = Duration::from_secs(30);

impl Host {
    /// The current thread has allocated an object that must be reported.
    pub(crate) fn sampled(
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
        if !self.is_on.load(Ordering::Relaxed) || !self.has_room() {
            return;
        }
        let mut rows = [FrameRow {
            method: MethodPtr(std::ptr::null_mut()),
            location: 0,
        }; super::MOST_DEPTH + CONSTRUCTORS];
        let constructors = match self.core.samples_allocations() {
            true => 0,
            false => CONSTRUCTORS,
        };
        let most = self.depth + constructors;
        let count = env.stack_into(None, &mut rows[..most]).unwrap_or(0);
        let hidden = self.hidden(env, jni, class, &rows[..count]);
        let rows = &rows[hidden..count.min(hidden + self.depth)];
        let (thread, known, trace) = self.with_names_of((env, jni), Some(class), |namer| {
            let thread = namer.current_thread();
            (thread, namer.class(class), namer.trace(rows))
        });
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
        if !self.track(thread, weak, alloc, place) {
            self.leave_room();
            jni.delete_weak(weak);
        }
    }
}

impl Host {
    /// The VM ends, or the recording: waits until the writer has written everything.
    pub(crate) fn end(&self, jni: Jni) {
        self.switch_inserted(jni, false);
        self.is_on.store(false, Ordering::Relaxed);
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

    /// A collection begins. Called by the VM thread.
    pub(crate) fn collecting(&self) {
        if self.place.get().is_none() {
            return;
        }
        let mut tracked = self.tracked.lock();
        tracked.in_gc = true;
        tracked.gc_started = Instant::now();
    }

    /// A collection has ended. Called by the VM thread.
    pub(crate) fn collected(&self) {
        let Some(place) = self.place.get() else {
            return;
        };
        let mut tracked = self.tracked.lock();
        if !tracked.in_gc {
            // It began before the stream did.
            return;
        }
        if self.is_stopped.load(Ordering::SeqCst) {
            tracked.in_gc = false;
            drop(tracked);
            return self.gc_over.notify_all();
        }
        tracked.moment = place.spaces.now();
        let is_room = self.queue.lock().takes_collection(self.memory());
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
            // The next processed collection finds the changes of both.
            tracked.missed += 1;
            self.memory().refuse();
        }
        tracked.in_gc = false;
        drop(tracked);
        self.gc_over.notify_all();
        self.wake();
    }

    /// A class was unloaded. Called by a thread of the VM.
    pub(crate) fn class_freed(&self, class: ClassId) {
        // Without a writer, it would stay in the queue.
        if self.writer.get().is_some() && !self.is_stopped.load(Ordering::SeqCst) {
            self.push(EnvId(0), What::ClassGone(class));
        }
    }
}
