//! What a collection of the JDK holds, read through its fields: elements, or keys with values.

use crate::collections::entries::map_entries;
use crate::objects::describe::{ObjectRef, describe};
use crate::objects::fields::{elements, field_int, field_ref};
use crate::pace::Pace;
use heap_graph::{Control, Heap, HeapError, ObjIdx};
use rustc_hash::FxHashSet;
use serde::Serialize;

/// An element, or a key with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Content {
    /// The key, in a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<ObjectRef>,
    /// The element, or the value in a map; `None` for null.
    pub value: Option<ObjectRef>,
}

/// What is in a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// The collection.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// `list`, `set`, `map`; `other` when it is no collection of a known kind.
    pub form: &'static str,
    /// Elements in the collection's own order, from the first.
    pub rows: Vec<Content>,
    /// True when there are more.
    pub more: bool,
}

/// The first `limit` things that a collection holds.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels.
pub fn contents(
    heap: &Heap,
    object: ObjIdx,
    limit: usize,
    control: &Control<'_>,
) -> Result<Contents, HeapError> {
    let most = (limit as u64).min(heap.len());
    let mut pace = Pace::new(control, "reading a collection", most);
    let (form, mut rows) = read(heap, object, limit.saturating_add(1), &mut pace)?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let name = |o: Option<ObjIdx>| o.map(|o| describe(heap, o));
    let mut pace = Pace::new(control, "naming what it holds", rows.len() as u64);
    let mut named = Vec::with_capacity(rows.len());
    for (key, value) in rows {
        pace.step()?;
        named.push(Content {
            key: name(key),
            value: name(value),
        });
    }
    Ok(Contents {
        object: describe(heap, object),
        form,
        rows: named,
        more,
    })
}

type Rows = Vec<(Option<ObjIdx>, Option<ObjIdx>)>;

fn read(
    heap: &Heap,
    object: ObjIdx,
    limit: usize,
    pace: &mut Pace<'_>,
) -> Result<(&'static str, Rows), HeapError> {
    let class = heap.class(heap.class_of(object)).name.as_str();
    let is_set = class.ends_with("Set") || class.ends_with("KeySetView");
    if let Some(array) = ["elementData", "elements", "array", "a", "queue", "es"]
        .iter()
        .find_map(|f| field_ref(heap, object, f))
        .filter(|a| heap.class(heap.class_of(*a)).name.ends_with("[]"))
        && class.starts_with("java.")
    {
        let used = ["size", "elementCount"]
            .iter()
            .find_map(|f| field_int(heap, object, f));
        let used = used.map_or(limit, |n| (n.max(0) as usize).min(limit));
        let mut all = elements(heap, array);
        // A ring: what is in front of the tail comes behind what follows the head.
        let place = |f| field_int(heap, object, f).and_then(|n| usize::try_from(n).ok());
        if let (Some(head), Some(tail)) = (place("head"), place("tail"))
            && tail < head
            && tail <= all.len()
        {
            all.rotate_left(tail);
        }
        let rows = all.into_iter().take(used);
        return Ok(("list", rows.map(|o| (None, Some(o))).collect()));
    }
    if class.starts_with("java.util.ImmutableCollections$") {
        return Ok(immutable(heap, object, class, limit));
    }
    let entries = tree_or_hash(heap, object, limit, pace)?;
    if !entries.is_empty() {
        return Ok(match is_set {
            true => ("set", entries.into_iter().map(|(k, _)| (None, k)).collect()),
            false => ("map", entries),
        });
    }
    let linked = linked(heap, object, limit, pace)?;
    if !linked.is_empty() {
        return Ok(("list", linked));
    }
    Ok(("other", Vec::new()))
}

/// `List.of`, `Map.of`: fields `e0`, `e1`, or one array (for maps keys and values in turn).
fn immutable(heap: &Heap, object: ObjIdx, class: &str, limit: usize) -> (&'static str, Rows) {
    let pair = ["k0", "v0"].map(|f| field_ref(heap, object, f));
    if pair[0].is_some() {
        return ("map", vec![(pair[0], pair[1])]);
    }
    let Some(array) = ["elements", "table"]
        .iter()
        .find_map(|f| field_ref(heap, object, f))
    else {
        let two = ["e0", "e1"]
            .iter()
            .filter_map(|f| field_ref(heap, object, f));
        let form = if class.contains("Set") { "set" } else { "list" };
        return (form, two.map(|o| (None, Some(o))).collect());
    };
    let all = elements(heap, array);
    if class.contains("Map") {
        let pairs = all.chunks_exact(2).take(limit);
        return ("map", pairs.map(|c| (Some(c[0]), Some(c[1]))).collect());
    }
    let form = if class.contains("Set") { "set" } else { "list" };
    (
        form,
        all.into_iter()
            .take(limit)
            .map(|o| (None, Some(o)))
            .collect(),
    )
}

fn tree_or_hash(
    heap: &Heap,
    object: ObjIdx,
    limit: usize,
    pace: &mut Pace<'_>,
) -> Result<Rows, HeapError> {
    let mut at = object;
    // TreeSet.m is a TreeMap, whose root is an Entry.
    for _ in 0..4 {
        if let Some(root) = field_ref(heap, at, "root") {
            return in_order(heap, root, limit, pace);
        }
        match ["m", "map"].iter().find_map(|f| field_ref(heap, at, f)) {
            Some(inner) => at = inner,
            None => break,
        }
    }
    map_entries(heap, object, limit, pace)
}

/// A binary tree from left to right, without recursion and without trust in its shape.
fn in_order(
    heap: &Heap,
    root: ObjIdx,
    limit: usize,
    pace: &mut Pace<'_>,
) -> Result<Rows, HeapError> {
    let mut rows = Vec::new();
    let mut seen = FxHashSet::default();
    let mut stack = Vec::new();
    let mut next = Some(root);
    while rows.len() < limit {
        pace.step()?;
        match next {
            Some(node) if seen.insert(node) => {
                stack.push(node);
                next = field_ref(heap, node, "left");
            }
            _ => {
                let Some(node) = stack.pop() else { break };
                rows.push((field_ref(heap, node, "key"), field_ref(heap, node, "value")));
                next = field_ref(heap, node, "right");
            }
        }
    }
    Ok(rows)
}

/// LinkedList and the linked queues: `first` or `head`, then `next`; elements in `item`.
fn linked(
    heap: &Heap,
    object: ObjIdx,
    limit: usize,
    pace: &mut Pace<'_>,
) -> Result<Rows, HeapError> {
    let mut rows = Vec::new();
    let mut seen = FxHashSet::default();
    let mut next = ["first", "head"]
        .iter()
        .find_map(|f| field_ref(heap, object, f));
    while let Some(node) = next {
        pace.step()?;
        if rows.len() >= limit || !seen.insert(node) {
            break;
        }
        if let Some(item) = field_ref(heap, node, "item") {
            rows.push((None, Some(item)));
        }
        next = field_ref(heap, node, "next");
    }
    Ok(rows)
}
