//! The address ranges of a VM, as its diagnostic commands print them. `GC.heap_info` (JDK 8 and later) has the heap,
//! `VM.info` (JDK 9) the code cache, the class space and the collector's tables, `VM.metaspace vslist` (JDK 10) the
//! metaspace.

use std::ops::Range;

/// The address ranges that a VM has reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The Java heap.
    pub java: Vec<Range<u64>>,
    /// The code cache.
    pub code: Vec<Range<u64>>,
    /// Tables of the collector: the card table and the mark bits.
    pub gc: Vec<Range<u64>>,
    /// The class space, the metaspace, the archive of classes.
    pub class: Vec<Range<u64>>,
}

impl Ranges {
    /// Parses the three answers; an empty text has no ranges.
    pub fn parse(heap: &str, info: &str, metaspace: &str) -> Ranges {
        let mut ranges = Ranges::default();
        ranges.java.extend(hull(heap));
        for line in info.lines() {
            let line = line.trim_start();
            let into = if line.starts_with("bounds [") {
                &mut ranges.code
            } else if line.starts_with("Card table byte_map: [") || line.contains("Bits: ") {
                &mut ranges.gc
            } else if line.starts_with("Compressed class space mapped at:")
                || line.starts_with("CDS archive(s) mapped at: [")
            {
                &mut ranges.class
            } else {
                continue;
            };
            // Text after a closed bracket is another address.
            let list = line.split([']', ')']).find(|part| part.contains("0x"));
            into.extend(list.and_then(|list| span(&addresses(list))));
        }
        ranges.class.extend(metaspace.lines().filter_map(node));
        ranges
    }
}

/// The range from the first to the last address of all brackets: the generations of a heap are adjacent.
fn hull(heap: &str) -> Option<Range<u64>> {
    let brackets = heap.split('[').skip(1);
    let inside = brackets.filter_map(|rest| rest.split([')', ']']).next());
    span(&inside.flat_map(addresses).collect::<Vec<_>>())
}

/// `node #0: base 0x7f00: reserved=65536.00 KB` (JDK 16) or `[0x7f00, 0x7f10, 0x7f80, 0x8000)`.
fn node(line: &str) -> Option<Range<u64>> {
    let line = line.trim();
    if line.starts_with('[') {
        return span(&addresses(line));
    }
    let (_, rest) = line.strip_prefix("- node #")?.split_once("base ")?;
    let start = *addresses(rest).first()?;
    let (_, size) = rest.split_once("reserved=")?;
    let kilobytes = size.split(['.', ' ']).next()?.parse::<u64>().ok()?;
    let end = start.checked_add(kilobytes.checked_mul(1024)?)?;
    (start < end).then_some(start..end)
}

fn span(addresses: &[u64]) -> Option<Range<u64>> {
    let (from, to) = (*addresses.iter().min()?, *addresses.iter().max()?);
    (from < to).then_some(from..to)
}

/// The hexadecimal numbers of a text.
fn addresses(text: &str) -> Vec<u64> {
    let parts = text.split("0x").skip(1);
    let digits = parts.map(|part| {
        let end = part.find(|c: char| !c.is_ascii_hexdigit());
        &part[..end.unwrap_or(part.len())]
    });
    digits
        .filter_map(|digits| u64::from_str_radix(digits, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_vms_say_becomes_ranges() {
        let heap = " PSYoungGen total 59904K [0xfbd80000, 0x100000000, 0x100000000)\n\
            \x20 ParOldGen total 136704K [0x00f3800000, 0x00fbd80000, 0x00fbd80000)\n\
            \x20 object space 136704K, 0% used [0xf3800000,0xf3800000,0xfbd80000)\n\
            \x20 Metaspace used 3714K, committed 4864K\n";
        let info = "CDS archive(s) mapped at: [0x7000-0x8000-0x9000), size 12, Base: 0x1\n\
            Compressed class space mapped at: 0x20000-0x30000, reserved size: 65536\n\
            Card table byte_map: [0x4000,0x5000] _byte_map_base: 0x1\n\
            Marking Bits (Prev, Next): (CMBitMap*) 0x00007fa2e403d580, (CMBitMap*) 0x7fa2e403d5c0\n\
            \x20Prev Bits: [0x5000, 0x6000)\n bounds [0xa000, 0xb000, 0xc000]\n\
            | 199|0x00fff, 0x00ffff|  0%| F|  |TAMS 0x0, 0x1| Untracked\n";
        let metaspace = "- node #0: base 0x100000: reserved=64.00 KB, committed=8.00 KB\n\
            \x20 0:0x100000: CMN\n   [0x840000, 0x840100, 0x840200, 0x850000)\n";
        let ranges = Ranges::parse(heap, info, metaspace);
        assert_eq!(
            ranges.java,
            vec![Range {
                start: 0xf380_0000,
                end: 0x1_0000_0000
            }]
        );
        assert_eq!(ranges.gc, [0x4000..0x5000, 0x5000..0x6000]);
        assert_eq!(
            ranges.code,
            vec![Range {
                start: 0xa000,
                end: 0xc000
            }]
        );
        let class = [
            0x7000..0x9000,
            0x20000..0x30000,
            0x10_0000..0x11_0000,
            0x84_0000..0x85_0000,
        ];
        assert_eq!(ranges.class, class);
        assert_eq!(
            Ranges::parse("", "bounds [", "- node #0: base"),
            Ranges::default()
        );
    }
}
