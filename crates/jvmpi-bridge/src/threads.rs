//! Threads: the interface identifies them by their `JNIEnv*`.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jvmti::sys::RawEnv;
use jvmti::{Env, Jni, Live, Object};
use locks::{Rank, RwLock};
use rustc_hash::FxHashMap;
use vm_hotspot::{ThreadEnvs, status_of};

use crate::bridge::Bridge;
use crate::classes::c_string;
use vmpi::c_interface::layout::{FAIL, ObjectId, Payload, SUCCESS, ThreadStart, event};

thread_local! {
    /// Whether the current thread is known.
    static MET: Cell<bool> = const { Cell::new(false) };
}

/// How long an ending thread waits for events that another thread reports about it: an agent's handler may itself wait
/// for that thread.
const PATIENCE: Duration = Duration::from_secs(1);

/// A thread, or the agent's data for one that is not known yet.
#[derive(Default)]
pub(crate) struct Thread {
    /// A weak reference to the `Thread` object, and its id.
    who: OnceLock<(Object, ObjectId)>,
    /// Whether other threads may report events about it, and how many are doing so.
    window: Window,
    /// The pointer that the agent has set.
    local: AtomicPtr<c_void>,
    /// Whether the agent has suspended it, which `GetThreadStatus` does not show.
    suspended: AtomicBool,
    /// CPU time at the last suspension, and at the previous one.
    cpu: [AtomicI64; 2],
}

/// Other threads may report events about a thread between the reports of its start and of its end (then the high bit is
/// set); the other bits count the threads that are doing so. No lock is held meanwhile.
#[derive(Default)]
struct Window(AtomicU32);

impl Window {
    const OPEN: u32 = 1 << 31;

    fn open(&self) {
        self.0.fetch_or(Self::OPEN, Ordering::SeqCst);
    }

    /// Calls `emit` unless the thread has not been reported yet, or is ending.
    fn emit(&self, emit: impl FnOnce()) {
        let more = |state: u32| (state & Self::OPEN != 0).then(|| state + 1);
        let order = Ordering::SeqCst;
        if self.0.fetch_update(order, order, more).is_ok() {
            emit();
            self.0.fetch_sub(1, order);
        }
    }

    /// Ends reports about the thread; waits a limited time for reports that have begun.
    fn close(&self) {
        let mut state = self.0.fetch_and(!Self::OPEN, Ordering::SeqCst);
        let since = Instant::now();
        while state & !Self::OPEN != 0 && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(50));
            state = self.0.load(Ordering::SeqCst);
        }
    }
}

/// All threads.
pub(crate) struct Threads {
    by_env: RwLock<FxHashMap<usize, Arc<Thread>>>,
    env_of: OnceLock<ThreadEnvs>,
}

impl Default for Threads {
    fn default() -> Self {
        Self {
            by_env: RwLock::new(Rank::BridgeThreads, FxHashMap::default()),
            env_of: OnceLock::new(),
        }
    }
}

impl Threads {
    /// Measures on the current thread how the `JNIEnv` of any other thread is found.
    pub(crate) fn begin(&self, jni: Jni, current: Object) -> jvmti::Result<()> {
        let _ = self.env_of.set(ThreadEnvs::measure(jni, current)?);
        Ok(())
    }

    /// The `JNIEnv*` of a live thread; null if it has none.
    pub(crate) fn env_of(&self, jni: Jni, thread: Object) -> RawEnv {
        let env_of = self.env_of.get();
        env_of.map_or(std::ptr::null_mut(), |env_of| env_of.of(jni, thread))
    }

    fn find(&self, env: RawEnv) -> Option<Arc<Thread>> {
        let by_env = self.by_env.read();
        by_env.get(&(env as usize)).cloned()
    }

    fn entry(&self, env: RawEnv) -> Arc<Thread> {
        if let Some(found) = self.find(env) {
            return found;
        }
        let mut by_env = self.by_env.write();
        by_env.entry(env as usize).or_default().clone()
    }

    /// Whether the thread has been reported to the agent.
    pub(crate) fn is_known(&self, env: RawEnv) -> bool {
        self.find(env)
            .is_some_and(|thread| thread.who.get().is_some())
    }

    /// Calls `emit`, which reports an event about another thread, unless that thread is not reported yet or is ending.
    pub(crate) fn emit_of(&self, env: RawEnv, emit: impl FnOnce()) {
        if let Some(thread) = self.find(env) {
            thread.window.emit(emit);
        }
    }

    /// Ends reports of other threads about this one.
    pub(crate) fn close(&self, env: RawEnv) {
        if let Some(thread) = self.find(env) {
            thread.window.close();
        }
    }

    /// A known thread's object, as a local reference.
    pub(crate) fn object(&self, jni: Jni, env: RawEnv) -> Option<Object> {
        jni.new_local(self.find(env)?.who.get()?.0)
    }

    /// The id of a known thread's object, else 0.
    pub(crate) fn id(&self, env: RawEnv) -> ObjectId {
        let thread = self.find(env);
        thread
            .and_then(|thread| thread.who.get().map(|who| who.1))
            .unwrap_or(0)
    }

    /// The env of the known thread whose `Thread` object has this id.
    pub(crate) fn env_with_id(&self, id: ObjectId) -> Option<RawEnv> {
        let by_env = self.by_env.read();
        let is_it = |thread: &Thread| thread.who.get().is_some_and(|who| who.1 == id);
        let found = by_env.iter().find(|(_, thread)| is_it(thread));
        found.map(|(env, _)| *env as RawEnv)
    }

    pub(crate) fn object_with_id(&self, jni: Jni, id: ObjectId) -> Option<Object> {
        self.object(jni, self.env_with_id(id)?)
    }

    /// The pointer that the agent has set for a thread.
    pub(crate) fn local(&self, env: RawEnv) -> *mut c_void {
        self.find(env).map_or(std::ptr::null_mut(), |thread| {
            thread.local.load(Ordering::Acquire)
        })
    }

    /// Sets the agent's pointer for a thread.
    pub(crate) fn set_local(&self, env: RawEnv, data: *mut c_void) {
        if !env.is_null() {
            self.entry(env).local.store(data, Ordering::Release);
        }
    }
}

impl Bridge {
    /// Makes a thread known, and reports it to the agent if its event is enabled. Only the first call does this.
    pub(crate) fn meet(&self, env: Env<Live>, jni: Jni, raw: RawEnv, thread: Object) {
        if raw.is_null() || self.threads.is_known(raw) {
            return;
        }
        let id = self.id_of(env, jni, thread);
        let Ok(weak) = jni.new_weak(thread) else {
            return;
        };
        let known = self.threads.entry(raw);
        if known.who.set((weak, id)).is_err() {
            jni.delete_weak(weak);
            return;
        }
        if self.is_on(event::THREAD_START) {
            self.send_thread(env, jni, raw, thread, 0);
        }
        known.window.open();
    }

    /// Makes the current thread known before an event of it, if no thread event has announced it.
    pub(crate) fn meet_current(&self, env: Env<Live>, jni: Jni) {
        if MET.get() {
            return;
        }
        if !self.threads.is_known(jni.raw()) {
            jni.local_frame(8, || {
                if let Ok(Some(thread)) = env.current_thread() {
                    self.meet(env, jni, jni.raw(), thread);
                }
            });
        }
        MET.set(true);
    }

    /// Reports a thread to the agent.
    pub(crate) fn send_thread(
        &self,
        env: Env<Live>,
        jni: Jni,
        raw: RawEnv,
        thread: Object,
        more: i32,
    ) {
        let row = env.thread_info(Some(thread)).unwrap_or_default();
        let (name, group, parent) = (
            c_string(&row.name),
            c_string(&row.group),
            c_string(&row.parent_group),
        );
        let thread_start = ThreadStart {
            name: name.as_ptr(),
            group: group.as_ptr(),
            parent: parent.as_ptr(),
            thread: self.threads.id(raw),
            env: raw,
        };
        let kind = event::THREAD_START | more;
        self.send(jni.raw(), kind, Payload { thread_start });
    }

    /// The current thread has ended as a Java thread. Its `JNIEnv*` may be reused by another thread, or the same thread
    /// may start again as a new one, as `main` does.
    pub(crate) fn forget_current(&self, jni: Jni) {
        let raw = jni.raw();
        MET.set(false);
        let mut by_env = self.threads.by_env.write();
        let removed = by_env.remove(&(raw as usize));
        drop(by_env);
        if let Some((weak, _)) = removed.and_then(|thread| thread.who.get().copied()) {
            jni.delete_weak(weak);
        }
    }

    /// The status of a thread, 0 if it is unknown.
    pub(crate) fn status(&self, env: Env<Live>, jni: Jni, raw: RawEnv) -> i32 {
        let Some((known, thread)) = self
            .threads
            .find(raw)
            .and_then(|known| Some((known, self.threads.object(jni, raw)?)))
        else {
            return 0;
        };
        let bits = env.thread_state(thread).unwrap_or(0);
        status_of(bits, known.suspended.load(Ordering::SeqCst))
    }

    /// Suspends a thread. The current thread is not suspended, because no thread could resume it.
    pub(crate) fn suspend(&self, env: Env<Live>, jni: Jni, raw: RawEnv) -> i32 {
        let Some(known) = self.threads.find(raw).filter(|_| raw != jni.raw()) else {
            return FAIL;
        };
        jni.local_frame(4, || {
            let Some(thread) = self.threads.object(jni, raw) else {
                return FAIL;
            };
            if env.suspend(thread).is_err() {
                return FAIL;
            }
            known.suspended.store(true, Ordering::SeqCst);
            let now = env.thread_cpu_time(thread).unwrap_or(0);
            let before = known.cpu[0].swap(now, Ordering::SeqCst);
            known.cpu[1].store(before, Ordering::SeqCst);
            SUCCESS
        })
    }

    /// Resumes a thread that the agent suspended.
    pub(crate) fn resume(&self, env: Env<Live>, jni: Jni, raw: RawEnv) -> i32 {
        let Some(known) = self.threads.find(raw) else {
            return FAIL;
        };
        if !known.suspended.swap(false, Ordering::SeqCst) {
            return FAIL;
        }
        jni.local_frame(4, || match self.threads.object(jni, raw) {
            Some(thread) if env.resume(thread).is_ok() => SUCCESS,
            _ => FAIL,
        })
    }

    /// Whether a thread used CPU time between its last two suspensions.
    pub(crate) fn has_run(&self, raw: RawEnv) -> bool {
        self.threads.find(raw).is_some_and(|known| {
            known.cpu[0].load(Ordering::SeqCst) > known.cpu[1].load(Ordering::SeqCst)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_reported_of_a_thread_before_its_start_and_after_its_end() {
        let window = Window::default();
        let count = AtomicU32::new(0);
        let emit = || window.emit(|| _ = count.fetch_add(1, Ordering::SeqCst));
        emit();
        assert_eq!(count.load(Ordering::SeqCst), 0);
        window.open();
        emit();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        // An ending thread waits for reports that have begun.
        let is_reported = AtomicBool::new(false);
        let (begun, has_begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                window.emit(|| {
                    begun.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(20));
                    is_reported.store(true, Ordering::SeqCst);
                });
            });
            has_begun.recv().unwrap();
            window.close();
            assert!(is_reported.load(Ordering::SeqCst));
        });
        emit();
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn an_agent_may_keep_something_for_a_thread_not_known_yet() {
        let threads = Threads::default();
        let env = 0x1000 as RawEnv;
        let data = 7 as *mut c_void;
        assert!(threads.local(env).is_null());
        threads.set_local(env, data);
        threads.set_local(std::ptr::null_mut(), data);
        assert_eq!(threads.local(env), data);
        assert!(!threads.is_known(env) && threads.id(env) == 0);
        assert!(threads.local(std::ptr::null_mut()).is_null());
    }
}
