//! Free ranges between objects of an arena, if ids are addresses.

use serde::Serialize;

use crate::heap::LiveHeap;

/// How an arena's free bytes lie.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fragmentation {
    /// Free ranges.
    pub holes: u64,
    /// Bytes in them.
    pub free_bytes: u64,
    /// The largest of them.
    pub largest_hole: u64,
    /// Share of the free bytes that the largest hole does not have: 0 is one
    /// piece, near 1 is crumbs.
    pub fragmented: f64,
    /// Share in use of each of 64 equal parts of the range, first address first.
    pub map: Vec<f64>,
}

const PARTS: usize = 64;

/// Computes the free ranges of one arena. `None` if ids are tags, if only samples are reported, or if the arena is
/// empty and its range is unknown.
pub(crate) fn of(heap: &LiveHeap, number: u32) -> Option<Fragmentation> {
    if heap.hello.stable_ids || heap.hello.sample_interval != 0 {
        return None;
    }
    let arena = heap.arenas.get(number as usize)?;
    let mut spans: Vec<(u64, u64)> = heap
        .objects
        .of_arena(number)
        .map(|row| (row.id, row.id.saturating_add(row.size)))
        .collect();
    spans.sort_unstable();
    // If the arena's range is unknown, only the range from its first to its last object is examined.
    let (start, end) = if arena.capacity > 0 {
        (arena.start, arena.start.saturating_add(arena.capacity))
    } else {
        (spans.first()?.0, spans.last()?.1)
    };
    let width = end.saturating_sub(start).div_ceil(PARTS as u64).max(1);
    let mut used = [0u64; PARTS];
    let mut result = Fragmentation {
        holes: 0,
        free_bytes: 0,
        largest_hole: 0,
        fragmented: 0.0,
        map: Vec::new(),
    };
    let mut hole = |from: u64, to: u64| {
        if to > from {
            result.holes += 1;
            result.free_bytes += to - from;
            result.largest_hole = result.largest_hole.max(to - from);
        }
    };
    let mut at = start;
    for (from, to) in spans {
        hole(at, from.min(end));
        let (from, to) = (from.max(at), to.min(end));
        let mut mark = from;
        while mark < to {
            let part = ((mark - start) / width) as usize;
            let until = (start + (part as u64 + 1) * width).min(to);
            used[part.min(PARTS - 1)] += until - mark;
            mark = until;
        }
        at = at.max(to);
    }
    hole(at, end);
    if result.free_bytes > 0 {
        result.fragmented = 1.0 - result.largest_hole as f64 / result.free_bytes as f64;
    }
    result.map = used
        .iter()
        .map(|bytes| *bytes as f64 / width as f64)
        .collect();
    Some(result)
}
