//! The rules of the loaded libraries, in a list that only grows, so that a signal handler reads it without a lock.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use locks::{Mutex, Rank};
use object::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef, SegmentFlags};
use vmpi::Memory;

use crate::cpu::native_walk::own_memory;
use crate::cpu::unwind_rules::{Row, Rule, rows_of, rule_at};
use crate::native::own_files::own_file;

/// The most libraries with rules.
const MOST: usize = 512;
/// The share of the agent's memory that rules may take: a 16th.
const SHARE: u64 = 16;

/// A library's code in memory.
struct Table {
    begin: AtomicUsize,
    /// 0 when the library is no longer there.
    end: AtomicUsize,
    /// The difference between addresses in memory and in its file.
    bias: usize,
    path: PathBuf,
    rows: Arc<[Row]>,
}

static TABLES: [AtomicPtr<Table>; MOST] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The rules that were read so far.
struct Known {
    /// The rows of each file.
    files: BTreeMap<PathBuf, Arc<[Row]>>,
    /// Bytes of all rows.
    bytes: u64,
}

static KNOWN: Mutex<Known> = Mutex::new(
    Rank::UnwindTables,
    Known {
        files: BTreeMap::new(),
        bytes: 0,
    },
);

/// The rule for an address; `None` outside of libraries with rules. For signal handlers, too.
pub(super) fn rule_for(address: usize) -> Option<Rule> {
    let count = COUNT.load(Ordering::Acquire).min(MOST);
    for table in &TABLES[..count] {
        // SAFETY: null, or a table that is never freed.
        let Some(table) = (unsafe { table.load(Ordering::Acquire).as_ref() }) else {
            continue;
        };
        let is_behind = address < table.end.load(Ordering::Relaxed);
        if is_behind && address >= table.begin.load(Ordering::Relaxed) {
            let offset = u32::try_from(address.wrapping_sub(table.bias)).ok()?;
            return Some(rule_at(&table.rows, offset));
        }
    }
    None
}

/// A part of a file that is mapped as code.
struct Mapped {
    begin: usize,
    end: usize,
    /// Where the part begins in the file.
    offset: u64,
    path: PathBuf,
}

impl Mapped {
    /// From a line of `/proc/self/maps`.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (begin, end) = words.next()?.split_once('-')?;
        let is_code = words.next()?.as_bytes().get(2) == Some(&b'x');
        let number = |text| u64::from_str_radix(text, 16).ok();
        let offset = number(words.next()?)?;
        let path = words.nth(2)?.trim_start();
        let is_file = path.starts_with('/') || path == VDSO;
        (is_code && is_file).then_some(Self {
            begin: number(begin)? as usize,
            end: number(end)? as usize,
            offset,
            path: PathBuf::from(path),
        })
    }

    /// The difference between addresses in memory and in its file, and the rules if they are wanted. Only these parts
    /// of the file are read, because it may be larger than all memory of the program. The kernel's own library (vDSO)
    /// has no file.
    fn read(&self, with_rules: bool) -> Option<(usize, Arc<[Row]>)> {
        if self.path != Path::new(VDSO) {
            let parts = ReadCache::new(File::open(&self.path).ok()?);
            return self.read_in(&parts, with_rules);
        }
        let mut bytes = vec![0; self.end - self.begin];
        let memory = own_memory().ok()?;
        memory.read_exact_at(&mut bytes, self.begin as u64).ok()?;
        self.read_in(&*bytes, with_rules)
    }

    fn read_in<'f>(
        &self,
        bytes: impl ReadRef<'f>,
        with_rules: bool,
    ) -> Option<(usize, Arc<[Row]>)> {
        let file = object::File::parse(bytes).ok()?;
        let bias = self.bias(&file)?;
        let section = file.section_by_name(".eh_frame").filter(|_| with_rules);
        let rows = section.and_then(|section| {
            let data = section.data().ok()?;
            Some(rows_of(data, section.address()))
        });
        Some((bias, rows.unwrap_or_default().into()))
    }

    /// The difference between addresses in memory and in the file.
    fn bias<'f>(&self, file: &object::File<'f, impl ReadRef<'f>>) -> Option<usize> {
        let part = file.segments().find(|part| {
            let (offset, size) = part.file_range();
            // The first page of a part may begin before the part.
            let begin = offset - offset % PAGE;
            let is_code =
                matches!(part.flags(), SegmentFlags::Elf { p_flags } if p_flags & libc::PF_X != 0);
            is_code && (begin..offset.saturating_add(size)).contains(&self.offset)
        })?;
        let (offset, _) = part.file_range();
        let address = part.address().wrapping_sub(offset);
        let address = address.wrapping_add(self.offset);
        Some(self.begin.wrapping_sub(address as usize))
    }
}

/// The smallest page that any system has.
const PAGE: u64 = 4096;
/// The kernel's own library.
const VDSO: &str = "[vdso]";

/// Reads the rules of newly loaded libraries, and removes those of unloaded ones. Not for signal handlers.
pub(super) fn follow_libraries(memory: &Memory) {
    let mut known = KNOWN.lock();
    let Ok(maps) = fs::read_to_string(own_file("maps")) else {
        return;
    };
    let all: Vec<Mapped> = maps.lines().filter_map(Mapped::of).collect();
    let count = COUNT.load(Ordering::Relaxed);
    let is_of = |table: &Table, mapped: &Mapped| {
        table.begin.load(Ordering::Relaxed) == mapped.begin && table.path == mapped.path
    };
    // SAFETY: null, or a table that is never freed.
    let table = |index: usize| unsafe { TABLES[index].load(Ordering::Relaxed).as_ref() };
    let tables: Vec<&Table> = (0..count).filter_map(table).collect();
    for table in &tables {
        if !all.iter().any(|mapped| is_of(table, mapped)) {
            table.end.store(0, Ordering::Relaxed);
        }
    }
    for mapped in all {
        let is_known = |table: &&Table| {
            is_of(table, &mapped) && table.end.load(Ordering::Relaxed) == mapped.end
        };
        if !tables.iter().any(is_known) {
            add(&mut known, &mapped, memory);
        }
    }
}

/// Adds a library to the list, if there is memory for its rules.
fn add(known: &mut Known, mapped: &Mapped, memory: &Memory) {
    let index = COUNT.load(Ordering::Relaxed);
    if index == MOST {
        return;
    }
    let rows = known.files.get(&mapped.path).cloned();
    let Some((bias, read)) = mapped.read(rows.is_none()) else {
        return;
    };
    let rows = rows.unwrap_or_else(|| {
        let bytes = size_of_val(&*read) as u64;
        if known.bytes + bytes > memory.native.limit() / SHARE {
            return Arc::default();
        }
        known.bytes += bytes;
        memory.native.charge(bytes);
        known.files.insert(mapped.path.clone(), Arc::clone(&read));
        read
    });
    if rows.is_empty() {
        return;
    }
    let table = Box::leak(Box::new(Table {
        begin: AtomicUsize::new(mapped.begin),
        end: AtomicUsize::new(mapped.end),
        bias,
        path: mapped.path.clone(),
        rows,
    }));
    TABLES[index].store(table, Ordering::Release);
    COUNT.store(index + 1, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::unwind_rules::Base;

    #[test]
    fn the_code_of_loaded_libraries_has_rules() {
        let memory = Memory::default();
        follow_libraries(&memory);
        let functions = [
            follow_libraries as *const () as usize,
            libc::strtol as *const () as usize,
            libc::getenv as *const () as usize,
        ];
        for function in functions {
            let rule = rule_for(function).expect("it is in a library");
            assert_eq!((rule.base, rule.add), (Base::Stack, 8), "{function:x}");
        }
        let word = Box::new(0_usize);
        assert_eq!(rule_for(ptr::from_ref(&*word) as usize), None);
        let count = COUNT.load(Ordering::Relaxed);
        follow_libraries(&memory);
        assert_eq!(COUNT.load(Ordering::Relaxed), count, "nothing is new");
    }
}
