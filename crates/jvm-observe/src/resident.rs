//! The resident memory of a process by category: every mapping of `/proc/PID/smaps` is in one category, so the
//! categories sum to the resident memory.

use crate::ranges::Ranges;
use std::collections::HashSet;
use std::ops::Range;

/// Reserved address space of one `malloc` arena of glibc, whose address is a multiple of it.
const ARENA: u64 = 64 << 20;
/// The protected part below a thread's stack has at most this size, and the stack at least this size.
const MOST_GUARD: u64 = 512 << 10;
const LEAST_STACK: u64 = 64 << 10;
/// Mapped files that contain programs.
const CODE_FILES: [&str; 4] = [".so", ".jar", ".jmod", "/modules"];

/// Resident bytes by category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// The Java heap.
    pub java: u64,
    /// All other memory: `malloc`, direct buffers, data of libraries, the VM's own data.
    pub native: u64,
    /// The code cache, libraries, jars and the runtime image.
    pub code: u64,
    /// Stacks of threads.
    pub stack: u64,
    /// The collector's card table and mark bits; `None` if the VM does not report where they are.
    pub gc: Option<u64>,
    /// Metaspace, class space, the archive of classes.
    pub class: u64,
    /// Other mapped files, shared memory, pages of the kernel.
    pub other: u64,
}

impl Resident {
    /// The sum of all categories.
    pub fn sum(&self) -> u64 {
        let parts = [self.java, self.native, self.code, self.stack];
        parts.iter().sum::<u64>() + self.gc.unwrap_or(0) + self.class + self.other
    }
}

/// A mapping.
struct Mapping<'a> {
    at: Range<u64>,
    rights: &'a str,
    /// The file, `[heap]` or similar, or an empty text.
    name: &'a str,
    resident: u64,
}

/// Reads the text of `smaps`. `None` if the heap is not found, because categories could not be distinguished then.
pub fn parse(smaps: &str, ranges: &Ranges) -> Option<Resident> {
    let mappings = mappings(smaps);
    let executed: HashSet<&str> = mappings
        .iter()
        .filter(|one| one.rights.contains('x') && one.name.starts_with('/'))
        .map(|one| one.name)
        .collect();
    let (mut sum, mut gc) = (Resident::default(), 0);
    let mut has_heap = !ranges.java.is_empty();
    let mut before: Option<&Mapping<'_>> = None;
    for one in &mappings {
        let mut rest = one.resident;
        let known = [
            (&ranges.java, &mut sum.java),
            (&ranges.code, &mut sum.code),
            (&ranges.gc, &mut gc),
            (&ranges.class, &mut sum.class),
        ];
        for (ranges, into) in known {
            // A mapping may overlap two ranges: the kernel merges neighbours with the same permissions.
            let part = ranges.iter().map(|range| share(one, range)).sum::<u64>();
            *into += part.min(rest);
            rest -= part.min(rest);
        }
        let is_heap = one.name.contains("java_heap");
        has_heap |= is_heap;
        *match one.name {
            _ if is_heap => &mut sum.java,
            "[stack]" => &mut sum.stack,
            "[heap]" => &mut sum.native,
            name if name.ends_with(".jsa") => &mut sum.class,
            name if executed.contains(name) || is_code(name) => &mut sum.code,
            name if name.is_empty() || name.starts_with("[anon:") => {
                if one.rights.contains('x') {
                    &mut sum.code
                } else if is_stack(one, before) {
                    &mut sum.stack
                } else {
                    &mut sum.native
                }
            }
            _ => &mut sum.other,
        } += rest;
        before = Some(one);
    }
    sum.gc = (!ranges.gc.is_empty()).then_some(gc);
    has_heap.then_some(sum)
}

fn is_code(name: &str) -> bool {
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    name.contains(".so.") || CODE_FILES.iter().any(|end| name.ends_with(end))
}

/// The resident bytes of a mapping within a range, assuming that they are distributed evenly.
fn share(one: &Mapping<'_>, range: &Range<u64>) -> u64 {
    let common = one
        .at
        .end
        .min(range.end)
        .saturating_sub(one.at.start.max(range.start));
    let size = u128::from(one.at.end - one.at.start).max(1);
    u64::try_from(u128::from(one.resident) * u128::from(common) / size).unwrap_or(one.resident)
}

/// A thread's stack is directly above a small inaccessible part.
fn is_stack(one: &Mapping<'_>, before: Option<&Mapping<'_>>) -> bool {
    let guard = before.filter(|guard| {
        guard.at.end == one.at.start
            && guard.rights == "---p"
            && guard.name.is_empty()
            && guard.at.end - guard.at.start <= MOST_GUARD
    });
    guard.is_some()
        && one.rights == "rw-p"
        && one.at.end - one.at.start >= LEAST_STACK
        && !one.at.start.is_multiple_of(ARENA)
}

fn mappings(smaps: &str) -> Vec<Mapping<'_>> {
    let mut found: Vec<Mapping<'_>> = Vec::new();
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("Rss:") {
            let number = size.split_whitespace().next();
            let kilobytes = number.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            if let Some(last) = found.last_mut() {
                last.resident = kilobytes.saturating_mul(1024);
            }
        } else if let Some(mapping) = mapping(line) {
            found.push(mapping);
        }
    }
    found
}

/// `7fa2e9a51000-7fa2ea7a4000 r-xp 00251000 fe:00 1234    /usr/lib/libjvm.so`
fn mapping(line: &str) -> Option<Mapping<'_>> {
    let (from, rest) = line.split_once('-')?;
    let (to, rest) = rest.split_once(' ')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let at = number(from)?..number(to)?;
    let (rights, rest) = rest.split_once(' ')?;
    // Offset, device and inode come before the name, which may contain spaces.
    let name = rest.splitn(4, ' ').nth(3).unwrap_or("").trim();
    (at.start < at.end).then_some(Mapping {
        at,
        rights,
        name,
        resident: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
f3800000-100000000 rw-p 00000000 00:00 0 \n\
Size:             204800 kB\n\
Rss:               30000 kB\n\
Pss:               30000 kB\n\
100000000-100100000 rw-p 00000000 00:00 0 \n\
Rss:                 100 kB\n\
7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n\
Rss:                  40 kB\n\
7f0000021000-7f0004000000 ---p 00000000 00:00 0 \n\
Rss:                   0 kB\n\
7f0004000000-7f0008000000 rw-p 00000000 00:00 0 \n\
Rss:               65536 kB\n\
7f0010000000-7f0010004000 ---p 00000000 00:00 0 \n\
Rss:                   0 kB\n\
7f0010004000-7f0010100000 rw-p 00000000 00:00 0 \n\
Rss:                  88 kB\n\
7f0020000000-7f0020200000 rwxp 00000000 00:00 0 \n\
Rss:                 700 kB\n\
7f0030000000-7f0030100000 r--p 00000000 fe:00 77    /opt/a b/lib.so.1 (deleted)\n\
Rss:                  16 kB\n\
7f0030100000-7f0030200000 rw-s 00000000 fe:00 78    /data/table\n\
Rss:                   8 kB\n\
7f0030200000-7f0030300000 rw-p 00000000 fe:00 79    /jdk/classes.jsa\n\
Rss:                   4 kB\n\
7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0     [stack]\n\
Rss:                  24 kB\n";

    #[test]
    fn every_mapping_has_one_category_and_the_sum_is_what_is_resident() {
        let kb = |n: u64| n * 1024;
        let heap = "[0xf3800000, 0x100000000)";
        let resident = parse(SMAPS, &Ranges::parse(heap, "", "")).unwrap();
        let expected = Resident {
            java: kb(30_000),
            native: kb(100 + 40 + 65_536),
            code: kb(700 + 16),
            stack: kb(88 + 24),
            gc: None,
            class: kb(4),
            other: kb(8),
        };
        assert_eq!(resident, expected);
        let all: u64 = [30_000, 100, 40, 65_536, 88, 700, 16, 8, 4, 24]
            .iter()
            .sum();
        assert_eq!(resident.sum(), kb(all));
        // A mapping that overlaps two ranges is divided, and no byte is counted twice.
        let info = "Card table byte_map: [0xf3800000,0x100000000] _byte_map_base: 0x1\n\
            Compressed class space mapped at: 0x100000000-0x140000000, reserved size: 1";
        let ranges = Ranges::parse("[0xf3800000, 0xfa000000)", info, "");
        let resident = parse(SMAPS, &ranges).unwrap();
        assert_eq!(resident.sum(), kb(all));
        assert_eq!(resident.java, kb(15_600));
        assert_eq!((resident.gc, resident.class), (Some(kb(14_400)), kb(104)));
    }

    #[test]
    fn the_heap_may_be_known_by_its_name_and_without_one_nothing_is_reported() {
        assert_eq!(parse(SMAPS, &Ranges::default()), None);
        let zgc = "40000000000-4000c800000 rw-s 00000000 00:01 99925     /memfd:java_heap (deleted)\n\
            Rss:    4 kB\n";
        let resident = parse(zgc, &Ranges::default()).unwrap();
        assert_eq!((resident.java, resident.sum()), (4096, 4096));
        assert_eq!(parse("no such\n- - -\nRss: x\n", &Ranges::default()), None);
    }
}
