//! Memory by category. A separate thread queries the VM and the system infrequently, because a VM at a safepoint
//! answers late and a large process has many pages.

use super::state::{Live, locked};
use jvm_observe::native_memory::{self, NativeMemory};
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

/// Queries of the memory that the VM itself tracks.
#[derive(Default)]
struct Tracking {
    /// Number of queries in a row that had no answer.
    failed: u32,
}

impl Tracking {
    /// The tracked memory; `None` if the VM does not answer or does not track its memory.
    fn read(&mut self, ask: impl FnOnce() -> Option<String>) -> Option<NativeMemory> {
        if self.failed >= ATTEMPTS {
            return None;
        }
        let answer = ask();
        let memory = answer.as_deref().and_then(native_memory::parse);
        self.failed = match (&answer, memory) {
            (_, Some(_)) => 0,
            (None, _) => self.failed + 1,
            // Tracking can only be enabled when the VM starts.
            (Some(_), None) => ATTEMPTS,
        };
        memory
    }
}

impl Live {
    /// Repeats the queries until the program or the monitoring ends.
    pub(crate) fn ask_memory(self: &Arc<Self>) {
        let ask = |command: &str| self.program().diagnose(command).unwrap_or_default();
        let pid = self.program().pid();
        // These values do not change as long as the VM runs, so they are queried once.
        let (mut heap, mut info) = (String::new(), String::new());
        let mut ranges: Option<(Ranges, Instant)> = None;
        let (mut tracking, mut attempts) = (Tracking::default(), 0);
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
            let tracked =
                tracking.read(|| self.program().diagnose("VM.native_memory summary").ok());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_query_without_an_answer_does_not_end_the_others() {
        const TRACKED: &str = "-  Java Heap (reserved=9KB, committed=2KB)\n";
        let text = |text: &str| Some(text.to_owned());
        let mut tracking = Tracking::default();
        let mut heap = |answer: Option<String>| tracking.read(|| answer).map(|it| it.java);
        assert_eq!(heap(text(TRACKED)), Some(2048));
        assert_eq!(heap(None), None);
        assert_eq!(heap(text(TRACKED)), Some(2048));
        for _ in 0..ATTEMPTS {
            assert_eq!(heap(None), None);
        }
        assert_eq!(heap(text(TRACKED)), None, "it does not answer");
        let mut tracking = Tracking::default();
        let off = text("Native memory tracking is not enabled\n");
        assert_eq!(tracking.read(|| off), None);
        assert_eq!(tracking.read(|| panic!("a query")), None);
    }
}
