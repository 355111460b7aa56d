//! The memory of a stopped process.

use crate::fault::Fault;
use crate::memory::{Address, Memory, read_file_at};
use std::fs::{self, File};
use std::path::PathBuf;

/// The memory of a process.
#[derive(Debug)]
pub struct Process {
    memory: File,
    /// Mapped ranges that can be read, in the order of addresses.
    ranges: Vec<(Address, Address)>,
    libjvm: Address,
}

impl Process {
    /// Opens the memory of a process. The process should be stopped from before this call until the last read.
    ///
    /// # Errors
    /// It is not a HotSpot VM, or its memory may not be read.
    pub fn open(pid: u32) -> Result<Process, Fault> {
        let folder = folder(pid);
        let wrong = || format!("cannot read the memory of process {pid}");
        let maps = fs::read_to_string(folder.join("maps")).map_err(Fault::io(wrong()))?;
        let memory = File::open(folder.join("mem")).map_err(Fault::io(wrong()))?;
        let mut ranges = Vec::new();
        let mut libjvm = None;
        for mapping in maps.lines().filter_map(Mapping::parse) {
            if mapping.readable {
                ranges.push((mapping.start, mapping.end));
            }
            if libjvm.is_none() && mapping.offset == 0 && is_libjvm(mapping.path) {
                libjvm = Some(mapping.start);
            }
        }
        Ok(Process {
            memory,
            ranges,
            libjvm: libjvm.ok_or_else(|| Fault::NoVm(format!("process {pid}")))?,
        })
    }

    /// The address of the first byte of `libjvm.so`.
    pub fn libjvm(&self) -> Address {
        self.libjvm
    }
}

impl Memory for Process {
    fn read(&self, at: Address, into: &mut [u8]) -> usize {
        read_file_at(&self.memory, into, at)
    }

    fn next_readable(&self, at: Address) -> Option<Address> {
        let next = self.ranges.partition_point(|(_, end)| *end <= at);
        self.ranges.get(next).map(|(start, _)| (*start).max(at))
    }

    fn has_ended(&self) -> bool {
        self.read(self.libjvm, &mut [0]) == 0
    }
}

/// The folder in which the kernel shows the memory of a process: its own, or that of another thread if its main thread
/// has ended.
fn folder(pid: u32) -> PathBuf {
    let own = PathBuf::from(format!("/proc/{pid}"));
    if !has_ended(pid, pid) {
        return own;
    }
    let tasks = fs::read_dir(own.join("task")).into_iter().flatten();
    let ids = tasks.flatten().filter_map(|task| {
        let id = task.file_name().to_str()?.parse().ok()?;
        Some((id, task.path()))
    });
    let mut running = ids.filter(|(id, _)| !has_ended(pid, *id));
    running.next().map_or(own, |(_, task)| task)
}

/// Whether a thread has ended, also if it still has an entry.
pub(crate) fn has_ended(pid: u32, thread: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat"));
    // The name in brackets may contain any characters.
    let state = |stat: &str| stat.rsplit_once(") ")?.1.chars().next();
    stat.map_or(true, |stat| matches!(state(&stat), Some('Z' | 'X')))
}

/// Whether a mapped file is the library of the VM, also if another file has its name by now.
pub(crate) fn is_libjvm(path: &str) -> bool {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.ends_with("/libjvm.so")
}

/// A line of `/proc/PID/maps`.
struct Mapping<'a> {
    start: Address,
    end: Address,
    readable: bool,
    offset: u64,
    path: &'a str,
}

impl Mapping<'_> {
    fn parse(line: &str) -> Option<Mapping<'_>> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (rights, rest) = rest.split_once(' ')?;
        let (offset, rest) = rest.split_once(' ')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        // The path comes after the device and the inode, and many blanks.
        let path = rest
            .split_once(' ')?
            .1
            .split_once(' ')
            .map_or("", |(_, path)| path);
        Some(Mapping {
            start: hex(start)?,
            end: hex(end)?,
            readable: rights.starts_with('r'),
            offset: hex(offset)?,
            path: path.trim_start(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Mapping, is_libjvm};

    #[test]
    fn a_line_of_a_map_is_read_with_blanks_in_its_path() {
        let line = "7f26400000-7f26500000 r-xp 00a00000 08:01 1234                  /a b/libjvm.so (deleted)";
        let mapping = Mapping::parse(line).expect("a mapping");
        assert_eq!((mapping.start, mapping.end), (0x7f26400000, 0x7f26500000));
        assert_eq!((mapping.offset, mapping.readable), (0xa00000, true));
        assert!(is_libjvm(mapping.path), "{}", mapping.path);
        let none = Mapping::parse("7f00-7f01 ---p 00000000 00:00 0 ").expect("a mapping");
        assert_eq!((none.path, none.readable), ("", false));
        assert!(Mapping::parse("what").is_none());
    }
}
