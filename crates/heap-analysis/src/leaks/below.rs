//! The objects directly below an object in the dominator tree, summed up in one pass, because the object may be an
//! array with many millions of elements.

use crate::objects::nodes::can_be_node;
use crate::tables::ranking::Largest;
use heap_graph::{ClassIdx, Heap, ObjIdx};
use hprof::Bytes;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The number and retained size of objects of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sum {
    /// Their retained size.
    pub retained: u64,
    /// Number of objects.
    pub objects: u64,
}

/// The objects below an object in the dominator tree.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    /// The largest objects, largest first.
    pub largest: Vec<ObjIdx>,
    /// The class that retains most.
    pub class: Option<(ClassIdx, Sum)>,
    /// Some of the nodes, if the object is the topmost node of a tree or list; its other nodes
    /// are then the class that retains most.
    pub nodes: Vec<ObjIdx>,
}

/// Sums up what an object dominates directly, with its `count` largest.
pub(crate) fn below(heap: &Heap, object: ObjIdx, count: usize) -> Below {
    let mut classes: FxHashMap<ClassIdx, Sum> = FxHashMap::default();
    let mut largest = Largest::new(count);
    // Neighbours are mostly of one class: look it up only when it changes.
    let (mut class, mut sum) = (ClassIdx(0), Sum::default());
    let columns = heap.columns();
    for (child, Bytes(retained)) in heap.dominated_retained(object) {
        let of = columns.class_of(child);
        if of != class {
            add(&mut classes, class, sum);
            (class, sum) = (of, Sum::default());
        }
        sum.retained += retained;
        sum.objects += 1;
        largest.offer(retained, child);
    }
    add(&mut classes, class, sum);
    Below {
        largest: largest.into_sorted(),
        class: classes
            .into_iter()
            .filter(|(_, sum)| sum.objects > 0)
            .max_by_key(|(class, sum)| (*sum, Reverse(*class))),
        nodes: Vec::new(),
    }
}

/// Sums up what all nodes of a tree or list dominate, given its topmost node: as [`below`] does, with the `count`
/// largest objects that are not nodes. `None` if there are at most `count` nodes; otherwise `sample` nodes are kept.
pub(crate) fn below_nodes(
    heap: &Heap,
    first: ObjIdx,
    count: usize,
    sample: usize,
) -> Option<Below> {
    if !can_be_node(heap, first) {
        return None;
    }
    let class = heap.class_of(first);
    let mut largest = Largest::new(count);
    let mut nodes = Vec::new();
    let mut objects = 0;
    let mut open = vec![first];
    let columns = heap.columns();
    while let Some(node) = open.pop() {
        objects += 1;
        if nodes.len() < sample {
            nodes.push(node);
        }
        for (child, retained) in heap.dominated_retained(node) {
            if columns.class_of(child) == class {
                open.push(child);
            } else {
                largest.offer(retained.0, child);
            }
        }
    }
    let retained = heap.retained(first).0;
    (objects > count as u64).then(|| Below {
        largest: largest.into_sorted(),
        class: Some((class, Sum { retained, objects })),
        nodes,
    })
}

fn add(classes: &mut FxHashMap<ClassIdx, Sum>, class: ClassIdx, sum: Sum) {
    let entry = classes.entry(class).or_default();
    entry.retained += sum.retained;
    entry.objects += sum.objects;
}
