//! Collections: frees are reported between GC_START and GC_FINISH, on one thread.
//!
//! Agents take their locks at GC_START and release them at GC_FINISH. This must not happen while the VM has stopped the
//! threads that own these locks, so a thread of the bridge reports a collection when the program continues. Ids are
//! never reused, so the delay cannot confuse two objects.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jvmti::sys::MethodPtr;
use jvmti::{Env, Jni, Live, Object};
use locks::{Condvar, Mutex, Rank};

use crate::bridge::{Bridge, with_profiler_paused};
use vmpi::c_interface::layout::{GcInfo, NOTHING, Payload, event};

/// Newer VMs report freed objects for some time after a collection, from a separate thread. (Enabling the event again
/// would make them report immediately, but can deadlock such a VM: both threads then wait for each other.)
const SETTLE: Duration = Duration::from_millis(10);
/// The most rounds in which `RunGC` waits for freed objects.
const PATIENCE: u32 = 50;

#[derive(Default)]
struct State {
    /// Collections not yet reported.
    finished: u32,
    /// Freed objects that are not yet reported.
    dead: Vec<usize>,
    /// Threads in `RunGC`, which report the collection themselves.
    running: u32,
    stopped: bool,
}

/// `Runtime`, for the numbers of GC_FINISH.
struct Runtime {
    object: Object,
    total: MethodPtr,
    free: MethodPtr,
}

/// The state that is not reported yet.
pub(crate) struct Collector {
    state: Mutex<State>,
    changed: Condvar,
    /// Locked while a collection is reported.
    emitting: Mutex<()>,
    /// Calls of `DisableGC` minus calls of `EnableGC`.
    held: AtomicI64,
    runtime: OnceLock<Runtime>,
    started: AtomicBool,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            state: Mutex::new(Rank::CollectorState, State::default()),
            changed: Condvar::new(),
            emitting: Mutex::new(Rank::EmittingCollection, ()),
            held: AtomicI64::new(0),
            runtime: OnceLock::new(),
            started: AtomicBool::new(false),
        }
    }
}

impl Collector {
    /// A pause has ended. The VM calls this with all threads stopped.
    pub(crate) fn finished(&self) {
        self.state.lock().finished += 1;
        self.changed.notify_all();
    }

    /// An object was freed. The VM may call this with all threads stopped.
    pub(crate) fn died(&self, tag: i64) {
        self.state.lock().dead.push(tag as usize);
        self.changed.notify_all();
    }

    /// `DisableGC` and `EnableGC`: while disabled, no report of freed objects begins. A report that has begun
    /// continues.
    pub(crate) fn hold(&self, by: i64) {
        let wraps = |held: i64| Some(held.saturating_add(by).max(0));
        let _ = self
            .held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, wraps);
        self.changed.notify_all();
    }

    fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst) > 0
    }

    /// Blocks until there is something to report; returns false when the VM ends.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return false;
            }
            let has_news = state.finished > 0 || !state.dead.is_empty();
            if has_news && state.running == 0 && !self.is_held() {
                return true;
            }
            // The timeout handles a call of `EnableGC` between the check and the wait.
            state = self.changed.wait_timeout(state, Duration::from_millis(200));
        }
    }
}

impl Bridge {
    /// Starts the thread that reports collections.
    pub(crate) fn start_collector(&'static self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        if self.collector.started.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let runtime = jni.find_class("java/lang/Runtime")?;
        let get = jni.static_method(runtime, "getRuntime", "()Ljava/lang/Runtime;")?;
        if let Some(object) = jni.call_static_object(runtime, get, &[])? {
            let _ = self.collector.runtime.set(Runtime {
                object: jni.new_global(object)?,
                total: jni.method(runtime, "totalMemory", "()J")?,
                free: jni.method(runtime, "freeMemory", "()J")?,
            });
        }
        let thread = crate::interface::new_thread(jni, "JVMPI collector")?;
        let body = move |env: Env<Live>, jni: Jni| {
            while self.collector.wait() {
                std::thread::sleep(SETTLE);
                if !self.collector.is_held() {
                    self.emit_collections(env, jni);
                }
            }
        };
        env.run_agent_thread(thread, 10, Box::new(body))
    }

    /// Reports all collections and freed objects so far, on this thread. Does nothing while another thread reports,
    /// because that one might wait for a lock of this thread.
    fn emit_collections(&self, env: Env<Live>, jni: Jni) {
        let Some(_emitting) = self.collector.emitting.try_lock() else {
            return;
        };
        with_profiler_paused(|| {
            let (finished, dead) = {
                let mut state = self.collector.state.lock();
                (
                    std::mem::take(&mut state.finished),
                    std::mem::take(&mut state.dead),
                )
            };
            if finished == 0 && dead.is_empty() {
                return;
            }
            self.meet_current(env, jni);
            self.emit_one(jni, &dead);
            for _ in 1..finished {
                self.emit_one(jni, &[]);
            }
        });
    }

    fn emit_one(&self, jni: Jni, dead: &[usize]) {
        let mut unloaded = false;
        for id in dead {
            if self.classes.remove(jni, *id) {
                unloaded = true;
                if self.is_on(event::CLASS_UNLOAD) {
                    self.send(jni.raw(), event::CLASS_UNLOAD, Payload { object: *id });
                }
            }
        }
        if unloaded {
            self.lines.clear();
            self.new_objects.clear();
        }
        if self.is_on(event::GC_START) {
            self.send(jni.raw(), event::GC_START, NOTHING);
        }
        for id in dead {
            if self.objects.remove(*id) && self.is_on(event::OBJECT_FREE) {
                self.send(jni.raw(), event::OBJECT_FREE, Payload { object: *id });
            }
        }
        if self.is_on(event::GC_FINISH) {
            let gc_info = self.memory(jni);
            self.send(jni.raw(), event::GC_FINISH, Payload { gc_info });
        }
    }

    /// The number of objects with ids, and the heap sizes that the VM returns.
    fn memory(&self, jni: Jni) -> GcInfo {
        let [total, free] = match self.collector.runtime.get() {
            Some(runtime) => [runtime.total, runtime.free]
                .map(|method| jni.call_long(runtime.object, method).unwrap_or(0)),
            None => [0, 0],
        };
        GcInfo {
            used_objects: self.objects.count() as i64,
            used_space: total - free,
            total_space: total,
        }
    }

    /// `RunGC`: when it returns, the freed objects have been reported to the agent. They are reported on this thread,
    /// which may own locks that the agent takes at GC_START.
    pub(crate) fn run_gc(&self, env: Env<Live>, jni: Jni) {
        if self.collector.is_held() {
            return;
        }
        self.collector.state.lock().running += 1;
        let _ = env.force_gc();
        let mut before = usize::MAX;
        for _ in 0..PATIENCE {
            let dead = self.collector.state.lock().dead.len();
            if dead == before {
                break;
            }
            before = dead;
            std::thread::sleep(SETTLE);
        }
        self.emit_collections(env, jni);
        self.collector.state.lock().running -= 1;
        self.collector.changed.notify_all();
    }

    /// The VM ends: reports the rest, and ends the thread.
    pub(crate) fn stop_collector(&self, env: Env<Live>, jni: Jni) {
        self.collector.state.lock().stopped = true;
        self.collector.changed.notify_all();
        let until = Instant::now() + Duration::from_secs(1);
        // A report that has begun gets time to finish.
        while self.collector.emitting.try_lock().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        if !self.collector.is_held() {
            self.emit_collections(env, jni);
        }
    }
}
