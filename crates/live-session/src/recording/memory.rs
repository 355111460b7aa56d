//! Memory by category: asked of the VM and of the system on a thread of its own, seldom, because a VM
//! at a safepoint answers late and a large process has many pages.

use super::state::{Live, locked};
use jvm_observe::native_memory;
use jvm_observe::ranges::Ranges;
use jvm_observe::resident;
use live_analysis::sampler::Memory;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Between two questions.
const EVERY: Duration = Duration::from_secs(5);
/// It looks so often whether memory is requested.
const STEP: Duration = Duration::from_millis(200);
/// The metaspace gets new parts, seldom.
const RANGES_EVERY: Duration = Duration::from_secs(60);
/// A reading that took long is not repeated before so many times as much has passed.
const REST: u32 = 50;

/// A VM that does not answer is not asked more often.
const ATTEMPTS: u32 = 5;

impl Live {
    /// Asks until the program or the watch ends.
    pub(crate) fn ask_memory(self: &Arc<Self>) {
        let ask = |command: &str| self.program().diagnose(command).unwrap_or_default();
        let file = format!("/proc/{}/smaps", self.program().pid());
        // What does not change as long as the VM lives, and is not worth a second question.
        let (mut heap, mut info) = (String::new(), String::new());
        let mut ranges: Option<(Ranges, Instant)> = None;
        let (mut is_tracked, mut attempts) = (true, 0);
        while self.alive() {
            if heap.is_empty() && attempts < ATTEMPTS {
                attempts += 1;
                heap = ask("GC.heap_info");
                info = ask("VM.info");
            }
            let _old = ranges.take_if(|(_, asked)| asked.elapsed() >= RANGES_EVERY);
            // A VM that has only just begun does not say yet where its heap is.
            if ranges.is_none() && !heap.is_empty() {
                let metaspace = ask("VM.metaspace vslist");
                ranges = Some((Ranges::parse(&heap, &info, &metaspace), Instant::now()));
            }
            // Tracking is chosen when the VM starts.
            let tracked = is_tracked
                .then(|| ask("VM.native_memory summary"))
                .and_then(|text| native_memory::parse(&text));
            is_tracked = tracked.is_some();
            let begun = Instant::now();
            let smaps = std::fs::read_to_string(&file).ok();
            let resident = smaps
                .zip(ranges.as_ref())
                .and_then(|(smaps, (ranges, _))| resident::parse(&smaps, ranges));
            *locked(&self.memory) = Memory { tracked, resident };
            let pause = EVERY.max(begun.elapsed() * REST);
            let is_over =
                || begun.elapsed() >= pause || self.memory_wanted.swap(false, Ordering::Relaxed);
            while self.alive() && !is_over() {
                std::thread::sleep(STEP);
            }
        }
    }
}
