//! Nodes of recursive structures: objects that hold further objects of their own class, such as the entries of a tree
//! or of a list. Analyses treat all nodes of one structure as one thing.

use crate::objects::fields::is_subclass_of;
use heap_graph::{Heap, ObjIdx, ObjectKind};

/// Whether an object can be a node of a tree or list. Class objects, loaders and threads have an
/// identity of their own, and an array of arrays is no recursion.
pub(crate) fn can_be_node(heap: &Heap, object: ObjIdx) -> bool {
    let class = heap.class_of(object);
    let own = ["java.lang.Thread", "java.lang.ClassLoader"];
    heap.kind(object) == ObjectKind::Instance
        && heap.class_by_object(object).is_none()
        && !own.iter().any(|name| is_subclass_of(heap, class, name))
}

/// The objects of the same class directly below a node.
pub(crate) fn next_nodes(heap: &Heap, node: ObjIdx) -> impl Iterator<Item = ObjIdx> + '_ {
    let class = heap.class_of(node);
    heap.dominated(Some(node))
        .filter(move |child| heap.class_of(*child) == class)
}

/// What a node retains without the nodes below it.
pub(crate) fn own_size(heap: &Heap, node: ObjIdx) -> u64 {
    let next = next_nodes(heap, node).map(|next| heap.retained(next).0);
    heap.retained(node).0.saturating_sub(next.sum())
}
