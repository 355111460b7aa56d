//! What a VM reports to a profiler.

use crate::class_options::{ClassOptions, Share};
use crate::fills::Fills;
use crate::ids::{ArenaId, ClassId, MonitorId, ObjectHandle, ThreadId, TraceId};
use crate::info::{ClassInfo, ThreadInfo, Trace, VmInfo};
use crate::instances::Listing;

/// Objects allocated by one site since the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationRow {
    /// The class of the objects.
    pub class: ClassId,
    /// The stack that allocated them.
    pub trace: TraceId,
    /// The heap area; `ArenaId(0)` if the VM does not report it.
    pub arena: ArenaId,
    /// How many objects.
    pub objects: u64,
    /// Their size as the VM lays them out.
    pub bytes: u64,
    /// The share of the objects that is examined; the objects of the row represent all of them.
    pub share: Share,
    /// The object, if the row is about one object with a handle.
    pub object: ObjectHandle,
}

/// Sampled stacks of one site since the last batch, if sites are instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationStackRow {
    /// The class of the objects.
    pub class: ClassId,
    /// The one-frame stack with which the site is reported.
    pub site: TraceId,
    /// The stack.
    pub stack: TraceId,
    /// How often it was sampled.
    pub samples: u64,
    /// How many objects of the site the samples represent.
    pub objects: u64,
    /// The sum of the squares of the number that each sample represents.
    pub squares: u64,
}

/// Objects of one site that were freed since the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeRow {
    /// The class of the objects.
    pub class: ClassId,
    /// The stack that allocated them.
    pub trace: TraceId,
    /// How many objects.
    pub objects: u64,
    /// Their size.
    pub bytes: u64,
    /// The share of the objects that is examined, as in [`AllocationRow`].
    pub share: Share,
    /// The object, if the row is about one object.
    pub object: ObjectHandle,
}

/// The answer of a factory of the program for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassAnswer {
    /// The class.
    pub class: ClassId,
    /// What is recorded of its objects; `None` if they are not.
    pub options: Option<ClassOptions>,
}

/// Calls that ended in one calling context since the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostRow {
    /// The context: called method first, then its callers.
    pub trace: TraceId,
    /// Calls completed.
    pub calls: u64,
    /// Time in the method itself, in nanoseconds.
    pub self_ns: u64,
    /// Time in the method and in all methods it called, in nanoseconds. A recursive call counts again in each of its
    /// frames, as in the original agent.
    pub total_ns: u64,
}

/// CPU samples of one stack since the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRow {
    /// The thread that was on CPU; [`ThreadId::NONE`] if it is not recorded.
    pub thread: ThreadId,
    /// The stack.
    pub trace: TraceId,
    /// How many samples.
    pub samples: u64,
}

/// How often threads were interrupted for CPU samples since the last batch. If the system interrupts less often than
/// requested, `intervals` is larger than `interruptions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleTiming {
    /// Interruptions.
    pub interruptions: u64,
    /// Intervals of CPU time that have elapsed.
    pub intervals: u64,
}

impl SampleTiming {
    /// Adds the counts of another batch.
    pub fn add(&mut self, other: SampleTiming) {
        self.interruptions += other.interruptions;
        self.intervals += other.intervals;
    }

    /// Intervals per interruption: 1 if interruptions came as requested, or if there were none.
    #[must_use]
    pub fn intervals_each(self) -> f64 {
        match self.interruptions {
            0 => 1.0,
            interruptions => self.intervals as f64 / interruptions as f64,
        }
    }
}

/// Wall-clock samples of one stack since the last batch. Each sample represents the time since the previous sample of
/// its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallRow {
    /// The stack.
    pub trace: TraceId,
    /// Samples of threads that ran or could have run.
    pub running: u64,
    /// Nanoseconds that these samples represent.
    pub running_ns: u64,
    /// Samples of threads that waited.
    pub waiting: u64,
    /// Nanoseconds that these samples represent.
    pub waiting_ns: u64,
}

/// Wall-clock samples without a stack since the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallDropped {
    /// The buffer was full.
    pub buffer_full: u64,
    /// The VM could not walk the stack at that time.
    pub no_stack: u64,
    /// The thread did not handle the signal before the next one.
    pub not_delivered: u64,
}

impl WallDropped {
    /// All of them.
    #[must_use]
    pub fn total(self) -> u64 {
        self.buffer_full + self.no_stack + self.not_delivered
    }

    /// Adds the counts of another batch.
    pub fn add(&mut self, other: WallDropped) {
        self.buffer_full += other.buffer_full;
        self.no_stack += other.no_stack;
        self.not_delivered += other.not_delivered;
    }
}

/// An event at a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorEvent {
    /// A thread blocks at a monitor that another thread owns.
    ContendedEnter,
    /// It has entered the monitor after `waited_ns`.
    ContendedEntered {
        /// How long it was blocked.
        waited_ns: u64,
    },
    /// A thread calls `wait`.
    Wait {
        /// The argument of `wait`, 0 for no limit.
        timeout_ms: i64,
    },
    /// It returns from `wait`.
    Waited {
        /// Whether the timeout has elapsed.
        timed_out: bool,
        /// How long it waited.
        waited_ns: u64,
    },
    /// It was parked at a lock of `java.util.concurrent` or of another library, which is not a monitor.
    Parked {
        /// How long it was parked.
        parked_ns: u64,
    },
}

/// The kind of a collection; most VMs report only that there is a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GcKind {
    /// Not known.
    #[default]
    Unknown,
    /// The young generation only.
    Young,
    /// Everything.
    Full,
}

/// One notification. Slices are borrowed: a profiler copies the data that it keeps.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The VM is initialized and may be queried; this is the first event. `at_ns` is on the clock of
    /// [`Vm::elapsed_ns`](crate::Vm::elapsed_ns).
    VmInit {
        /// The VM's data.
        info: &'a VmInfo,
        /// The thread that runs `main`.
        main: ThreadId,
    },
    /// The VM is about to end; this is the last time for queries and reports.
    VmDeath,
    /// The user requests the data (SIGQUIT, a socket command, `tenure dump`).
    DumpRequested,
    /// A stack got its id.
    TraceDefined {
        /// The id, which is never reused.
        id: TraceId,
        /// The stack.
        trace: &'a Trace,
    },
    /// A class was prepared, or had been before the profiler started.
    ClassLoaded {
        /// Its id.
        class: ClassId,
        /// Its data.
        info: &'a ClassInfo,
        /// The stack that loaded it.
        trace: TraceId,
        /// The thread that loaded it.
        thread: ThreadId,
    },
    /// A class was unloaded. Its id is never reused.
    ClassUnloaded {
        /// Its id.
        class: ClassId,
        /// Whether a stack or a row refers to it, now or later. Otherwise the VM has forgotten it.
        is_named: bool,
    },
    /// A thread started, or was found running.
    ThreadStarted {
        /// Its id.
        thread: ThreadId,
        /// Its data.
        info: &'a ThreadInfo,
        /// The stack that started it, if known.
        trace: TraceId,
    },
    /// A thread ended.
    ThreadEnded {
        /// Its id.
        thread: ThreadId,
    },
    /// Allocations, as differences.
    Allocations(&'a [AllocationRow]),
    /// Sampled stacks of allocations, as differences.
    AllocationStacks(&'a [AllocationStackRow]),
    /// Freed objects, as differences.
    Frees(&'a [FreeRow]),
    /// Blocks that native code allocated, as differences; estimates if they are sampled. The class is the library whose
    /// code allocated them.
    NativeAllocations(&'a [AllocationRow]),
    /// Blocks that native code freed, as differences.
    NativeFrees(&'a [FreeRow]),
    /// Completed calls, as differences.
    Costs(&'a [CostRow]),
    /// CPU samples, as differences.
    Samples {
        /// Samples by thread and stack.
        rows: &'a [SampleRow],
        /// How often threads were interrupted.
        timing: SampleTiming,
    },
    /// Wall-clock samples, as differences.
    Wall {
        /// Samples by stack.
        rows: &'a [WallRow],
        /// Samples without a stack.
        dropped: WallDropped,
    },
    /// A monitor event, which is sent immediately.
    Monitor {
        /// The kind of event.
        what: MonitorEvent,
        /// The thread.
        thread: ThreadId,
        /// The monitor.
        monitor: MonitorId,
        /// The class of the monitor's object.
        class: ClassId,
        /// The stack of the thread.
        trace: TraceId,
    },
    /// Answers of the program's factories since the last batch.
    ClassOptions {
        /// Earlier answers are void, because other options apply now.
        anew: bool,
        /// The answers.
        answers: &'a [ClassAnswer],
    },
    /// The live objects of a class, as requested.
    Instances(&'a Listing),
    /// How large and how full all live objects are, as requested.
    Fills(&'a Fills),
    /// A collection starts.
    GcStarted {
        /// The kind.
        kind: GcKind,
    },
    /// A collection has ended.
    GcFinished {
        /// The kind.
        kind: GcKind,
    },
    /// A measurement differs from the requested one; a profile reports this.
    Degraded {
        /// What differs, how and why, in one line.
        what: &'a str,
    },
    /// Events were dropped since the last such event; a profile reports this.
    Lost {
        /// What was dropped, in one line.
        what: &'a str,
        /// How many.
        count: u64,
    },
}
