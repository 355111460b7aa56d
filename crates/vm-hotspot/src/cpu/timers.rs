//! Timers that signal a thread when it has used so much CPU time.

use std::ffi::c_void;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{io, ptr};

use jvmti::sys::FieldPtr;
use jvmti::{Jni, Object};
use locks::{Mutex, Rank};
use rustc_hash::FxHashMap;
use vmpi::ThreadId;

use crate::host::vm_structs::VmStructs;

/// One armed timer.
#[derive(Debug)]
struct Armed {
    /// A `timer_t`.
    timer: usize,
    /// The thread's number in the profile, 0 if it is not known.
    number: u32,
}

/// All timers, by the system's number of the thread. Never locked by a signal handler.
#[derive(Debug)]
pub(crate) struct Timers {
    armed: Mutex<FxHashMap<u32, Armed>>,
    /// How much CPU time a thread uses between two signals, in nanoseconds; 0 while nobody is sampled.
    period_ns: AtomicU64,
    /// Numbers of threads that have ended since samples were last taken over.
    ended: Mutex<Vec<(u32, u32)>>,
    /// Threads that got none since the last look.
    refused: AtomicU64,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            armed: Mutex::new(Rank::Timers, FxHashMap::default()),
            period_ns: AtomicU64::new(0),
            ended: Mutex::new(Rank::EndedTimers, Vec::new()),
            refused: AtomicU64::new(0),
        }
    }
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
    /// Has all timers signal so often from now on: those that are armed and those to come. Zero stops them.
    pub(crate) fn signal_every(&self, period: Duration) {
        let timers = self.armed.lock();
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        if self.period_ns.swap(period_ns, Ordering::Relaxed) == period_ns {
            return;
        }
        for armed in timers.values() {
            // One of a thread that has just ended is refused.
            let _ = set(armed.timer, period);
        }
    }

    /// Gives a thread a timer unless it has one.
    pub(crate) fn arm(&self, tid: u32, number: u32) {
        let mut timers = self.armed.lock();
        if timers.contains_key(&tid) {
            return;
        }
        let period = Duration::from_nanos(self.period_ns.load(Ordering::Relaxed));
        match arm(period, tid) {
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
        let armed = self.armed.lock().remove(&tid);
        if let Some(armed) = armed {
            delete(armed.timer);
            self.ended.lock().push((tid, armed.number));
        }
    }

    /// The profile's number of a thread that runs, or ended a moment ago.
    pub(crate) fn number(&self, tid: u32) -> ThreadId {
        let running = self.armed.lock().get(&tid).map(|armed| armed.number);
        let ended = || {
            let ended = self.ended.lock();
            let last = ended.iter().rev().find(|(one, _)| *one == tid);
            last.map(|(_, number)| *number)
        };
        running.or_else(ended).map_or(ThreadId::NONE, ThreadId)
    }

    /// All samples of threads that have ended are taken over.
    pub(crate) fn forget_ended(&self) {
        self.ended.lock().clear();
    }

    /// Deletes all timers.
    pub(crate) fn disarm_all(&self) {
        for (_, armed) in self.armed.lock().drain() {
            delete(armed.timer);
        }
    }
}

/// Where the VM keeps the system's number of a thread: the thread's object has the address of the
/// VM's own thread, that has the address of its `OSThread`, and that the number.
pub(crate) struct SystemNumbers {
    /// Memory of this process, in which a thread may just have ended: what cannot be read is no fault.
    memory: File,
    /// Field `eetop` of `java.lang.Thread`.
    address: FieldPtr,
    os_thread: u64,
    number: u64,
}

impl SystemNumbers {
    /// Looks the places up; `None` when this VM does not have them.
    pub(crate) fn of(jni: Jni) -> Option<Self> {
        let structs = VmStructs::load()?;
        let thread = jni.find_class("java/lang/Thread").ok()?;
        Some(Self {
            memory: File::open("/proc/self/mem").ok()?,
            address: jni.field(thread, "eetop", "J").ok()?,
            os_thread: structs.offset(&["JavaThread", "Thread"], "_osthread")? as u64,
            number: structs.offset(&["OSThread"], "_thread_id")? as u64,
        })
    }

    /// The system's number of a platform thread that runs.
    pub(crate) fn tid(&self, jni: Jni, thread: Object) -> Option<u32> {
        let own = jni.get_long(thread, self.address).cast_unsigned();
        let os_thread = u64::from_ne_bytes(self.read(own, self.os_thread)?);
        let tid = u32::from_ne_bytes(self.read(os_thread, self.number)?);
        Path::new("/proc/self/task")
            .join(tid.to_string())
            .exists()
            .then_some(tid)
    }

    fn read<const SIZE: usize>(&self, start: u64, offset: u64) -> Option<[u8; SIZE]> {
        let mut bytes = [0; SIZE];
        let at = start.checked_add(offset).filter(|_| start != 0)?;
        self.memory.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }
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

/// What the signals of our timers carry, by which they are told from those of the program.
static OURS: u8 = 0;

fn ours() -> *mut c_void {
    (&raw const OURS).cast_mut().cast()
}

/// Whether a signal is of a timer that [`arm`] has made; fit for signal handlers.
///
/// # Safety
/// `info` is what the system has given to a handler.
pub(crate) unsafe fn is_ours(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the caller's promise; a signal of a timer has a value.
    unsafe { (*info).si_code == libc::SI_TIMER && (*info).si_value().sival_ptr == ours() }
}

/// A timer on a thread's CPU clock that signals this thread, each time it has used up `period`.
fn arm(period: Duration, tid: u32) -> io::Result<usize> {
    // The kernel's number of the clock of a thread's CPU time: clock 2, of one thread (4).
    let clock = (!tid << 3 | 6).cast_signed();
    let mut timer: libc::timer_t = ptr::null_mut();
    // SAFETY: a zeroed structure is valid; all pointers are to live locals.
    let made = unsafe {
        let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGPROF;
        event.sigev_value.sival_ptr = ours();
        event.sigev_notify_thread_id = tid.cast_signed();
        libc::timer_create(clock, &raw mut event, &raw mut timer)
    };
    if made != 0 {
        return Err(io::Error::last_os_error());
    }
    set(timer as usize, period).inspect_err(|_| delete(timer as usize))?;
    Ok(timer as usize)
}

/// Has a timer signal so often from now on; never with zero.
fn set(timer: usize, period: Duration) -> io::Result<()> {
    let time = libc::timespec {
        tv_sec: period.as_secs() as libc::time_t,
        tv_nsec: i64::from(period.subsec_nanos()),
    };
    let spec = libc::itimerspec {
        it_interval: time,
        it_value: time,
    };
    // SAFETY: the caller has the timer from `arm`, and the pointer is to a live local.
    match unsafe {
        libc::timer_settime(timer as libc::timer_t, 0, &raw const spec, ptr::null_mut())
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
