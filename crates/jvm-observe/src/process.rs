//! The system's data about a process: memory, CPU time, threads. It comes from `/proc`, so the process itself does no
//! work for it.

use std::fs;
use std::path::{Path, PathBuf};

/// Ticks per second in `/proc/PID/stat`, which are fixed in the kernel's interface, independent of its own clock.
const TICKS: f64 = 100.0;

/// A process at one time. Sizes are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Its start time, in ticks since boot, which distinguishes it from a later process with the same id.
    pub started: u64,
    /// CPU seconds used, of all threads.
    pub cpu_seconds: f64,
    /// Threads.
    pub threads: u64,
    /// Resident memory.
    pub resident: u64,
    /// Resident memory that no file backs: heap, stacks, malloc.
    pub anonymous: u64,
    /// Memory that is swapped out.
    pub swapped: u64,
}

/// The folder in which the system shows the memory and the files of a process: its own, or that of another thread if its
/// main thread has ended, as that of a launcher can.
pub fn folder(pid: u32) -> PathBuf {
    let own = PathBuf::from(format!("/proc/{pid}"));
    let is_running = |folder: &Path| {
        let stat = fs::read_to_string(folder.join("stat"));
        stat.is_ok_and(|stat| state(&stat).is_some_and(|state| !has_ended(state)))
    };
    if is_running(&own) {
        return own;
    }
    let tasks = fs::read_dir(own.join("task")).into_iter().flatten();
    let mut tasks = tasks.flatten().map(|task| task.path());
    tasks.find(|task| is_running(task)).unwrap_or(own)
}

/// The state of a process or thread, which is after its name; the name is in brackets and may contain any characters,
/// including brackets.
fn state(stat: &str) -> Option<&str> {
    stat.rsplit_once(") ")?.1.split_whitespace().next()
}

fn has_ended(state: &str) -> bool {
    matches!(state, "Z" | "X")
}

/// Reads a process; `None` if it does not exist or has ended (a zombie has no memory).
pub fn read(pid: u32) -> Option<Process> {
    // The first file counts for all threads, also after the main thread has ended, the second needs one that runs, and
    // that one may end meanwhile.
    (0..3).find_map(|_| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let status = fs::read_to_string(folder(pid).join("status")).ok()?;
        parse(&stat, &status)
    })
}

fn parse(stat: &str, status: &str) -> Option<Process> {
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()
    };
    if has_ended(line("State:")?) {
        return None;
    }
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The numbers are those of proc(5), where the state is field 3.
    let number = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    let size = |name| line(name)?.parse::<u64>().ok();
    let kilobytes = |name| size(name).unwrap_or(0) << 10;
    Some(Process {
        started: number(22)?,
        cpu_seconds: (number(14)? + number(15)?) as f64 / TICKS,
        threads: number(20)?,
        // A process that is exiting has no memory before its last thread has ended.
        resident: size("VmRSS:")? << 10,
        anonymous: kilobytes("RssAnon:"),
        swapped: kilobytes("VmSwap:"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_has_memory() {
        let here = read(std::process::id()).unwrap();
        assert!(here.resident > 1 << 20 && here.threads >= 1 && here.started > 0);
        assert!(here.anonymous <= here.resident);
        assert_eq!(read(u32::MAX), None);
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let process = parse(&stat("S"), RUNS).unwrap();
        assert_eq!(
            (process.cpu_seconds, process.threads, process.started),
            (3.0, 12, 99)
        );
        assert_eq!(
            (process.resident, process.anonymous, process.swapped),
            (8192, 4096, 0)
        );
    }

    #[test]
    fn a_process_has_ended_when_its_last_thread_has() {
        assert_eq!(parse(&stat("Z"), "State:\tZ (zombie)\n"), None);
        // The files of a thread that runs on after the main thread.
        assert_eq!(parse(&stat("Z"), RUNS), parse(&stat("S"), RUNS));
    }

    const RUNS: &str = "State:\tS (sleeping)\nVmRSS:\t 8 kB\nRssAnon: 4 kB\n";

    fn stat(state: &str) -> String {
        format!("7 (a) b (c) {state} 1 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 12 0 99 1 1")
    }
}
