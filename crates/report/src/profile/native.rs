//! Native memory blocks: by library, and blocks that were never freed, by stack.

use crate::doc::{Cell, Doc, Span, Table, number, words};
use ::profile::{Estimate, Profile, Site, Volume};
use serde::Serialize;
use std::collections::BTreeMap;

/// The blocks that native code allocated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NativeProfile {
    /// Mean bytes between two recorded blocks; 0 and 1: every block was recorded.
    pub interval: u64,
    /// By library, most bytes that are not freed first.
    pub libraries: Vec<LibraryRow>,
    /// Blocks that are not freed, by stack.
    pub leaks: Vec<LeakRow>,
    /// Stacks with blocks that are not freed, beyond those listed.
    pub omitted_leaks: u64,
}

/// A library whose code requested blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LibraryRow {
    /// File name.
    pub library: String,
    /// Blocks allocated.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Blocks freed.
    pub deallocations: u64,
    /// Blocks that are not freed.
    pub remaining: u64,
    /// Their bytes, with the 95 % interval where blocks are sampled.
    pub remaining_bytes: Estimate,
}

/// A stack whose blocks are not freed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeakRow {
    /// File name of the library.
    pub library: String,
    /// Blocks that are not freed.
    pub remaining: u64,
    /// Their bytes.
    pub remaining_bytes: Estimate,
    /// Blocks that were allocated here.
    pub allocations: u64,
    /// Functions and methods, innermost first.
    pub frames: Vec<String>,
}

/// Estimated bytes of the recorded blocks. For a block of `s` bytes that is recorded with probability `p`, the
/// variance is `s² (1 - p) / p²`, which is at most `interval × s / p`; summed up, this is `interval × bytes`.
fn estimate(bytes: u64, interval: u64) -> Estimate {
    if interval <= 1 {
        return Estimate::exact(bytes);
    }
    let bytes = bytes as f64;
    Estimate::of_sum(bytes, bytes * interval as f64)
}

/// Sums the blocks up; at most `top` stacks. `None` when no blocks were recorded.
pub fn native(profile: &Profile, top: Option<usize>) -> Option<NativeProfile> {
    let table = profile.native.as_ref()?;
    let interval = profile.native_interval;
    let mut sums: BTreeMap<&str, (Volume, Volume)> = BTreeMap::new();
    for site in table.sites() {
        let sum = sums.entry(profile.names.get(site.class)).or_default();
        sum.0.add(site.allocated);
        sum.1.add(site.live);
    }
    let mut libraries: Vec<LibraryRow> = sums
        .into_iter()
        .map(|(library, (allocated, live))| LibraryRow {
            library: library.to_owned(),
            allocations: allocated.objects,
            allocated_bytes: allocated.bytes,
            deallocations: allocated.objects.saturating_sub(live.objects),
            remaining: live.objects,
            remaining_bytes: estimate(live.bytes, interval),
        })
        .collect();
    let bytes = |estimate: Estimate| estimate.value as u64;
    libraries.sort_by_key(|row| std::cmp::Reverse(bytes(row.remaining_bytes)));
    let mut sites: Vec<&Site> = table.sites().iter().collect();
    sites.retain(|site| site.live.bytes > 0);
    sites.sort_by_key(|site| std::cmp::Reverse(site.live.bytes));
    let listed = sites.len().min(top.unwrap_or(usize::MAX));
    let leak = |site: &&Site| LeakRow {
        library: profile.names.get(site.class).to_owned(),
        remaining: site.live.objects,
        remaining_bytes: estimate(site.live.bytes, interval),
        allocations: site.allocated.objects,
        frames: profile.trace_names(site.trace),
    };
    Some(NativeProfile {
        interval,
        libraries,
        leaks: sites[..listed].iter().map(leak).collect(),
        omitted_leaks: (sites.len() - listed) as u64,
    })
}

/// Adds the tables to a page: all libraries, and the first stacks.
pub(super) fn say(doc: Doc, native: &NativeProfile) -> Doc {
    const STACKS: usize = 5;
    const FRAMES: usize = 12;
    let bytes = |value: f64| Cell::bytes(hprof::Bytes(value.round() as u64));
    let sampled = native.interval > 1;
    let between = |estimate: Estimate| {
        let [low, high] =
            [estimate.low, estimate.high].map(|end| crate::units::human_bytes(end.round() as u64));
        Cell::new([Span::Text(format!("{low} to {high}"))])
    };
    let mut columns = vec![number("not freed"), number("blocks")];
    if sampled {
        columns.insert(1, number("95 % interval"));
    }
    let mut by_stack = columns.clone();
    columns.extend([number("allocated"), number("blocks"), words("library")]);
    by_stack.extend([number("allocated"), words("stack")]);
    let mut libraries = Table::new(columns);
    for row in &native.libraries {
        let mut cells = vec![bytes(row.remaining_bytes.value), Cell::count(row.remaining)];
        if sampled {
            cells.insert(1, between(row.remaining_bytes));
        }
        cells.extend([
            bytes(row.allocated_bytes as f64),
            Cell::count(row.allocations),
            Cell::class(row.library.clone()),
        ]);
        libraries.row(cells);
    }
    let mut leaks = Table::new(by_stack);
    for row in native.leaks.iter().take(STACKS) {
        for (depth, frame) in row.frames.iter().take(FRAMES).enumerate() {
            let mut cells = match depth {
                0 => vec![
                    bytes(row.remaining_bytes.value),
                    Cell::count(row.remaining),
                    Cell::count(row.allocations),
                ],
                _ => vec![Cell::empty(), Cell::empty(), Cell::empty()],
            };
            if sampled {
                let range = match depth {
                    0 => between(row.remaining_bytes),
                    _ => Cell::empty(),
                };
                cells.insert(1, range);
            }
            cells.push(Cell::class(frame.clone()).at_depth(depth.min(1)));
            leaks.row(cells);
        }
    }
    let how = match native.interval {
        0 | 1 => "every block".to_owned(),
        interval => format!("one block per {interval} bytes, scaled"),
    };
    doc.text([Span::Text(format!("Native memory by library ({how}):"))])
        .table(libraries)
        .text([Span::from("Not freed, by stack:")])
        .table(leaks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Look, terminal};

    const TEXT: &str = "\
TRACE 300001:
\tlibz.so.1.deflateInit2_(<Unknown Source>:Unknown line)
\tjava.util.zip.Deflater.init(Deflater.java:Unknown line)
TRACE 300002:
\tliba.so.leak(<Unknown Source>:Unknown line)
NATIVE BEGIN (interval = 1024 bytes) Sat Nov 21 04:57:27 2026
    1 90.00% 90.00%   900000 1000    900000  1000 300002 liba.so
    2 10.00% 100.00%  100000   10    300000    30 300001 libz.so.1
NATIVE END
";

    #[test]
    fn blocks_are_summed_by_library_and_what_stays_has_its_stack() {
        let (profile, damage) = ::profile::read(TEXT.as_bytes()).expect("a profile");
        assert!(damage.is_empty());
        let answer = native(&profile, Some(1)).expect("native");
        let rows: Vec<_> = answer
            .libraries
            .iter()
            .map(|row| (&*row.library, row.remaining, row.deallocations))
            .collect();
        assert_eq!(rows, [("liba.so", 1000, 0), ("libz.so.1", 10, 20)]);
        assert_eq!(answer.leaks[0].frames, ["liba.so.leak"]);
        assert_eq!((answer.leaks.len(), answer.omitted_leaks), (1, 1));
        let bytes = answer.leaks[0].remaining_bytes;
        // Two standard errors of the square root of 900,000 times 1024 bytes.
        assert!(bytes.low > 830_000.0 && bytes.low < 850_000.0, "{bytes:?}");
        assert!(
            bytes.high > 950_000.0 && bytes.high < 970_000.0,
            "{bytes:?}"
        );
        let text = terminal::render(&say(Doc::new(), &answer), &Look::default());
        assert!(text.contains("liba.so.leak"), "{text}");
        assert!(text.contains("one block per 1024 bytes"), "{text}");
    }
}
