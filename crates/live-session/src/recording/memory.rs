//! Memory by category. A separate thread queries the VM and the system infrequently, because a VM at a safepoint
//! answers late and a large process has many pages.

use super::state::{Live, locked};
use jvm_observe::native_memory;
use jvm_observe::process;
use jvm_observe::ranges::Ranges;
use jvm_observe::resident;
use live_analysis::sampler::Memory;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The time between two queries.
const EVERY: Duration = Duration::from_secs(5);
/// How often the thread checks whether memory is requested.
const STEP: Duration = Duration::from_millis(200);
/// The metaspace is rarely extended.
const RANGES_EVERY: Duration = Duration::from_secs(60);
/// After a reading, the next one waits for this many times the duration of the reading.
const REST: u32 = 50;

/// The most attempts with a VM that does not answer.
const ATTEMPTS: u32 = 5;

impl Live {
    /// Repeats the queries until the program or the monitoring ends.
    pub(crate) fn ask_memory(self: &Arc<Self>) {
        let ask = |command: &str| self.program().diagnose(command).unwrap_or_default();
        let pid = self.program().pid();
        // These values do not change as long as the VM runs, so they are queried once.
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
            // A VM that has just started does not report yet where its heap is.
            if ranges.is_none() && !heap.is_empty() {
                let metaspace = ask("VM.metaspace vslist");
                ranges = Some((Ranges::parse(&heap, &info, &metaspace), Instant::now()));
            }
            // Tracking can only be enabled when the VM starts.
            let tracked = is_tracked
                .then(|| ask("VM.native_memory summary"))
                .and_then(|text| native_memory::parse(&text));
            is_tracked = tracked.is_some();
            let begun = Instant::now();
            let smaps = std::fs::read_to_string(process::folder(pid).join("smaps")).ok();
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
