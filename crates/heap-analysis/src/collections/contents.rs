//! The contents of a collection, with names: elements, or keys with values.

use crate::collections::held::{Form, held};
use crate::objects::describe::{ObjectRef, describe};
use crate::pace::Pace;
use heap_graph::{Control, Heap, HeapError, ObjIdx, ObjectKind};
use serde::Serialize;

/// An element, or a key with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Content {
    /// The key; only in a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<ObjectRef>,
    /// The element, or the value in a map; `null` for a null reference.
    pub value: Option<ObjectRef>,
}

/// The contents of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// The collection.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// `list`, `set` or `map`; `other` for an array, whose rows are the elements, and for an object that is not a known
    /// collection.
    pub form: &'static str,
    /// The first elements, in the order of the collection.
    pub rows: Vec<Content>,
    /// True if the collection has more elements.
    pub more: bool,
}

/// The first `limit` elements or entries of a collection.
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
    let is_array = heap.kind(object) == ObjectKind::ObjectArray;
    let (form, mut rows) = match is_array {
        true => (Form::Other, Vec::new()),
        false => {
            let held = held(heap, object, limit.saturating_add(1), &mut pace)?;
            (held.form, held.rows())
        }
    };
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
        form: form.name(),
        rows: named,
        more,
    })
}
