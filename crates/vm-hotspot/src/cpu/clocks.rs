//! Signals a thread each time it has used some CPU time: with a timer on its clock, or an event of the kernel.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::time::Duration;
use std::{io, ptr};

use crate::cpu::kernel_events::Event;

/// The value in the agent's signals that distinguishes them from signals of the program.
static MARKS: [u8; 3] = [0; 3];

/// Whose signal it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A signal for a thread of the program, which may run Java code.
    Program,
    /// A signal for another thread, which runs no Java code.
    Other,
    /// A signal for a thread that has samples of a pause, which is over.
    PauseEnded,
}

impl Mark {
    pub(super) fn value(self) -> *mut c_void {
        (&raw const MARKS[self as usize]).cast_mut().cast()
    }
}

/// The source of a thread's signals; ends when it is dropped.
#[derive(Debug)]
pub(super) enum Clock {
    Timer(Timer),
    Event(Event),
}

impl Clock {
    /// Signals a thread each time it has used up `period`; by an event if these are wanted and another one is
    /// available.
    pub(super) fn arm(
        period: Duration,
        tid: u32,
        mark: Mark,
        wants_event: bool,
    ) -> io::Result<Self> {
        if wants_event && let Ok(event) = Event::open(period, tid, mark == Mark::Other) {
            return Ok(Self::Event(event));
        }
        Timer::arm(period, tid, mark).map(Self::Timer)
    }

    /// Signals so often from now on; never with zero.
    pub(super) fn set(&self, period: Duration) -> io::Result<()> {
        match self {
            Self::Timer(timer) => timer.set(period),
            Self::Event(event) => event.set(period),
        }
    }
}

/// Whether a thread got no timer because it has just ended. If it ended before the timer was made, the system reports
/// an invalid clock; if it ended before the timer was started, no such thread.
pub(super) fn has_ended(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ESRCH))
}

/// A `timer_t`.
#[derive(Debug)]
pub(super) struct Timer(usize);

impl Timer {
    /// A timer on a thread's CPU clock that signals this thread each time it has used up `period`.
    pub(super) fn arm(period: Duration, tid: u32, mark: Mark) -> io::Result<Self> {
        // The kernel's number of the clock of a thread's CPU time: clock 2, of one thread (4).
        let clock = (!tid << 3 | 6).cast_signed();
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: a zeroed structure is valid; all pointers are to live locals.
        let made = unsafe {
            let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGPROF;
            event.sigev_value.sival_ptr = mark.value();
            event.sigev_notify_thread_id = tid.cast_signed();
            libc::timer_create(clock, &raw mut event, &raw mut timer)
        };
        if made != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = Self(timer as usize);
        timer.set(period)?;
        Ok(timer)
    }

    /// Signals so often from now on; never with zero.
    fn set(&self, period: Duration) -> io::Result<()> {
        let time = libc::timespec {
            tv_sec: period.as_secs() as libc::time_t,
            tv_nsec: i64::from(period.subsec_nanos()),
        };
        let spec = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: the timer is our own, and the pointer is to a live local.
        match unsafe {
            libc::timer_settime(self.0 as libc::timer_t, 0, &raw const spec, ptr::null_mut())
        } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by `arm`, and nothing else deletes it.
        unsafe { libc::timer_delete(self.0 as libc::timer_t) };
    }
}
