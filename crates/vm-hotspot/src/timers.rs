//! Timers that signal a thread when it has used so much CPU time.

use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io, ptr};

use rustc_hash::FxHashMap;
use vmpi::ThreadId;

use crate::hotspot::locked;

/// What the VM's own threads are called: they run no Java code.
const OF_THE_VM: [&str; 15] = [
    "C1 ",
    "C2 ",
    "GC Thread",
    "G1 ",
    "VM ",
    "Sweeper",
    "ZWorker",
    "ZDirector",
    "ZDriver",
    "ZStat",
    "ZUn",
    "Shenandoah",
    "ParGC",
    "Service",
    "HPROF ",
];

/// One armed timer.
#[derive(Debug)]
struct Armed {
    /// A `timer_t`.
    timer: usize,
    /// The thread's number in the profile, 0 if it is not known.
    number: u32,
}

/// All timers, by the system's number of the thread. Never locked by a signal handler.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    armed: Mutex<FxHashMap<u32, Armed>>,
    /// Threads that got none since the last look.
    refused: AtomicU64,
}

/// Whether the system lets us have a timer on a thread's CPU time: it may have none left for
/// this user, or a container may forbid it.
pub(crate) fn are_allowed() -> bool {
    // So late that it never comes.
    let Ok(timer) = arm(Duration::from_secs(3600), own_tid()) else {
        return false;
    };
    delete(timer);
    true
}

impl Timers {
    /// Arms the timer of a thread unless it has one.
    pub(crate) fn arm(&self, interval: Duration, tid: u32, number: u32) {
        let mut timers = locked(&self.armed);
        if timers.contains_key(&tid) {
            return;
        }
        match arm(interval, tid) {
            Ok(timer) => drop(timers.insert(tid, Armed { timer, number })),
            // Another thread may have ended meanwhile, which the system calls invalid.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(_) => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// How many threads have got no timer since the last call.
    pub(crate) fn take_refused(&self) -> u64 {
        self.refused.swap(0, Ordering::Relaxed)
    }

    /// Deletes the timer of a thread, which has ended.
    pub(crate) fn disarm(&self, tid: u32) {
        if let Some(armed) = locked(&self.armed).remove(&tid) {
            delete(armed.timer);
        }
    }

    /// The profile's number of a thread.
    pub(crate) fn number(&self, tid: u32) -> ThreadId {
        let timers = locked(&self.armed);
        timers
            .get(&tid)
            .map_or(ThreadId::NONE, |armed| ThreadId(armed.number))
    }

    /// Arms the timers of threads that run already. The system knows the first 15 bytes
    /// of their names; one that several share leaves the number unknown.
    pub(crate) fn arm_running(&self, interval: Duration, running: &[(String, ThreadId)]) {
        let name_of = |tid: &str| fs::read_to_string(format!("/proc/self/task/{tid}/comm"));
        let Ok(tasks) = fs::read_dir("/proc/self/task") else {
            return;
        };
        // The thread of `main` still has the name of the program.
        let program = name_of(&std::process::id().to_string()).unwrap_or_default();
        for task in tasks.flatten() {
            let task = task.file_name();
            let Some((tid, text)) = task.to_str().and_then(|t| Some((t.parse().ok()?, t))) else {
                continue;
            };
            let name = name_of(text).unwrap_or_default();
            if OF_THE_VM.iter().any(|start| name.starts_with(start)) || tid == own_tid() {
                continue;
            }
            let name = if name == program {
                "main"
            } else {
                name.trim_end()
            };
            let mut same = running
                .iter()
                .filter(|(whole, _)| short(whole) == name.as_bytes());
            let number = match (same.next(), same.next()) {
                (Some((_, number)), None) => number.0,
                _ => 0,
            };
            self.arm(interval, tid, number);
        }
    }
}

/// What the system keeps of a name.
fn short(name: &str) -> &[u8] {
    &name.as_bytes()[..name.len().min(15)]
}

/// The system's number of the current thread; fit for signal handlers.
pub(crate) fn own_tid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Deletes what [`arm`] has made and nobody has deleted.
fn delete(timer: usize) {
    // SAFETY: the caller has it from `arm` and gives it away.
    unsafe { libc::timer_delete(timer as libc::timer_t) };
}

/// A timer on a thread's CPU clock that signals this thread.
fn arm(interval: Duration, tid: u32) -> io::Result<usize> {
    // The kernel's number of the clock of a thread's CPU time: clock 2, of one thread (4).
    let clock = (!tid << 3 | 6).cast_signed();
    // SAFETY: zeroed structures are valid; all pointers are to live locals.
    unsafe {
        let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGPROF;
        event.sigev_notify_thread_id = tid.cast_signed();
        let mut timer: libc::timer_t = ptr::null_mut();
        if libc::timer_create(clock, &raw mut event, &raw mut timer) != 0 {
            return Err(io::Error::last_os_error());
        }
        let time = libc::timespec {
            tv_sec: interval.as_secs() as libc::time_t,
            tv_nsec: i64::from(interval.subsec_nanos()),
        };
        let spec = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        if libc::timer_settime(timer, 0, &raw const spec, ptr::null_mut()) != 0 {
            let error = io::Error::last_os_error();
            delete(timer as usize);
            return Err(error);
        }
        Ok(timer as usize)
    }
}
