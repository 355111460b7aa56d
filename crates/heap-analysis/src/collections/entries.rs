//! The entries of the maps of `java.util`, read through their fields.

use crate::objects::fields::{elements, field_ref};
use crate::pace::Pace;
use heap_graph::{Heap, HeapError, ObjIdx};
use rustc_hash::FxHashSet;

/// An entry of a map: key and value, if they are in the dump.
pub type Entry = (Option<ObjIdx>, Option<ObjIdx>);

/// The entries of a HashMap, LinkedHashMap, Hashtable, Properties (of any JDK), ConcurrentHashMap
/// or an unmodifiable wrapper of one, at most `limit`, in table order. Empty for anything else.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control of the pace cancels.
pub fn map_entries(
    heap: &Heap,
    map: ObjIdx,
    limit: usize,
    pace: &mut Pace<'_>,
) -> Result<Vec<Entry>, HeapError> {
    let mut map = map;
    // Wrappers: Properties.map since JDK 9, Collections$UnmodifiableMap.m, and so on.
    for _ in 0..8 {
        if let Some(table) = field_ref(heap, map, "table") {
            let found = table_entries(heap, table, limit, pace)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        match ["map", "m"].iter().find_map(|f| field_ref(heap, map, f)) {
            Some(inner) => map = inner,
            None => break,
        }
    }
    Ok(Vec::new())
}

fn table_entries(
    heap: &Heap,
    table: ObjIdx,
    limit: usize,
    pace: &mut Pace<'_>,
) -> Result<Vec<Entry>, HeapError> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    for bucket in elements(heap, table) {
        pace.step()?;
        if found.len() >= limit {
            break;
        }
        let mut next = Some(bucket);
        // ConcurrentHashMap puts long buckets into a TreeBin, whose nodes hang on `first`.
        if let Some(first) = field_ref(heap, bucket, "first") {
            next = Some(first);
        }
        while let Some(node) = next {
            pace.step()?;
            if found.len() >= limit || !seen.insert(node) {
                break;
            }
            let value = field_ref(heap, node, "val").or_else(|| field_ref(heap, node, "value"));
            found.push((field_ref(heap, node, "key"), value));
            next = field_ref(heap, node, "next");
        }
    }
    Ok(found)
}
