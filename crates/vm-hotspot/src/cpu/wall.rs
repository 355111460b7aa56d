//! Wall-clock samples: at each tick the sampling thread signals some threads in turn, whether they run or wait, and
//! the handler of CPU samples takes their stacks, without a safepoint.
//!
//! A sample stands for the time since the signal of the thread's previous sample, so sums are correct for any number of
//! threads, also if samples are dropped. The time after the last sample of a thread, up to its end or that of the
//! recording, is counted at the stack of this sample.
//! The number of signals per tick is limited, as in async-profiler: with many threads each is sampled less often, at
//! the same total cost.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vmpi::{TraceId, WallDropped, WallRow};

use crate::cpu::timers::{Last, Rest, Timers, signal};
use crate::vm::state::State;

/// What is reported as lost.
const UNSAMPLED: &str = "ms of threads that ended without a wall-clock sample";
/// The most threads that are signalled at a tick.
const THREADS_PER_TICK: usize = 8;

/// The values of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elapsed {
    /// Microseconds since the signal of the thread's previous sample.
    pub(crate) us: u64,
    /// The signal has interrupted a system call that waited.
    pub(crate) is_waiting: bool,
}

impl State {
    /// A wall-clock sample at a stack.
    pub(crate) fn add_wall(&mut self, trace: TraceId, elapsed: Elapsed) {
        let (samples, time_ns) = self.wall_of((trace, elapsed.is_waiting));
        *samples += 1;
        *time_ns += elapsed.us.saturating_mul(1000);
    }

    /// Counts the time after the last samples of threads, at the stacks of these samples.
    pub(crate) fn add_rests(&mut self, rests: &[Rest]) {
        let mut unsampled_us = 0;
        for rest in rests {
            match rest.last {
                Some(last) => *self.wall_of(last).1 += rest.us.saturating_mul(1000),
                None => unsampled_us += rest.us,
            }
        }
        if unsampled_us >= 1000 {
            *self.lost.entry(UNSAMPLED).or_default() += unsampled_us / 1000;
        }
    }

    /// Samples and nanoseconds of threads that run, or wait, at a stack.
    fn wall_of(&mut self, (trace, is_waiting): Last) -> (&mut u64, &mut u64) {
        let row = self.wall.entry(trace).or_insert(WallRow {
            trace,
            ..WallRow::default()
        });
        match is_waiting {
            true => (&mut row.waiting, &mut row.waiting_ns),
            false => (&mut row.running, &mut row.running_ns),
        }
    }
}

/// The state of wall-clock sampling.
#[derive(Debug)]
pub(crate) struct Wall {
    pub(crate) interval: Duration,
    /// Signals sent, and how many of them before the last tick.
    sent: AtomicU64,
    sent_before: AtomicU64,
    /// Signals that have arrived in a handler.
    arrived: AtomicU64,
    /// Signals that have not arrived, as far as was reported.
    missing: AtomicU64,
    /// Dropped samples since the last report.
    buffer_full: AtomicU64,
    no_stack: AtomicU64,
}

impl Wall {
    pub(crate) fn new(interval: Duration) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            interval,
            sent: zero(),
            sent_before: zero(),
            arrived: zero(),
            missing: zero(),
            buffer_full: zero(),
            no_stack: zero(),
        }
    }

    /// Signals the threads whose turn it is.
    pub(crate) fn tick(&self, timers: &Timers) {
        let sent = self.sent.load(Ordering::Relaxed);
        self.sent_before.store(sent, Ordering::Relaxed);
        let more = timers.take_turns(THREADS_PER_TICK, signal);
        self.sent.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// In the handler: counts a signal that has arrived.
    pub(crate) fn arrived(&self) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
    }

    /// In the handler: its sample was dropped because the buffer is full.
    pub(crate) fn buffer_was_full(&self) {
        self.buffer_full.fetch_add(1, Ordering::Relaxed);
    }

    /// In the handler: the VM could not walk the stack.
    pub(crate) fn had_no_stack(&self) {
        self.no_stack.fetch_add(1, Ordering::Relaxed);
    }

    /// Samples dropped since the last call.
    pub(crate) fn take_dropped(&self) -> WallDropped {
        // The signals of the last tick may still be under way.
        let sent = self.sent_before.load(Ordering::Relaxed);
        let missing = sent.saturating_sub(self.arrived.load(Ordering::Relaxed));
        let known = self.missing.fetch_max(missing, Ordering::Relaxed);
        WallDropped {
            buffer_full: self.buffer_full.swap(0, Ordering::Relaxed),
            no_stack: self.no_stack.swap(0, Ordering::Relaxed),
            not_delivered: missing.saturating_sub(known),
        }
    }
}

/// The instruction of a system call.
#[cfg(target_arch = "x86_64")]
const CALL: [u8; 2] = [0x0f, 0x05];
#[cfg(target_arch = "aarch64")]
const CALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];

/// Where a thread was, and the register that has the result of a system call.
///
/// # Safety
/// `context` is what the system has given to a signal handler.
#[cfg(target_arch = "x86_64")]
unsafe fn place(context: *const c_void) -> (u64, i64) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = |register: i32| registers[register as usize];
    (at(libc::REG_RIP).cast_unsigned(), at(libc::REG_RAX))
}

/// Where a thread was, and the register that has the result of a system call.
///
/// # Safety
/// `context` is what the system has given to a signal handler.
#[cfg(target_arch = "aarch64")]
unsafe fn place(context: *const c_void) -> (u64, i64) {
    // SAFETY: the caller's promise.
    let context = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    (context.pc, context.regs[0].cast_signed())
}

/// In the handler: whether the thread was waiting, that is, whether the signal has interrupted a system call: the call
/// will be repeated (the thread is at the instruction that makes it) or has returned `EINTR` (the thread is behind it).
///
/// # Safety
/// `context` is what the system has given to a signal handler.
pub(crate) unsafe fn is_waiting(context: *const c_void) -> bool {
    const PAGE: u64 = 4096;
    let size = CALL.len() as u64;
    // SAFETY: the caller's promise.
    let (at, result) = unsafe { place(context) };
    let is_call = |at: u64| {
        // Only the page of the present instruction is certainly mapped. SAFETY: the bytes are of the page that the
        // thread runs in.
        at % PAGE <= PAGE - size
            && unsafe { (at as *const [u8; CALL.len()]).read_unaligned() } == CALL
    };
    let was_interrupted = result == -i64::from(libc::EINTR) && at % PAGE >= size;
    is_call(at) || was_interrupted && is_call(at - size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_counts_as_missing_when_the_next_tick_has_come() {
        let wall = Wall::new(Duration::from_millis(10));
        let timers = Timers::default();
        wall.sent.store(3, Ordering::Relaxed);
        assert_eq!(wall.take_dropped(), WallDropped::default(), "under way");
        wall.arrived();
        wall.tick(&timers);
        wall.buffer_was_full();
        let dropped = wall.take_dropped();
        assert_eq!((dropped.not_delivered, dropped.buffer_full), (2, 1));
        assert_eq!(wall.take_dropped().total(), 0, "it was reported");
    }
}
