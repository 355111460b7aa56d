//! Slots for samples, from the signal handlers to the thread that counts them.

use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use jvmti::sys::MethodPtr;

use crate::cpu::java_frames::Missing;
use crate::cpu::kernel_events::MOST_KERNEL;
use crate::cpu::wall::Elapsed;

pub(super) const SLOTS: usize = 512;
pub(super) const EMPTY: u32 = 0;
const BUSY: u32 = 1;
pub(super) const FULL: u32 = 2;
/// Waits for the Java frames of its thread ([`pauses`](crate::cpu::pauses)).
pub(super) const HELD: u32 = 3;
/// The most frames of a sample.
pub(super) const MOST_FRAMES: usize = 256;

/// The most kernel frames and native frames of a sample.
pub(super) const MOST_ADDRESSES: usize = MOST_KERNEL + 48;

/// Frames as AsyncGetCallTrace writes them.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CallFrame {
    /// Bytecode index, -3 in native methods.
    pub(crate) bci: i32,
    pub(crate) method: MethodPtr,
}

/// The kind of a sample.
#[derive(Clone, Copy)]
pub(super) enum Of {
    /// A CPU sample. It counts for so many intervals of CPU time: more than one if the system has interrupted its thread
    /// later than requested.
    Cpu(u32),
    /// A CPU sample of a thread that runs no Java code, and so without a Java stack.
    OtherCpu(u32),
    /// A wall-clock sample.
    Wall(Elapsed),
}

impl Of {
    /// How many samples of the output it is.
    pub(super) fn count(self) -> u64 {
        match self {
            Of::Cpu(intervals) | Of::OtherCpu(intervals) => intervals.into(),
            Of::Wall(_) => 1,
        }
    }

    /// A CPU sample with so many intervals more.
    pub(super) fn and(self, intervals: u32) -> Of {
        match self {
            Of::Cpu(n) => Of::Cpu(n.saturating_add(intervals)),
            Of::OtherCpu(n) => Of::OtherCpu(n.saturating_add(intervals)),
            Of::Wall(elapsed) => Of::Wall(elapsed),
        }
    }
}

/// A slot for one sample.
pub(super) struct Slot {
    state: AtomicU32,
    /// The recording that the sample belongs to.
    pub(super) recording: Cell<u32>,
    /// The system's number of the thread. Other threads read it while the slot is held.
    pub(super) tid: AtomicU32,
    /// While it is held: the number of the pause, and the thread's last Java frame.
    pub(super) pause: AtomicU32,
    pub(super) last_frame: Cell<usize>,
    pub(super) of: Cell<Of>,
    /// Number of Java frames, if the VM has found them.
    pub(super) count: Cell<Result<i32, Missing>>,
    pub(super) frames: UnsafeCell<Box<[CallFrame]>>,
    /// Number of addresses of the kernel, and of the following ones of native code.
    pub(super) native: Cell<[u16; 2]>,
    pub(super) addresses: UnsafeCell<Box<[usize]>>,
}

// SAFETY: a slot's cells are touched only by the thread that moved its state to BUSY: the handler from EMPTY,
// the thread that takes samples over from FULL.
unsafe impl Sync for Slot {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Slot {}

impl Slot {
    fn new() -> Self {
        let none = CallFrame {
            bci: 0,
            method: MethodPtr(ptr::null_mut()),
        };
        Self {
            state: AtomicU32::new(EMPTY),
            recording: Cell::new(0),
            tid: AtomicU32::new(0),
            pause: AtomicU32::new(0),
            last_frame: Cell::new(0),
            of: Cell::new(Of::Cpu(1)),
            count: Cell::new(Ok(0)),
            frames: UnsafeCell::new(vec![none; MOST_FRAMES].into()),
            native: Cell::new([0; 2]),
            // The system gives memory for them when they are first used.
            addresses: UnsafeCell::new(vec![0; MOST_ADDRESSES].into()),
        }
    }

    /// Makes the caller the slot's only user, if the slot is in this state.
    pub(super) fn claim(&self, state: u32) -> bool {
        let claimed =
            self.state
                .compare_exchange(state, BUSY, Ordering::Acquire, Ordering::Relaxed);
        claimed.is_ok()
    }

    pub(super) fn is_held(&self) -> bool {
        self.state.load(Ordering::Acquire) == HELD
    }

    /// Gives the slot to the next thread that claims it in this state.
    pub(super) fn leave(&self, state: u32) {
        self.state.store(state, Ordering::Release);
    }
}

/// The slots of the process: a handler of one recording may still run when the next begins, so they are never
/// freed, and all recordings use the same ones.
pub(super) fn slots() -> &'static [Slot] {
    static SLOTS_OF_PROCESS: OnceLock<Box<[Slot]>> = OnceLock::new();
    SLOTS_OF_PROCESS.get_or_init(|| (0..SLOTS).map(|_| Slot::new()).collect())
}
