//! Objects that are in the dump although no root reaches them: garbage that was not collected yet.

use crate::tables::group::class_key;
use crate::tables::histogram::{HistogramRow, Total};
use crate::tables::ranking::cut;
use heap_graph::{ClassIdx, Heap};
use hprof::Bytes;
use serde::Serialize;

/// The unreachable objects by class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unreachable {
    /// A row for each class, largest first.
    pub rows: Vec<HistogramRow>,
    /// Number of rows that were left out.
    pub omitted_rows: u64,
    /// Sums over all unreachable objects.
    pub total: Total,
    /// Their size as a share of all objects, 0 to 1.
    pub share: f64,
    /// True if the dump is damaged: objects can be unreachable only because records are missing.
    pub is_damaged: bool,
    /// Number of parked virtual threads whose stacks are not in the dump. Objects that only these stacks refer to are
    /// in the rows, although they may be live. 0 if the dump is read from memory, because it has these references.
    pub parked_virtual_threads: u64,
}

/// Counts the garbage.
pub fn unreachable(heap: &Heap, top: Option<usize>) -> Unreachable {
    let mut rows: Vec<HistogramRow> = heap
        .classes()
        .iter()
        .enumerate()
        .filter(|(_, c)| c.objects > c.reachable_objects)
        .map(|(n, c)| HistogramRow {
            key: class_key(heap, ClassIdx(n as u32)),
            objects: c.objects - c.reachable_objects,
            shallow: Bytes(c.shallow.0 - c.reachable_shallow.0),
            retained: None,
        })
        .collect();
    let key = |r: &HistogramRow| (r.shallow, r.objects);
    rows.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.key.cmp(&b.key)));
    let total = Total {
        objects: rows.iter().map(|r| r.objects).sum(),
        shallow: Bytes(rows.iter().map(|r| r.shallow.0).sum()),
    };
    let omitted_rows = cut(&mut rows, top);
    Unreachable {
        share: crate::tables::ranking::share(total.shallow.0, heap.summary().shallow.0),
        is_damaged: heap.summary().diagnostics.any_damage(),
        parked_virtual_threads: heap.summary().unknown_virtual_threads(),
        rows,
        omitted_rows,
        total,
    }
}
