//! The biggest consumers: objects at the top of the dominator tree, and the same by class, loader
//! and package, each above a share of the heap.

use crate::objects::describe::{ObjectRef, describe};
use crate::tables::dominators::{DominatorGroup, by_group};
use crate::tables::group::GroupBy;
use crate::tables::loaders::loader_rows;
use crate::tables::ranking::share;
use heap_graph::{Heap, HeapError};
use hprof::Bytes;
use serde::Serialize;

/// What counts as large.
#[derive(Clone, Copy, Debug)]
pub struct TopOptions {
    /// The percentage of the reachable heap that a row must exceed.
    pub threshold: f64,
    /// The most rows per table; `None` for all.
    pub top: Option<usize>,
}

impl Default for TopOptions {
    fn default() -> Self {
        TopOptions {
            threshold: 1.0,
            top: Some(20),
        }
    }
}

/// An object at the top of the dominator tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BigObject {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Its retained size as a share of the reachable heap, 0 to 1.
    pub share: f64,
}

/// What retains more than a threshold of the heap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Consumers {
    /// Size of the reachable heap.
    pub total: Bytes,
    /// The threshold as a percentage of the reachable heap.
    pub threshold: f64,
    /// Single objects above the threshold.
    pub objects: Vec<BigObject>,
    /// Classes above the threshold.
    pub classes: Vec<DominatorGroup>,
    /// Class loaders above the threshold, with all reachable objects of their classes and the size that these retain
    /// together, as in `loaders` and the histogram. Classes and packages count only objects at the top of the dominator
    /// tree.
    pub loaders: Vec<DominatorGroup>,
    /// Packages above the threshold.
    pub packages: Vec<DominatorGroup>,
}

/// The largest objects at the top of the dominator tree, whatever their share.
pub fn largest_objects(heap: &Heap, count: usize) -> Vec<BigObject> {
    let total = heap.summary().reachable_shallow.0;
    heap.dominated(None)
        .take(count)
        .map(|object| BigObject {
            object: describe(heap, object),
            share: share(heap.retained(object).0, total),
        })
        .collect()
}

/// Everything above the threshold.
pub fn consumers(heap: &Heap, options: &TopOptions) -> Result<Consumers, HeapError> {
    let total = heap.summary().reachable_shallow;
    let limit = (total.0 as f64 * options.threshold / 100.0) as u64;
    let count = options.top.unwrap_or(usize::MAX);
    let objects = heap
        .dominated(None)
        .take(count)
        .take_while(|o| heap.retained(*o).0 > limit)
        .map(|object| BigObject {
            object: describe(heap, object),
            share: share(heap.retained(object).0, total.0),
        })
        .collect();
    let groups = |by| {
        let mut rows = by_group(heap, by, options.top).rows;
        rows.retain(|row| row.retained.0 > limit);
        rows
    };
    let loaders = loader_rows(heap)?.into_iter().map(|row| {
        let retained = row.retained.unwrap_or(row.shallow);
        DominatorGroup {
            key: row.key,
            objects: row.objects,
            shallow: row.shallow,
            retained,
            share: share(retained.0, total.0),
        }
    });
    Ok(Consumers {
        total,
        threshold: options.threshold,
        objects,
        classes: groups(GroupBy::Class),
        loaders: loaders
            .filter(|row| row.retained.0 > limit)
            .take(count)
            .collect(),
        packages: groups(GroupBy::Package),
    })
}
