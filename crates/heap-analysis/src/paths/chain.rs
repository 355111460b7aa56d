//! The chain of dominators of an object, each step with the field that leads to the next one.
//! Needs neither the inbound references nor a pass over the dump: for every step only the object above it is read.

use crate::objects::describe::{ObjectRef, describe};
use heap_graph::{Dominator, Heap, HeapError, ObjIdx, ObjectKind, ObjectView};
use serde::Serialize;

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

/// The longest chain that is followed upwards. Linked lists of millions of nodes exist, but no user reads a chain that
/// long.
pub const MAX_CHAIN: usize = 4096;

/// The dominators of an object from the top of the tree down to and including the object. The flag is true if the
/// chain was longer than [`MAX_CHAIN`] and lacks its upper part.
pub fn dominators_of(heap: &Heap, object: ObjIdx) -> (Vec<ObjIdx>, bool) {
    let mut chain = vec![object];
    let mut at = object;
    while let Dominator::Object(above) = heap.dominator(at) {
        if chain.len() >= MAX_CHAIN {
            chain.reverse();
            return (chain, true);
        }
        chain.push(above);
        at = above;
    }
    chain.reverse();
    (chain, false)
}

/// Names the steps of a chain.
pub fn steps(heap: &Heap, chain: &[ObjIdx]) -> Result<Vec<Step>, HeapError> {
    let mut steps = Vec::with_capacity(chain.len());
    for (n, object) in chain.iter().enumerate() {
        let field = match chain.get(n + 1) {
            Some(next) => field_to(heap, *object, *next)?,
            None => None,
        };
        steps.push(Step {
            object: describe(heap, *object),
            direct: field.is_some() || n + 1 == chain.len(),
            field,
        });
    }
    Ok(steps)
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
