//! The largest few of many, and sums by group, with ties always broken the same way.

use heap_graph::{Heap, ObjIdx};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The `count` objects with the largest retained size, largest first, ties by id. One pass, and
/// memory for `count` objects only: a star of ten million children must stay cheap.
pub(crate) fn largest(
    heap: &Heap,
    objects: impl Iterator<Item = ObjIdx>,
    count: usize,
) -> Vec<ObjIdx> {
    let mut kept: BinaryHeap<Reverse<(u64, Reverse<ObjIdx>)>> = BinaryHeap::new();
    for object in objects {
        let key = Reverse((heap.retained(object).0, Reverse(object)));
        if kept.len() < count {
            kept.push(key);
        } else if kept.peek().is_some_and(|least| key < *least) {
            kept.pop();
            kept.push(key);
        }
    }
    let mut found: Vec<_> = kept.into_iter().map(|Reverse(key)| key).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, Reverse(o))| o).collect()
}

/// `part` of `whole` as a share from 0 to 1.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
