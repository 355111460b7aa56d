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
            let until = (part as u64 + 1).saturating_mul(width);
            let until = start.saturating_add(until).min(to);
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

#[cfg(test)]
mod tests {
    use super::of;
    use crate::heap::LiveHeap;
    use vmpi::wire::{ArenaState, Hello, Item};
    use vmpi::{ArenaId, BasicType, Body, ObjectAlloc, ObjectHandle, TraceId};

    #[test]
    fn an_arena_at_the_end_of_all_addresses_is_divided() {
        let mut heap = LiveHeap::new(&Hello {
            stable_ids: false,
            ..Hello::default()
        });
        let arena = ArenaId(1);
        heap.apply(&Item::ArenaState(ArenaState {
            arena,
            start: u64::MAX - 101,
            used: 0,
            capacity: 200,
        }));
        heap.apply(&Item::event(Body::ObjectAlloc(ObjectAlloc {
            object: ObjectHandle(u64::MAX - 63),
            class: ObjectHandle::NULL,
            size: 64,
            arena,
            trace: TraceId::EMPTY,
            array: Some(BasicType::Byte),
        })));
        let answer = of(&heap, 1).expect("an arena with an object");
        assert_eq!((answer.holes, answer.free_bytes), (1, 38));
    }
}
