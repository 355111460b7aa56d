//! What happens when the memory budget is reached, and how it is reported.

use vmpi::{ThreadId, TraceId, Worth};

use crate::vm::costs;
use crate::vm::state::State;

impl State {
    /// Adds a sample of a thread at a stack. Without memory for another row it is counted for no thread.
    pub(crate) fn add_samples(&mut self, thread: ThreadId, trace: TraceId, more: u64) {
        if let Some(count) = self.samples.get_mut(&(thread, trace)) {
            *count += more;
            return;
        }
        let memory = &self.registry.memory;
        let of_thread = thread != ThreadId::NONE;
        let thread = match of_thread && memory.native.take(Worth::Stacks, costs::SAMPLE) {
            true => thread,
            false => ThreadId::NONE,
        };
        *self.samples.entry((thread, trace)).or_default() += more;
    }

    /// The samples since the last call.
    pub(crate) fn take_samples(
        &mut self,
    ) -> impl Iterator<Item = ((ThreadId, TraceId), u64)> + use<> {
        let samples = std::mem::take(&mut self.samples);
        let charged = samples
            .keys()
            .filter(|(thread, _)| *thread != ThreadId::NONE);
        let bytes = costs::SAMPLE * charged.count() as u64;
        self.registry.memory.native.give(Worth::Stacks, bytes);
        samples.into_iter()
    }

    /// Adds what the memory limit has dropped or changed to the notes of the profile.
    pub(crate) fn take_shortages(&mut self, nameless: u64) {
        let refused = std::mem::take(&mut self.registry.refused);
        let joined = std::mem::take(&mut self.sites.joined);
        let flushed = std::mem::take(&mut self.flushed);
        let contexts = std::mem::take(&mut self.contexts_refused);
        let counts = [
            (
                "stacks (memory limit): counts at them have no stack",
                refused.stacks,
            ),
            (
                "sites (memory limit): their objects are counted without a stack",
                joined,
            ),
            (
                "names of classes and methods (memory limit)",
                refused.names + nameless,
            ),
            (
                "calling contexts (memory limit): their calls are counted without a caller",
                contexts,
            ),
        ];
        for (what, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            *self.lost.entry(what).or_default() += count;
        }
        let memory = &self.registry.memory;
        if flushed > 0 || memory.native.refused() + memory.heap.refused() > self.refusals_reported {
            self.refusals_reported = memory.native.refused() + memory.heap.refused();
            self.degraded.extend(memory.shortages());
            if flushed > 0 {
                self.degraded.push(format!(
                    "memory= is reached: tables of threads were emptied {flushed} times instead of growing; no count is lost, but the \
                     program ran slower"
                ));
            }
        }
    }
}
