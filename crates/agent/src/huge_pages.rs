//! Moves memory of this process to huge pages before the process is copied for a heap dump. A fork copies one entry of
//! the page table for each page, so with huge pages the program is stopped for only a small part of the time.
//!
//! Only private memory without a file is moved, and of that only ranges of the size of a huge page whose pages are all
//! in memory, so that the program needs no more memory than before.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use libc::{c_int, c_void};
use vm_hotspot::own_file;

const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;
const PAGES: usize = (HUGE / PAGE) as usize;
/// A bit in an entry of `/proc/self/pagemap`: the page is in memory.
const PRESENT: u64 = 1 << 63;
/// Since Linux 6.1.
const MADV_COLLAPSE: c_int = 25;

/// Moves as much memory as possible. Returns how many more bytes are on huge pages now.
pub(crate) fn collect() -> Result<u64, String> {
    // SAFETY: the call takes a number only.
    if unsafe { libc::sysconf(libc::_SC_PAGESIZE) } != PAGE as libc::c_long {
        return Err("this system has no pages of 4 KiB".to_owned());
    }
    let broken = |error: io::Error| format!("the memory of this process is not described: {error}");
    let maps = fs::read_to_string(own_file("maps")).map_err(broken)?;
    let present = File::open(own_file("pagemap")).map_err(broken)?;
    let before = on_huge_pages().map_err(broken)?;
    let ranges = maps.lines().filter_map(anonymous).flat_map(huge_ranges);
    let (mut moved, mut refused) = (0, 0);
    for at in ranges.filter(|at| is_whole(&present, *at)) {
        match collapse(at) {
            Tried::Moved => moved += 1,
            Tried::Refused => refused += 1,
            Tried::Failed => {}
        }
    }
    if moved == 0 && refused > 0 {
        return Err(
            "the kernel cannot move memory to huge pages on request (it can since Linux 6.1)"
                .to_owned(),
        );
    }
    Ok(on_huge_pages().map_err(broken)?.saturating_sub(before))
}

/// The addresses of a line of `/proc/PID/maps`, if it is of private writable memory without a file.
fn anonymous(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let is_writable = words.next()? == "rw-p";
    // The remaining words are an offset, a device, an inode, and in some lines a name.
    let name = words.nth(3);
    let is_anonymous = name.is_none_or(|name| name == "[heap]" || name.starts_with("[anon:"));
    (is_writable && is_anonymous).then_some(())?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?))
}

/// The addresses of the huge pages that lie in a range.
fn huge_ranges((start, end): (u64, u64)) -> impl Iterator<Item = u64> {
    let first = start.next_multiple_of(HUGE);
    (first..end)
        .step_by(HUGE as usize)
        .filter(move |at| end - at >= HUGE)
}

/// Whether all small pages of a huge one are in memory.
fn is_whole(present: &File, at: u64) -> bool {
    let mut entries = [0_u8; PAGES * 8];
    let read = present.read_exact_at(&mut entries, at / PAGE * 8);
    let all = || {
        let mut entries = entries.as_chunks().0.iter();
        entries.all(|entry| u64::from_le_bytes(*entry) & PRESENT != 0)
    };
    read.is_ok() && all()
}

enum Tried {
    /// The memory is on a huge page now, or already was.
    Moved,
    /// The kernel does not support this request, or not for this memory: thread stacks may be excluded.
    Refused,
    /// Not possible now: the range may have been unmapped or be used by a device, or no huge page is free.
    Failed,
}

/// Moves one range.
fn collapse(at: u64) -> Tried {
    // SAFETY: the request changes no content of memory, whatever lies there.
    if unsafe { libc::madvise(at as *mut c_void, HUGE as usize, MADV_COLLAPSE) } == 0 {
        return Tried::Moved;
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EINVAL) => Tried::Refused,
        _ => Tried::Failed,
    }
}

/// Bytes of this process on huge pages.
fn on_huge_pages() -> io::Result<u64> {
    let text = fs::read_to_string(own_file("smaps_rollup"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:"));
    let number = line.and_then(|line| line.trim().strip_suffix("kB"));
    let number: Option<u64> = number.and_then(|number| number.trim().parse().ok());
    Ok(number.unwrap_or(0) << 10)
}

#[cfg(test)]
mod tests {
    use super::{HUGE, anonymous, huge_ranges};

    #[test]
    fn private_memory_without_a_file_is_found() {
        let heap = "e0000000-100000000 rw-p 00000000 00:00 0 ";
        assert_eq!(anonymous(heap), Some((0xe000_0000, 0x1_0000_0000)));
        let named = "5000-6000 rw-p 00000000 00:00 0    [anon:glibc: malloc arena]";
        assert_eq!(anonymous(named), Some((0x5000, 0x6000)));
        let others = [
            "5000-6000 r-xp 00000000 00:00 0 ",
            "5000-6000 rw-s 00000000 00:00 0 ",
            "5000-6000 rw-p 00000000 08:01 17    /usr/lib/libjvm.so",
            "5000-6000 rw-p 00000000 00:00 0    [stack]",
            "",
        ];
        for other in others {
            assert_eq!(anonymous(other), None, "{other}");
        }
    }

    #[test]
    fn only_whole_huge_pages_are_taken() {
        let of = |start, end| huge_ranges((start, end)).collect::<Vec<_>>();
        assert_eq!(of(0, 2 * HUGE), [0, HUGE]);
        assert_eq!(of(1, 2 * HUGE), [HUGE]);
        assert_eq!(of(HUGE, 2 * HUGE - 1), [0; 0]);
        assert_eq!(of(HUGE + 1, 2 * HUGE - 1), [0; 0]);
    }
}
