//! The chain of dominators of an object, each step with the field that leads to the next one.
//! Needs neither the inbound references nor a pass over the dump: for every step only the object above it is read.

use crate::objects::describe::{ObjectRef, describe};
use heap_graph::{Dominator, Heap, HeapError, ObjIdx, ObjectKind, ObjectView};
use serde::Serialize;
use std::collections::VecDeque;

/// A step of a path. The first step is nearest to the roots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// The field, static field or element of this object that holds the next one: `cache`, `[3]`, `<class>`. `null` at
    /// the end, and if no single reference leads to the next object (`direct` is false).
    pub field: Option<String>,
    /// False if this object does not refer to the next one itself: several objects below this one together keep the
    /// next one alive.
    pub direct: bool,
}

/// How many steps at each end of a chain are described. Linked lists of millions of nodes exist, but no user reads a
/// chain that long.
pub const CHAIN_END: usize = 2048;

/// An object and its dominators, upwards to the top of the tree.
pub fn dominators_above(heap: &Heap, object: ObjIdx) -> impl Iterator<Item = ObjIdx> + '_ {
    std::iter::successors(Some(object), |at| match heap.dominator(*at) {
        Dominator::Object(above) => Some(above),
        Dominator::Root | Dominator::Unreachable => None,
    })
}

/// The dominators of an object from the top of the tree down to and including the object. Of a longer chain, only
/// [`CHAIN_END`] objects at each end, and the number of those between them.
pub fn dominators_of(heap: &Heap, object: ObjIdx) -> (Vec<ObjIdx>, u64) {
    let mut upwards = dominators_above(heap, object);
    let mut chain: Vec<ObjIdx> = upwards.by_ref().take(CHAIN_END).collect();
    let (mut top, mut omitted) = (VecDeque::new(), 0);
    for above in upwards {
        if top.len() == CHAIN_END {
            top.pop_front();
            omitted += 1;
        }
        top.push_back(above);
    }
    chain.extend(top);
    chain.reverse();
    (chain, omitted)
}

/// Names the steps of a chain.
pub fn steps(heap: &Heap, chain: &[ObjIdx]) -> Result<Vec<Step>, HeapError> {
    (0..chain.len()).map(|n| step(heap, chain, n)).collect()
}

/// Names one step of a chain.
pub(super) fn step(heap: &Heap, chain: &[ObjIdx], n: usize) -> Result<Step, HeapError> {
    let object = chain[n];
    let field = match chain.get(n + 1) {
        Some(next) => field_to(heap, object, *next)?,
        None => None,
    };
    Ok(Step {
        object: describe(heap, object),
        direct: field.is_some() || n + 1 == chain.len(),
        field,
    })
}

/// The reference by which one object holds another: the most specific one if there are several (a field before the
/// class, the first element before later ones).
pub fn field_to(heap: &Heap, from: ObjIdx, to: ObjIdx) -> Result<Option<String>, HeapError> {
    if heap.kind(from) == ObjectKind::ObjectArray {
        // Arrays can have many millions of elements: look for the id instead of naming them all.
        let id = heap.id(to);
        if let ObjectView::ObjectArray { elements, .. } = heap.object(from)?
            && let Some(at) = elements.iter().position(|e| *e == id)
        {
            return Ok(Some(format!("[{at}]")));
        }
    }
    let references = heap.outbound(from)?;
    let mut found = references.iter().filter(|r| r.target == to);
    let first = found.next();
    let named = first
        .into_iter()
        .chain(found)
        .map(|r| r.via.to_string())
        .min_by_key(|name| name.starts_with('<'));
    Ok(named)
}
