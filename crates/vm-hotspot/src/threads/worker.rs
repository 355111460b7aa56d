//! Threads of the agent that wait for jobs and do one after the other.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use jvmti::{Agent, Env, Jni, Live};
use locks::{Mutex, Rank};

use crate::instrument::natives::with_agent_guard;
use crate::vm::hotspot::HotSpot;

type Job = Box<dyn FnOnce(Env<Live>, Jni) + Send>;

/// A worker thread.
pub(crate) struct Worker {
    /// The recording that it belongs to, and ends with.
    hotspot: &'static HotSpot,
    /// Jobs that it has not begun; `None` if it has ended and takes no more.
    jobs: Mutex<Option<VecDeque<Job>>>,
    thread: OnceLock<Thread>,
    is_dismissed: AtomicBool,
}

/// The slot of a worker that is started when it is needed.
pub(crate) type Place = Mutex<Option<Arc<Worker>>>;

/// All workers, which are woken at the end.
static WORKERS: Mutex<Vec<Arc<Worker>>> = Mutex::new(Rank::Workers, Vec::new());

/// Does a job; a panic in it does not end the thread, which other jobs need.
pub(crate) fn fenced(job: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(job)).is_err()
        && let Some(hotspot) = HotSpot::get()
    {
        hotspot.panicked("a thread of the agent");
    }
}

/// Wakes all workers, because the VM ends.
pub(crate) fn wake_all() {
    WORKERS.lock().iter().for_each(|worker| worker.wake());
}

impl HotSpot {
    /// The worker of a slot, started if there is none, which runs Java code.
    pub(crate) fn worker(
        &self,
        place: &Place,
        (env, jni): (Env<Live>, Jni),
        name: &'static str,
    ) -> jvmti::Result<Arc<Worker>> {
        let mut place = place.lock();
        if let Some(worker) = &*place
            && std::ptr::eq(worker.hotspot, self)
        {
            return Ok(Arc::clone(worker));
        }
        let new = Worker::start(self, env, jni, name)?;
        Ok(Arc::clone(place.insert(new)))
    }
}

impl Worker {
    /// Starts a thread; runs Java code.
    pub(crate) fn start(
        hotspot: &HotSpot,
        env: Env<Live>,
        jni: Jni,
        name: &'static str,
    ) -> jvmti::Result<Arc<Self>> {
        let worker = Arc::new(Self {
            hotspot: hotspot.forever(),
            jobs: Mutex::new(Rank::Jobs, Some(VecDeque::new())),
            thread: OnceLock::new(),
            is_dismissed: AtomicBool::new(false),
        });
        let own = Arc::clone(&worker);
        hotspot.spawn(env, jni, name, move |env, jni| own.work(env, jni))?;
        WORKERS.lock().push(Arc::clone(&worker));
        Ok(worker)
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Gives it a job, which is dropped if the worker has ended.
    pub(crate) fn give(&self, job: impl FnOnce(Env<Live>, Jni) + Send + 'static) {
        if let Some(jobs) = self.jobs.lock().as_mut() {
            jobs.push_back(Box::new(job));
        }
        self.wake();
    }

    /// How many jobs it has not begun.
    pub(crate) fn waiting(&self) -> usize {
        self.jobs.lock().as_ref().map_or(0, VecDeque::len)
    }

    /// Ends the worker after its present job.
    pub(crate) fn dismiss(&self) {
        self.is_dismissed.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn work(&self, env: Env<Live>, jni: Jni) {
        const REFERENCES: i32 = 64;
        let _ = self.thread.set(std::thread::current());
        let is_over = || self.hotspot.dead.load(Ordering::Relaxed);
        while !is_over() {
            let job = self.jobs.lock().as_mut().and_then(VecDeque::pop_front);
            match job {
                Some(job) => {
                    with_agent_guard(|| jni.local_frame(REFERENCES, || fenced(|| job(env, jni))))
                }
                None if self.is_dismissed.load(Ordering::SeqCst) => break,
                None => std::thread::park(),
            }
        }
        // Who waits for one of them need not.
        drop(self.jobs.lock().take());
        WORKERS
            .lock()
            .retain(|worker| !std::ptr::eq(&raw const **worker, self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_job_that_fails_lets_go_of_who_waits_for_it_and_leaves_its_thread() {
        let (done, wait) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            fenced(move || {
                let _done = done;
                panic!("a fault on purpose");
            });
            7
        });
        assert_eq!(wait.recv(), Err(mpsc::RecvError));
        assert_eq!(thread.join().ok(), Some(7));
    }
}
