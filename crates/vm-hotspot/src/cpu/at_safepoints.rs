//! Samples of all threads at once, if stacks are taken at safepoints.
//!
//! The VM also calls a thread runnable that waits in native code for an event. So a thread has a CPU sample at its stack
//! for each interval of CPU time that it has used since its last one.

use std::time::{Duration, Instant};

use jvmti::{Env, Jni, Live};
use rustc_hash::FxHashMap;
use vmpi::ThreadId;

use crate::cpu::sampler::{Sampler, trace_of};
use crate::cpu::wall::Elapsed;
use crate::vm::hotspot::HotSpot;

/// Takes the stacks of all threads repeatedly.
pub(super) struct AtSafepoints {
    /// When stacks were last counted as wall-clock samples.
    counted: Instant,
    /// The CPU time of threads that CPU samples stand for.
    sampled: FxHashMap<ThreadId, Sampled>,
    /// How often stacks have been taken.
    turn: u64,
}

/// The CPU time of a thread that CPU samples stand for.
struct Sampled {
    ns: i64,
    /// The turn in which the thread was last runnable.
    turn: u64,
}

impl AtSafepoints {
    pub(super) fn new() -> Self {
        Self {
            counted: Instant::now(),
            sampled: FxHashMap::default(),
            turn: 0,
        }
    }

    /// No CPU samples are taken for a while.
    pub(super) fn pause(&mut self) {
        self.sampled.clear();
    }

    /// The samples that a thread has earned, by its CPU time in nanoseconds. At first it has one if it has run for an
    /// interval at all.
    fn earned(&mut self, thread: ThreadId, spent: i64, interval: Duration) -> u64 {
        let interval = i64::try_from(interval.as_nanos())
            .unwrap_or(i64::MAX)
            .max(1);
        let first = Sampled {
            ns: (spent - interval).max(0),
            turn: self.turn,
        };
        let sampled = self.sampled.entry(thread).or_insert(first);
        let earned = (spent - sampled.ns).max(0) / interval;
        sampled.ns += earned * interval;
        sampled.turn = self.turn;
        earned.unsigned_abs()
    }

    /// Takes stacks. Runnable threads have CPU samples if these are wanted. If wall-clock samples are due
    /// afterwards, every thread counts as one, for the time since the last ones. The VM can take long to stop its
    /// threads; that time is counted for the stacks that it has waited for.
    pub(super) fn take(
        &mut self,
        sampler: &Sampler,
        (hotspot, env, jni): (&HotSpot, Env<Live>, Jni),
        wants_cpu: bool,
        is_due: impl FnOnce() -> bool,
    ) {
        const RUNNABLE: i32 = 0x4;
        const SUSPENDED_OR_INTERRUPTED: i32 = 0x30_0000;
        let depth = sampler.depth();
        let Ok(stacks) = env.all_stacks(jni, depth as i32) else {
            return;
        };
        let since = is_due().then(|| {
            let now = Instant::now();
            now - std::mem::replace(&mut self.counted, now)
        });
        self.turn += 1;
        let threads = stacks.len();
        for row in stacks {
            let is_running = row.state & RUNNABLE != 0 && row.state & SUSPENDED_OR_INTERRUPTED == 0;
            if !is_running && since.is_none() {
                continue;
            }
            let mut state = hotspot.lock();
            let thread = state.registry.thread(env, Some(row.thread), false);
            let is_ours = state.registry.is_agent(thread).unwrap_or(true);
            let is_cpu = wants_cpu && is_running && sampler.has_chosen(thread);
            if is_ours || row.frames.is_empty() || !is_cpu && since.is_none() {
                continue;
            }
            let earned = match is_cpu.then(|| env.thread_cpu_time(row.thread)) {
                None => 0,
                Some(Ok(spent)) => self.earned(thread, spent, sampler.interval()),
                // Without a clock, one for each time that it is seen.
                Some(Err(_)) => 1,
            };
            if earned == 0 && since.is_none() {
                continue;
            }
            let frames = state.registry.stack(env, jni, &row.frames, depth);
            let trace = trace_of(hotspot, &mut state, thread, frames);
            if earned > 0 {
                state.add_samples(thread, trace, earned);
            }
            if let Some(since) = since {
                let elapsed = Elapsed {
                    us: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
                    is_waiting: !is_running,
                };
                state.add_wall(trace, elapsed);
            }
        }
        if self.sampled.len() > threads {
            // Some have ended.
            self.sampled.retain(|_, sampled| sampled.turn == self.turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_a_sample_for_each_interval_of_cpu_time() {
        let mut samples = AtSafepoints::new();
        let mut earned = |thread, spent_ms: i64| {
            let interval = Duration::from_millis(2);
            samples.earned(ThreadId(thread), spent_ms * 1_000_000, interval)
        };
        // One that ran before, and one that has just begun.
        assert_eq!([earned(1, 100), earned(2, 1)], [1, 0]);
        // It waits in native code.
        assert_eq!([earned(1, 100), earned(1, 100)], [0, 0]);
        assert_eq!([earned(1, 101), earned(1, 102), earned(1, 109)], [0, 1, 3]);
        assert_eq!([earned(2, 2), earned(2, 3), earned(2, 4)], [1, 0, 1]);
    }
}
