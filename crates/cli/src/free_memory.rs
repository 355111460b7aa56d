//! How much memory is free.

use server::live::container;
use std::fs;

/// One part in so many of the free memory is left to others, and to what the limit does not count.
const RESERVE: u64 = 8;
/// The least reserve: what an analysis takes besides its arrays, and the pages of the dump that it works on.
const LEAST_RESERVE: u64 = 96 << 20;
/// The least limit: what any analysis takes, however small the dump is.
const LEAST: u64 = 16 << 20;

/// Bytes that a process can still take: in its control group, and on the machine. `None` where the system does not
/// say.
pub(crate) fn of_process(pid: u32) -> Option<u64> {
    let group = container::read(pid).map(container::Container::free);
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| available(&text));
    [group, machine].into_iter().flatten().min()
}

/// The limit of memory of an analysis unless one is given: what is free, less a reserve.
pub(crate) fn usual_limit() -> Option<u64> {
    let free = of_process(std::process::id())?;
    let reserve = (free / RESERVE).max(LEAST_RESERVE);
    Some(free.saturating_sub(reserve).max(LEAST))
}

/// The line of `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::{available, usual_limit};

    #[test]
    fn free_memory_is_read_in_kibibytes() {
        let text = "MemTotal:       24683616 kB\nMemAvailable:   23000000 kB\n";
        assert_eq!(available(text), Some(23_000_000 << 10));
        assert_eq!(available("MemTotal: 24683616 kB\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_a_limit() {
        assert!(usual_limit().is_some_and(|limit| limit >= super::LEAST));
    }
}
