//! The largest of many objects, and sums by group; ties are always broken the same way.

use heap_graph::{Heap, ObjIdx};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Keeps the largest of the objects offered to it. Takes memory for those only, because an object may have ten million
/// children.
pub(crate) struct Largest {
    count: usize,
    kept: BinaryHeap<Reverse<(u64, Reverse<ObjIdx>)>>,
}

impl Largest {
    pub(crate) fn new(count: usize) -> Largest {
        Largest {
            count,
            kept: BinaryHeap::new(),
        }
    }

    pub(crate) fn offer(&mut self, bytes: u64, object: ObjIdx) {
        let key = Reverse((bytes, Reverse(object)));
        if self.kept.len() < self.count {
            self.kept.push(key);
        } else if self.kept.peek().is_some_and(|least| key < *least) {
            self.kept.pop();
            self.kept.push(key);
        }
    }

    /// Adds the objects of another one.
    pub(crate) fn join(&mut self, other: Largest) {
        for Reverse((bytes, Reverse(object))) in other.kept {
            self.offer(bytes, object);
        }
    }

    /// The objects, largest first, ties by id.
    pub(crate) fn into_sorted(self) -> Vec<ObjIdx> {
        let mut found: Vec<_> = self.kept.into_iter().map(|Reverse(key)| key).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, Reverse(o))| o).collect()
    }
}

/// The `count` objects with the largest retained size, largest first, ties by id, in one pass.
pub(crate) fn largest(
    heap: &Heap,
    objects: impl Iterator<Item = ObjIdx>,
    count: usize,
) -> Vec<ObjIdx> {
    let mut largest = Largest::new(count);
    let columns = heap.columns();
    for object in objects {
        largest.offer(columns.retained(object).0, object);
    }
    largest.into_sorted()
}

/// `part` of `whole` as a share from 0 to 1.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Cuts a sorted table to its first `top` rows, or keeps all without a number; returns how many are left out.
pub(crate) fn cut<T>(rows: &mut Vec<T>, top: Option<usize>) -> u64 {
    let omitted = rows.len().saturating_sub(top.unwrap_or(usize::MAX));
    rows.truncate(rows.len() - omitted);
    omitted as u64
}

/// Whether a count is 0, and so absent from an answer.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}
