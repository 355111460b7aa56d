//! Threads that run no Java code: those of the VM (collectors, compilers) and of native libraries.
//!
//! They have timers on their CPU time like other threads, but no Java stack; their samples are counted by their names
//! in the system. No event announces them, so the system's list is read when the number of threads has changed, and
//! from time to time.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use std::{fs, io};

use locks::{Mutex, Rank};

use crate::cpu::clocks::{Clock, has_ended};
use crate::cpu::timers::own_tid;

/// Time between two readings of the list while the number of threads stays the same.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// The name of threads of the agent.
const OWN: &str = "HPROF ";
const NO_NAME: &str = "(no_name)";

/// Running threads of the agent.
static OWN_THREADS: Mutex<Vec<u32>> = Mutex::new(Rank::OwnThreads, Vec::new());

/// Runs the body of a thread of the agent, which is not sampled.
pub(crate) fn as_own<T>(body: impl FnOnce() -> T) -> T {
    struct Gone(u32);
    impl Drop for Gone {
        fn drop(&mut self) {
            OWN_THREADS.lock().retain(|tid| *tid != self.0);
        }
    }
    let tid = own_tid();
    OWN_THREADS.lock().push(tid);
    let _gone = Gone(tid);
    body()
}

/// How many threads the process has, or a number that grows with it.
pub(crate) fn count() -> u64 {
    fs::metadata("/proc/self/task").map_or(0, |tasks| tasks.nlink())
}

/// One of these threads.
#[derive(Debug)]
struct Other {
    /// Its timer; `None` for a thread of the agent.
    clock: Option<Clock>,
    /// Its name, once there was a sample of it.
    name: Option<String>,
}

/// These threads by the system's numbers.
#[derive(Debug, Default)]
struct All {
    threads: BTreeMap<u32, Other>,
    /// No thread gets a timer any more.
    is_closed: bool,
}

/// The threads that run no Java code.
#[derive(Debug)]
pub(crate) struct OtherThreads(Mutex<All>);

impl Default for OtherThreads {
    fn default() -> Self {
        Self(Mutex::new(Rank::OtherThreads, All::default()))
    }
}

impl OtherThreads {
    /// Reads the system's list and gives new threads a timer, unless they are `known` as threads that run Java code.
    /// Returns how many got none because the system has no more.
    pub(super) fn look(
        &self,
        arm: impl Fn(u32) -> io::Result<Clock>,
        known: impl Fn(u32) -> bool,
    ) -> u64 {
        let Ok(tasks) = fs::read_dir("/proc/self/task") else {
            return 0;
        };
        let number = |task: fs::DirEntry| task.file_name().to_str()?.parse().ok();
        let mut running: Vec<u32> = tasks.flatten().filter_map(number).collect();
        running.retain(|tid| !known(*tid));
        running.sort_unstable();
        let own = OWN_THREADS.lock().clone();
        let mut all = self.0.lock();
        if all.is_closed {
            return 0;
        }
        let all = &mut all.threads;
        all.retain(|tid, _| running.binary_search(tid).is_ok());
        let mut refused = 0;
        for tid in running {
            if all.contains_key(&tid) {
                continue;
            }
            let is_own =
                own.contains(&tid) || full_name(tid).is_some_and(|name| name.starts_with(OWN));
            let clock = match is_own {
                true => None,
                false => match arm(tid) {
                    Ok(clock) => Some(clock),
                    Err(error) => {
                        refused += u64::from(!has_ended(&error));
                        continue;
                    }
                },
            };
            let name = None;
            all.insert(tid, Other { clock, name });
        }
        refused
    }

    /// The name of a thread; threads with the same purpose have one name.
    pub(crate) fn name(&self, tid: u32) -> String {
        let read = || {
            let process = fs::read_to_string("/proc/self/comm").unwrap_or_default();
            // A thread without a name of its own has the name of the program.
            let name = full_name(tid).filter(|name| name != process.trim_end());
            name.map_or(NO_NAME.to_owned(), |name| kind_of(&name))
        };
        match self.0.lock().threads.get_mut(&tid) {
            Some(thread) => thread.name.get_or_insert_with(read).clone(),
            // A thread that runs Java code at other times. An entry would be left behind, because its end is not noticed
            // here.
            None => read(),
        }
    }

    /// Sets the period of all timers.
    pub(crate) fn signal_every(&self, period: Duration) {
        let all = self.0.lock();
        let clocks = all
            .threads
            .values()
            .filter_map(|thread| thread.clock.as_ref());
        for clock in clocks {
            // One of a thread that has just ended is refused.
            let _ = clock.set(period);
        }
    }

    /// Deletes the timer of a thread, which runs Java code.
    pub(crate) fn disarm(&self, tid: u32) {
        drop(self.0.lock().threads.remove(&tid));
    }

    /// Deletes all timers; no thread gets another one.
    pub(crate) fn close(&self) {
        *self.0.lock() = All {
            is_closed: true,
            ..All::default()
        };
    }
}

/// The system's name of a thread, at most 15 bytes.
fn full_name(tid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/self/task/{tid}/comm")).ok()?;
    Some(name.trim_end_matches('\n').to_owned())
}

/// A thread's name as the name of a frame, without the number at its end: `GC Thread#3` becomes `GC_Thread`, because
/// readers of the text form treat a space as the end of a name. Behind the number may be the begin of a longer name that
/// the system has cut, as in `Gang worker#0 (` of JDK 8.
fn kind_of(name: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit();
    let cut = name.split_once('#').filter(|(kind, rest)| {
        let behind = rest.trim_start_matches(is_number);
        !kind.is_empty() && behind.len() < rest.len() && behind.starts_with(' ')
    });
    let name = cut.map_or(name, |(kind, _)| kind);
    let without = name.trim_end_matches(is_number);
    // The number may be cut off, because the system keeps few bytes of a name.
    let has_number = without.len() < name.len() || name.ends_with('#');
    let kind = match without.strip_suffix(['#', '-', ' ', '_']) {
        Some(kind) if has_number && !kind.is_empty() => kind,
        _ => name,
    };
    let plain = |c: char| {
        if c.is_alphanumeric() || "#-/".contains(c) {
            c
        } else {
            '_'
        }
    };
    let kind: String = kind.chars().map(plain).collect();
    match kind.trim_matches('_') {
        "" => NO_NAME.to_owned(),
        kind => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::clocks::{Mark, Timer};
    use crate::vm::registry::Registry;

    #[test]
    fn any_number_of_threads_leaves_few_names_behind() {
        let others = OtherThreads::default();
        let mut registry = Registry::default();
        for number in 0..20_000 {
            registry.frame_of_other(&format!("job {number} of many"));
        }
        assert_eq!(registry.methods.last(), 257);
        let first = registry.frame_of_other("job 0 of many").method;
        assert_eq!(registry.methods[first.0].info.name, "job 0 of many");
        let late = registry.frame_of_other("job 19999 of many").method;
        assert_eq!(registry.methods[late.0].info.name, "(other_names)");
        // A thread that is not in the list is not added to it.
        others.name(own_tid());
        assert!(others.0.lock().threads.is_empty());
    }

    #[test]
    fn threads_that_do_the_same_have_one_name() {
        for (name, kind) in [
            ("GC Thread#0", "GC_Thread"),
            ("G1 Conc#12", "G1_Conc"),
            ("GC task thread#", "GC_task_thread"),
            ("Gang worker#0 (", "Gang_worker"),
            ("Gang worker#12 ", "Gang_worker"),
            ("#1 (of 2)", "#1__of_2"),
            ("C2 CompilerThre", "C2_CompilerThre"),
            ("worker-7", "worker"),
            ("ZWorker", "ZWorker"),
            ("rocksdb:low0", "rocksdb_low0"),
            ("a.b(c)", "a_b_c"),
            ("12", "12"),
            ("", NO_NAME),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }

    #[test]
    fn a_thread_of_the_system_is_found_and_has_its_name() {
        let (begun, wait) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("collector#3".to_owned());
        let thread = thread.spawn(move || {
            let _ = begun.send(own_tid());
            ended.recv()
        });
        let tid = wait.recv().expect("it runs");
        let others = OtherThreads::default();
        let never = |tid| Timer::arm(Duration::ZERO, tid, Mark::Other).map(Clock::Timer);
        assert_eq!(others.look(never, |known| known != tid), 0);
        assert_eq!(others.name(tid), "collector");
        assert!(count() > 1, "the system counts threads");
        // It begins to run Java code.
        others.look(never, |_| true);
        assert!(others.0.lock().threads.is_empty());
        others.close();
        assert_eq!(others.look(never, |known| known != tid), 0);
        assert!(others.0.lock().threads.is_empty(), "no timer after the end");
        let _ = end.send(());
        let _ = thread.expect("spawned").join();
    }
}
