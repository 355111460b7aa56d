//! What to measure.

use std::time::Duration;

use jvmti::{Capability, JavaVm};

/// How live objects are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Track {
    /// Not at all: only allocations are counted.
    None,
    /// Every object of a site until it has made [`EXACT_PER_SITE`], then every second, fourth, and so on: small sites
    /// are exact, large ones are estimated. After many tracked objects this begins earlier
    /// (`tracker/HprofTracker.java`).
    #[default]
    Adaptive,
    /// Every object, immediately: counts of live objects are exact, at a higher cost.
    Exact,
    /// Every object, as a dump with allocation stacks needs. Objects are pending first, and kept alive for that time.
    Every,
}

/// Objects of one site and thread that [`Track::Adaptive`] tracks one by one; a
/// power of two.
pub(crate) const EXACT_PER_SITE: i64 = 4096;

/// The clock that times of calls are measured with. Where precision matters it is read in nanoseconds; otherwise a tick
/// per millisecond is used (`tracker/HprofTracker.java`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Elapsed time.
    #[default]
    Elapsed,
    /// CPU time of the thread.
    ThreadCpu,
}

impl Clock {
    /// Nanoseconds by this clock for the current thread; elapsed time has the base of
    /// `System.nanoTime`.
    #[must_use]
    pub fn now(self) -> i64 {
        let clock = match self {
            Self::Elapsed => libc::CLOCK_MONOTONIC,
            Self::ThreadCpu => libc::CLOCK_THREAD_CPUTIME_ID,
        };
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is to a live local; both clocks exist on Linux.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    /// The usual number of nanoseconds between two readings in immediate succession.
    #[must_use]
    pub fn cost_of_reading(self) -> i64 {
        let mut costs: [i64; 101] = std::array::from_fn(|_| {
            let before = self.now();
            self.now() - before
        });
        costs.sort_unstable();
        costs[costs.len() / 2]
    }
}

/// Which frames a sample has besides Java frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeStacks {
    /// None.
    #[default]
    None,
    /// Frames of native code that Java code has called.
    Native,
    /// Native frames, and in CPU samples frames of the kernel.
    Kernel,
}

/// What happens when the heap is exhausted for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub enum WhenExhausted {
    /// Nothing.
    #[default]
    Nothing,
    /// The profiler is notified as at SIGQUIT.
    Dump,
    /// This is called, on the thread whose allocation failed.
    Call(fn(JavaVm)),
}

impl WhenExhausted {
    /// Whether the VM has to report it.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// What to measure, decided when the agent is loaded.
#[derive(Clone, Debug)]
pub struct Config {
    /// Frames kept of a stack.
    pub depth: u32,
    /// Frames kept of a calling context when calls are counted, if that is not the
    /// depth of stacks.
    pub call_depth: Option<u32>,
    /// A collector may send queries and commands while the program runs: for allocation times, another depth.
    pub has_collector: bool,
    /// Count every allocation by class and stack.
    pub allocations: bool,
    /// Count them by class and allocating instruction instead, and sample the stacks.
    pub stacks_sampled: bool,
    /// Sample allocations instead, about one per this many bytes.
    pub sampled_allocations: Option<u64>,
    /// The profiler receives all classes, threads and stacks. Without this, only the stream of VM events may be
    /// recorded.
    pub has_profiler: bool,
    /// Track objects until they are freed.
    pub track: Track,
    /// Count every call and measure its time.
    pub calls: bool,
    /// What times of calls are measured with.
    pub clock: Clock,
    /// Record native allocations, about one block per this many bytes; 0 and 1 for every block.
    pub native: Option<u64>,
    /// Sample CPU use with this interval.
    pub samples: Option<Duration>,
    /// Sample all threads with this interval, whether they run or wait.
    pub wall: Option<Duration>,
    /// Take samples at safepoints.
    pub safepoint_samples: bool,
    /// Which frames samples have besides Java frames.
    pub native_stacks: NativeStacks,
    /// Report monitor contention and waiting.
    pub monitors: bool,
    /// Record the global references that native code makes.
    pub references: bool,
    /// Distinguish stacks by thread.
    pub per_thread: bool,
    /// Whether the heap is dumped when the program has ended.
    pub dumps_at_exit: bool,
    /// What happens when the heap is exhausted for the first time.
    pub when_exhausted: WhenExhausted,
    /// How many objects [`Track::Adaptive`] may track, 0 for as many as the memory allows. If it is `None`,
    /// as many as the collector takes without harm.
    pub tracked: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            depth: 4,
            call_depth: None,
            has_collector: false,
            allocations: false,
            stacks_sampled: false,
            sampled_allocations: None,
            has_profiler: true,
            native: None,
            track: Track::default(),
            calls: false,
            clock: Clock::default(),
            samples: None,
            wall: None,
            safepoint_samples: false,
            native_stacks: NativeStacks::default(),
            monitors: false,
            references: false,
            per_thread: false,
            dumps_at_exit: false,
            when_exhausted: WhenExhausted::default(),
            tracked: None,
        }
    }
}

impl Config {
    /// The capabilities that are requested of the VM; each is requested alone and may be missing.
    pub(crate) fn capabilities(&self, version: u32, has_stream: bool) -> Vec<Capability> {
        let mut wanted = vec![
            Capability::TagObjects,
            Capability::GetSourceFileName,
            Capability::GetLineNumbers,
            Capability::GenerateObjectFreeEvents,
            Capability::GetThreadCpuTime,
            Capability::SupportVirtualThreads,
            Capability::GetMonitorInfo,
            Capability::GenerateGarbageCollectionEvents,
        ];
        // Before JDK 16 this slows the program down, because the compiler no longer eliminates allocations.
        if self.has_profiler || version >= 16 {
            wanted.push(Capability::GetOwnedMonitorInfo);
        }
        if has_stream {
            wanted.push(Capability::GetCurrentContendedMonitor);
            // Before JDK 11, code is inserted instead.
            match version {
                0..11 => wanted.extend([
                    Capability::RetransformClasses,
                    Capability::GenerateVmObjectAllocEvents,
                ]),
                _ => wanted.push(Capability::GenerateSampledObjectAllocEvents),
            }
        }
        if self.when_exhausted.is_wanted() {
            wanted.push(Capability::GenerateResourceExhaustionHeapEvents);
        }
        if self.instruments() {
            wanted.extend([
                Capability::RetransformClasses,
                Capability::RetransformAnyClass,
                Capability::GenerateAllClassHookEvents,
            ]);
        }
        if self.allocations {
            wanted.push(Capability::GenerateVmObjectAllocEvents);
        }
        if self.sampled_allocations.is_some() {
            wanted.push(Capability::GenerateSampledObjectAllocEvents);
        }
        if self.needs_exact_positions() {
            wanted.push(Capability::GenerateCompiledMethodLoadEvents);
        }
        if self.monitors {
            wanted.extend([
                Capability::GenerateMonitorEvents,
                Capability::GetCurrentContendedMonitor,
            ]);
        }
        wanted
    }

    /// Whether allocations are counted or sampled.
    #[must_use]
    pub fn counts_objects(&self) -> bool {
        self.allocations || self.sampled_allocations.is_some()
    }

    /// Whether the thread of an allocation may be requested.
    #[must_use]
    pub fn distinguishes_threads(&self) -> bool {
        self.per_thread || self.has_collector
    }

    /// Whether the stacks that load classes are recorded. A stack keeps the names of the classes in it, also of those that
    /// load others and are unloaded without end, so a collector that receives only samples does not get these stacks.
    #[must_use]
    pub fn takes_load_stacks(&self) -> bool {
        !self.has_collector || self.allocations || self.calls
    }

    /// Whether stacks are taken without a safepoint; then methods must be known before.
    #[must_use]
    pub fn takes_async_stacks(&self) -> bool {
        self.samples.is_some() || self.wall.is_some() || self.native.is_some()
    }

    /// Whether the VM should record the methods and lines of all places in compiled code. It does so while someone
    /// receives the events of compiled methods, otherwise only for calls and safepoints: a sample elsewhere is then taken
    /// for the method that was inlined last before it. A collector may request samples later.
    #[must_use]
    pub(crate) fn needs_exact_positions(&self) -> bool {
        self.takes_async_stacks() || self.has_collector
    }

    /// Whether inserted code is removed when allocations are no longer counted, as a collector may request. Code that
    /// counts calls stays.
    #[must_use]
    pub fn takes_code_out(&self) -> bool {
        self.has_collector && self.allocations && !self.calls
    }

    /// Whether classes have to be changed.
    #[must_use]
    pub fn instruments(&self) -> bool {
        self.allocations || self.calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward_and_are_read_in_less_than_ten_microseconds() {
        for clock in [Clock::Elapsed, Clock::ThreadCpu] {
            let before = clock.now();
            let cost = clock.cost_of_reading();
            assert!(clock.now() > before, "{clock:?}");
            assert!((0..10_000).contains(&cost), "{clock:?} {cost} ns");
        }
    }
}
