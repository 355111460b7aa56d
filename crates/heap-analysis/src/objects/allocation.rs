//! The stacks that allocated a set of objects; only dumps of the agent have them.

use crate::tables::group::trace_frames;
use heap_graph::{ClassIdx, Heap, ObjIdx};
use hprof::{Bytes, Serial};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// The most stacks that are listed.
const SITES: usize = 3;

/// The stacks that allocated objects of a class, from a sample of the objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AllocatedBy {
    /// Class of the objects.
    pub class: String,
    /// Number of objects in the sample.
    pub objects: u64,
    /// Number of these objects whose allocation stack is known.
    pub with_stack: u64,
    /// The stacks that allocated the most bytes, at most three.
    pub sites: Vec<AllocationSite>,
}

/// One allocation stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AllocationSite {
    /// Trace serial in the dump.
    pub trace: u32,
    /// Number of sampled objects that it allocated.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
    /// Frames, innermost first.
    pub frames: Vec<String>,
}

/// The stacks that allocated `objects`, all of them of `class`; `None` if the dump has no stacks.
pub fn allocated_by(
    heap: &Heap,
    class: ClassIdx,
    objects: impl IntoIterator<Item = ObjIdx>,
) -> Option<AllocatedBy> {
    let mut sums: FxHashMap<Serial, (u64, u64)> = FxHashMap::default();
    let mut looked_at = 0;
    for object in objects {
        looked_at += 1;
        let sum = sums.entry(heap.allocation_trace(object)).or_default();
        sum.0 += 1;
        sum.1 += heap.shallow(object).0;
    }
    sums.retain(|trace, _| !heap.trace(*trace).is_empty());
    let with_stack = sums.values().map(|s| s.0).sum();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(trace, (_, bytes))| (std::cmp::Reverse(*bytes), trace.0));
    sums.truncate(SITES);
    (with_stack > 0).then(|| AllocatedBy {
        class: heap.class(class).name.clone(),
        objects: looked_at,
        with_stack,
        sites: sums
            .into_iter()
            .map(|(trace, (objects, shallow))| AllocationSite {
                trace: trace.0,
                objects,
                shallow: Bytes(shallow),
                frames: trace_frames(heap, trace),
            })
            .collect(),
    })
}
