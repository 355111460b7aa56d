//! What to measure.

use std::time::Duration;

/// How living objects are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// Not at all: only allocations are counted.
    None,
    /// Every object of a site until it has made [`EXACT_PER_SITE`], then every
    /// second, fourth, and so on: small sites are exact, large ones estimated.
    #[default]
    Adaptive,
    /// Every object, at once: counts of the living are exact, and cost accordingly.
    Exact,
    /// Every object, as a dump with allocation stacks needs. They are gathered first, and
    /// held so long.
    Every,
}

/// Objects of one site and thread that [`Follow::Adaptive`] follows one by one; a
/// power of two.
pub const EXACT_PER_SITE: i64 = 4096;

/// What times of calls are measured with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Elapsed time, brought up to date every millisecond by a thread: reading it
    /// costs nothing. A single short call is seen as 0 or 1 ms, the sum of many is
    /// right, because calls do not keep step with the clock.
    #[default]
    Elapsed,
    /// Elapsed time, read from the system at every call.
    Precise,
    /// CPU time of the thread, brought up to date every millisecond.
    ThreadCpu,
}

/// What to measure, decided when the agent is loaded.
#[derive(Clone, Debug)]
pub struct Config {
    /// Frames kept of a stack.
    pub depth: u32,
    /// Frames kept of a calling context when calls are counted.
    pub call_depth: u32,
    /// Count every allocation by class and stack.
    pub allocations: bool,
    /// Sample allocations instead, one in about so many bytes.
    pub sampled_allocations: Option<u64>,
    /// Follow objects until they die.
    pub follow: Follow,
    /// Count every call and measure its time.
    pub calls: bool,
    /// What times of calls are measured with.
    pub clock: Clock,
    /// Sample CPU use with this interval.
    pub samples: Option<Duration>,
    /// Sample all runnable threads at safepoints instead of those on CPU.
    pub safepoint_samples: bool,
    /// Sample threads that wait, too; implies safepoints.
    pub wall_samples: bool,
    /// Report monitor contention and waiting.
    pub monitors: bool,
    /// Keep stacks apart by thread.
    pub per_thread: bool,
    /// The heap is dumped when the program has ended.
    pub dumps_at_exit: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            depth: 4,
            call_depth: 4,
            allocations: false,
            sampled_allocations: None,
            follow: Follow::default(),
            calls: false,
            clock: Clock::default(),
            samples: None,
            safepoint_samples: false,
            wall_samples: false,
            monitors: false,
            per_thread: false,
            dumps_at_exit: false,
        }
    }
}

impl Config {
    /// Whether allocations are counted or sampled.
    #[must_use]
    pub fn counts_objects(&self) -> bool {
        self.allocations || self.sampled_allocations.is_some()
    }

    /// Whether classes have to be changed.
    #[must_use]
    pub fn instruments(&self) -> bool {
        self.allocations || self.calls
    }
}
