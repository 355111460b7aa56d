//! Samples of all threads at once, if stacks are taken at safepoints.

use std::time::Instant;

use jvmti::{Env, Jni, Live};

use crate::cpu::sampler::{Sampler, trace_of};
use crate::cpu::wall::Elapsed;
use crate::vm::hotspot::HotSpot;

/// Takes the stacks of all threads repeatedly.
pub(super) struct AtSafepoints {
    /// When stacks were last counted as wall-clock samples.
    counted: Instant,
}

impl AtSafepoints {
    pub(super) fn new() -> Self {
        let counted = Instant::now();
        Self { counted }
    }

    /// Takes stacks. Every runnable thread counts as a CPU sample if these are wanted. If wall-clock samples are due
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
            let frames = state.registry.stack(env, jni, &row.frames, depth);
            let trace = trace_of(hotspot, &mut state, thread, frames);
            if is_cpu {
                state.add_sample(thread, trace);
            }
            if let Some(since) = since {
                let elapsed = Elapsed {
                    us: u32::try_from(since.as_micros()).unwrap_or(u32::MAX),
                    is_waiting: !is_running,
                };
                state.add_wall(trace, elapsed);
            }
        }
    }
}
