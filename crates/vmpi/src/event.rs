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
    /// Where in the heap; `ArenaId(0)` if the VM does not say.
    pub arena: ArenaId,
    /// How many objects.
    pub objects: u64,
    /// Their size as the VM lays them out.
    pub bytes: u64,
    /// They stand for more, because only this share of the objects is examined.
    pub share: Share,
    /// The object, if the row is about one object that the VM can name.
    pub object: ObjectHandle,
}

/// Sampled stacks of one site since the last batch, where sites are instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationStackRow {
    /// The class of the objects.
    pub class: ClassId,
    /// The stack of one frame that the site is reported with.
    pub site: TraceId,
    /// The stack.
    pub stack: TraceId,
    /// How often it was sampled.
    pub samples: u64,
    /// How many objects of the site the samples stand for.
    pub objects: u64,
    /// Sum of the squares of what each sample stands for.
    pub squares: u64,
}

/// Objects of one site that died since the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeRow {
    /// The class of the objects.
    pub class: ClassId,
    /// The stack that had allocated them.
    pub trace: TraceId,
    /// How many objects.
    pub objects: u64,
    /// Their size.
    pub bytes: u64,
    /// They stand for more, as in [`AllocationRow`].
    pub share: Share,
    /// The object, if the row is about one object.
    pub object: ObjectHandle,
}

/// What a factory of the program has said of a class.
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
    /// Time in the method and all it called, in nanoseconds. A recursive call
    /// counts again in each of its frames, as in the original agent.
    pub total_ns: u64,
}

/// CPU samples that hit one stack since the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRow {
    /// The thread that was on CPU; [`ThreadId::NONE`] if not kept.
    pub thread: ThreadId,
    /// Where it was.
    pub trace: TraceId,
    /// How many samples.
    pub samples: u64,
}

/// How often threads were interrupted for CPU samples since the last batch. A system that interrupts less often than is
/// requested counts the intervals that pass meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleTiming {
    /// Interruptions.
    pub interruptions: u64,
    /// Intervals of CPU time that had passed by then.
    pub intervals: u64,
}

impl SampleTiming {
    /// Adds those of another batch.
    pub fn add(&mut self, other: SampleTiming) {
        self.interruptions += other.interruptions;
        self.intervals += other.intervals;
    }

    /// Intervals for each interruption: 1 if they came as requested, or if there were none.
    #[must_use]
    pub fn intervals_each(self) -> f64 {
        match self.interruptions {
            0 => 1.0,
            interruptions => self.intervals as f64 / interruptions as f64,
        }
    }
}

/// Wall-clock samples that met one stack since the last batch. Each sample stands for the time since
/// the thread was sampled before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallRow {
    /// Where the threads were.
    pub trace: TraceId,
    /// How many samples met a thread that ran or could have run.
    pub running: u64,
    /// Nanoseconds that they stand for.
    pub running_ns: u64,
    /// How many samples met a thread that waited.
    pub waiting: u64,
    /// Nanoseconds that they stand for.
    pub waiting_ns: u64,
}

/// Wall-clock samples that gave no stack since the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallDropped {
    /// The buffer was full.
    pub buffer_full: u64,
    /// The VM could not walk the stack at that moment.
    pub no_stack: u64,
    /// The thread did not take the signal before the next one.
    pub not_delivered: u64,
}

impl WallDropped {
    /// All of them.
    #[must_use]
    pub fn total(self) -> u64 {
        self.buffer_full + self.no_stack + self.not_delivered
    }

    /// Adds those of another batch.
    pub fn add(&mut self, other: WallDropped) {
        self.buffer_full += other.buffer_full;
        self.no_stack += other.no_stack;
        self.not_delivered += other.not_delivered;
    }
}

/// Something happened at a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorEvent {
    /// A thread found the monitor taken and blocks.
    ContendedEnter,
    /// It got the monitor after `waited_ns`.
    ContendedEntered {
        /// Blocked for so long.
        waited_ns: u64,
    },
    /// A thread calls `wait`.
    Wait {
        /// The argument of `wait`, 0 for ever.
        timeout_ms: i64,
    },
    /// It returns from `wait`.
    Waited {
        /// Whether the time ran out.
        timed_out: bool,
        /// It waited for so long.
        waited_ns: u64,
    },
    /// It was parked at a lock of the program's library (of `java.util.concurrent`), which is no monitor.
    Parked {
        /// For so long.
        parked_ns: u64,
    },
}

/// What kind of pause a collection is; most VMs cannot say more than "a pause".
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

/// One notification. Slices are borrowed: a profiler copies what it keeps.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The VM is initialised and questions may be asked; always first but for
    /// nothing. `at_ns` is on the clock of [`Vm::elapsed_ns`](crate::Vm::elapsed_ns).
    VmInit {
        /// What VM this is.
        info: &'a VmInfo,
        /// The thread that runs `main`.
        main: ThreadId,
    },
    /// The VM is about to end; the last chance for questions and reports.
    VmDeath,
    /// The data was requested (SIGQUIT, a socket command, `tenure dump`).
    DumpRequested,
    /// A stack got its id.
    TraceDefined {
        /// The id, never given twice.
        id: TraceId,
        /// What it stands for.
        trace: &'a Trace,
    },
    /// A class was prepared, or had been before the profiler started.
    ClassLoaded {
        /// Its id.
        class: ClassId,
        /// What it is.
        info: &'a ClassInfo,
        /// The stack that loaded it.
        trace: TraceId,
        /// The thread that loaded it.
        thread: ThreadId,
    },
    /// A class is gone. Its id is not used again.
    ClassUnloaded {
        /// Its id.
        class: ClassId,
    },
    /// A thread started, or was found running.
    ThreadStarted {
        /// Its id.
        thread: ThreadId,
        /// Who it is.
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
    /// Blocks that native code allocated, as differences; estimates where they are sampled.
    /// The class is the library whose code allocated them.
    NativeAllocations(&'a [AllocationRow]),
    /// Blocks that were given back, as differences.
    NativeFrees(&'a [FreeRow]),
    /// Completed calls, as differences.
    Costs(&'a [CostRow]),
    /// CPU samples, as differences.
    Samples {
        /// By thread and stack.
        rows: &'a [SampleRow],
        /// How often threads were interrupted.
        timing: SampleTiming,
    },
    /// Wall-clock samples, as differences.
    Wall {
        /// By stack.
        rows: &'a [WallRow],
        /// Samples without a stack.
        dropped: WallDropped,
    },
    /// A monitor event, at once.
    Monitor {
        /// What happened.
        what: MonitorEvent,
        /// To whom.
        thread: ThreadId,
        /// At which monitor.
        monitor: MonitorId,
        /// The class of the monitor's object.
        class: ClassId,
        /// The stack of the thread.
        trace: TraceId,
    },
    /// What factories of the program have said since the last batch.
    ClassOptions {
        /// What they had said before holds no longer: there are other options.
        anew: bool,
        /// What they say.
        answers: &'a [ClassAnswer],
    },
    /// The live objects of a class, as requested.
    Instances(&'a Listing),
    /// How big and how full all live objects are, as requested.
    Fills(&'a Fills),
    /// A collection starts.
    GcStarted {
        /// What kind.
        kind: GcKind,
    },
    /// A collection has ended.
    GcFinished {
        /// What kind.
        kind: GcKind,
    },
    /// Something is measured in another way than requested; a profile reports this.
    Degraded {
        /// What, how and why, one line.
        what: &'a str,
    },
    /// Events were dropped since the last such notice, and how many; a profile
    /// reports this.
    Lost {
        /// What was lost, one line.
        what: &'a str,
        /// How many.
        count: u64,
    },
}
