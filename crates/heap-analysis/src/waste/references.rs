//! Soft, weak, phantom and final references: how many, the classes of their referents, and what only they keep alive;
//! and maps with weak keys whose values hold those keys, so that no entry is ever freed.

use crate::collections::table::WeakEntrySpec;
use crate::objects::describe::Address;
use crate::objects::fields::{class_named, static_ref};
use crate::pace::Pace;
use crate::paths::together::Above;
use crate::sets::object_set::Place;
use crate::tables::ranking::cut;
use heap_graph::{ClassIdx, Control, Dominator, Heap, HeapError, ObjIdx, RefStrength, Slot, Via};
use hprof::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;

/// `java.lang.ref` references of one strength whose referents are of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReferenceRow {
    /// Strength of the references: soft, weak, phantom or final.
    pub strength: RefStrength,
    /// Class of the referents.
    pub class: String,
    /// Number of references.
    pub references: u64,
    /// Number of references that alone keep their referent in memory: no other path from a root leads to it, not even
    /// through another field of the reference object.
    pub only: u64,
    /// What these referents retain together.
    pub only_retained: Bytes,
}

/// The `java.lang.ref` references of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct References {
    /// Number of references by strength: soft, weak, phantom, final.
    pub references: [u64; 4],
    /// Number of references whose referent was cleared.
    pub cleared: u64,
    /// Number of references in a queue from which the program has not removed them yet; for final references, objects
    /// whose `finalize` method has not run yet.
    pub enqueued: u64,
    /// The rows, those with the most references first.
    pub rows: Vec<ReferenceRow>,
    /// Number of rows that were left out.
    pub omitted_rows: u64,
}

/// The fields of a class of references.
#[derive(Clone, Debug)]
pub(super) struct ReferenceShape {
    strength: RefStrength,
    referent: Place,
    queue: Option<(Place, hprof::ObjectId)>,
}

impl ReferenceShape {
    pub(super) fn of(heap: &Heap, class: ClassIdx, slots: &[Slot]) -> Option<ReferenceShape> {
        let strength = heap.reference_strength(class)?;
        // A reference in a queue refers to the queue ENQUEUED instead of its own.
        let queue = class_named(heap, "java.lang.ref.ReferenceQueue")
            .and_then(|c| static_ref(heap, c, "ENQUEUED"))
            .map(|o| heap.id(o));
        Some(ReferenceShape {
            strength,
            referent: Place::of(heap, slots, "referent")?,
            queue: Place::of(heap, slots, "queue").zip(queue),
        })
    }

    pub(super) fn read(
        &self,
        heap: &Heap,
        object: ObjIdx,
        _: ClassIdx,
        fields: &[u8],
    ) -> RawReference {
        let ids = heap.id_size();
        RawReference {
            object,
            strength: self.strength,
            referent: heap.find(self.referent.id(fields, ids)),
            enqueued: self
                .queue
                .is_some_and(|(place, queue)| place.id(fields, ids) == queue),
        }
    }
}

/// A reference as the first walk finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawReference {
    pub(super) object: ObjIdx,
    strength: RefStrength,
    referent: Option<ObjIdx>,
    enqueued: bool,
}

fn number(strength: RefStrength) -> usize {
    match strength {
        RefStrength::Soft => 0,
        RefStrength::Weak => 1,
        RefStrength::Phantom => 2,
        RefStrength::Final | RefStrength::Strong => 3,
    }
}

/// References by strength and class of the referent.
pub(super) fn sum(
    heap: &Heap,
    list: &[RawReference],
    top: Option<usize>,
    control: &Control<'_>,
) -> Result<References, HeapError> {
    let mut budget = BUDGET;
    // The referents that a row counts as held by its references only.
    let mut only: FxHashMap<(usize, u32), Vec<ObjIdx>> = FxHashMap::default();
    let mut answer = References::default();
    let mut rows: FxHashMap<(usize, u32), ReferenceRow> = FxHashMap::default();
    for reference in list {
        answer.references[number(reference.strength)] += 1;
        answer.enqueued += u64::from(reference.enqueued);
        let Some(referent) = reference.referent else {
            answer.cleared += 1;
            continue;
        };
        let class = heap.class_of(referent);
        let key = (number(reference.strength), class.0);
        let row = rows.entry(key).or_insert_with(|| ReferenceRow {
            strength: reference.strength,
            class: heap.class(class).name.clone(),
            references: 0,
            only: 0,
            only_retained: Bytes(0),
        });
        row.references += 1;
        match heap.dominator(referent) {
            Dominator::Object(above)
                if above == reference.object
                    && is_alone(heap, reference.object, referent, &mut budget)? =>
            {
                row.only += 1;
                only.entry(key).or_default().push(referent);
            }
            // If referents do not count as references, no path leads to it.
            Dominator::Unreachable => row.only += 1,
            _ => {}
        }
    }
    let all: Vec<ObjIdx> = only.values().flatten().copied().collect();
    let above = Above::of(heap, &all, &mut pace(control, &all))?;
    for (key, row) in &mut rows {
        let referents = only.remove(key).unwrap_or_default();
        row.only_retained = above.retained(heap, referents.into_iter());
    }
    let mut rows: Vec<ReferenceRow> = rows.into_values().collect();
    rows.sort_by(|a, b| {
        let key = |r: &ReferenceRow| (Reverse(r.references), number(r.strength));
        (key(a), &a.class, a.only).cmp(&(key(b), &b.class, b.only))
    });
    answer.omitted_rows = cut(&mut rows, top);
    answer.rows = rows;
    Ok(answer)
}

fn pace<'c>(control: &'c Control<'c>, objects: &[ObjIdx]) -> Pace<'c> {
    Pace::new(control, "what references hold", objects.len() as u64)
}

/// Whether a reference that dominates its referent holds it only as the referent: in a map with weak keys, the value
/// of an entry may hold the key, too. False if the search would take too long.
fn is_alone(
    heap: &Heap,
    reference: ObjIdx,
    referent: ObjIdx,
    budget: &mut usize,
) -> Result<bool, HeapError> {
    let class = &heap.class(heap.class_of(reference)).name;
    // The platform's own classes add only links between references.
    if class.starts_with("java.lang.ref.") {
        return Ok(true);
    }
    // Any other path leads through objects that the reference dominates.
    let dominates_no_other = heap.dominated_count(Some(reference)) == 1;
    for other in heap.outbound(reference)? {
        let ordinary = other.strength == RefStrength::Strong && other.via != Via::Class;
        if ordinary
            && (other.target == referent
                || !dominates_no_other && reaches(heap, other.target, referent, budget)?)
        {
            return Ok(false);
        }
    }
    Ok(dominates_no_other || *budget > 0)
}

/// Entries of maps with weak keys that are never freed, because the value refers to the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WeakMapRow {
    /// Class of the entries.
    pub entry: String,
    /// Class of the values.
    pub value: String,
    /// Class of the keys.
    pub key: String,
    /// Number of entries.
    pub entries: u64,
    /// Sum of the retained sizes of the entries.
    pub retained: Bytes,
    /// Id of one of the entries.
    pub example: Address,
}

/// Maps with weak keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WeakMaps {
    /// Number of entries with key and value that were examined.
    pub examined: u64,
    /// Number of entries that were not examined, because the search ends after a million objects.
    pub skipped: u64,
    /// Number of entries whose value refers to the key, directly or through other objects; at most 1000 objects per
    /// entry are searched.
    pub entries: u64,
    /// Sum of the retained sizes of these entries.
    pub retained: Bytes,
    /// The rows, those with the most bytes first.
    pub rows: Vec<WeakMapRow>,
    /// Number of rows that were left out.
    pub omitted_rows: u64,
}

/// The fields of an entry for key and value.
#[derive(Clone, Debug)]
pub(super) struct WeakEntryShape {
    key: Place,
    value: Place,
}

impl WeakEntryShape {
    pub(super) fn of(heap: &Heap, spec: &WeakEntrySpec, slots: &[Slot]) -> Option<WeakEntryShape> {
        Some(WeakEntryShape {
            key: Place::of(heap, slots, "referent")?,
            value: Place::of(heap, slots, &spec.value)?,
        })
    }

    pub(super) fn read(&self, heap: &Heap, entry: ObjIdx, fields: &[u8]) -> Option<RawWeakEntry> {
        let ids = heap.id_size();
        Some(RawWeakEntry {
            entry,
            key: heap.find(self.key.id(fields, ids))?,
            value: heap.find(self.value.id(fields, ids))?,
        })
    }
}

/// An entry with both its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawWeakEntry {
    pub(super) entry: ObjIdx,
    key: ObjIdx,
    value: ObjIdx,
}

/// Objects examined per entry, and in all.
const NEAR: usize = 1000;
const BUDGET: usize = 1_000_000;

/// Whether an object reaches another one by strong references that do not lead through a class.
fn reaches(heap: &Heap, from: ObjIdx, to: ObjIdx, budget: &mut usize) -> Result<bool, HeapError> {
    let mut seen = FxHashSet::default();
    let mut queue = std::collections::VecDeque::from([from]);
    seen.insert(from);
    while let Some(object) = queue.pop_front() {
        if object == to {
            return Ok(true);
        }
        *budget = budget.saturating_sub(1);
        if *budget == 0 || heap.class_by_object(object).is_some() {
            continue;
        }
        for reference in heap.outbound(object)? {
            let ordinary = reference.strength == RefStrength::Strong && reference.via != Via::Class;
            if ordinary && seen.len() < NEAR && seen.insert(reference.target) {
                queue.push_back(reference.target);
            }
        }
    }
    Ok(false)
}

/// Finds weak entries whose value holds the key.
pub(super) fn weak_maps(
    heap: &Heap,
    list: &[RawWeakEntry],
    top: Option<usize>,
    control: &Control<'_>,
) -> Result<WeakMaps, HeapError> {
    let mut answer = WeakMaps::default();
    let mut rows: FxHashMap<[u32; 3], (WeakMapRow, Vec<ObjIdx>)> = FxHashMap::default();
    let mut budget = BUDGET;
    for entry in list {
        if budget == 0 {
            answer.skipped += 1;
            continue;
        }
        answer.examined += 1;
        if !reaches(heap, entry.value, entry.key, &mut budget)? {
            continue;
        }
        let classes = [entry.entry, entry.value, entry.key].map(|o| heap.class_of(o));
        let [of_entry, value, key] = classes.map(|c| heap.class(c).name.clone());
        let empty = || WeakMapRow {
            entry: of_entry,
            value,
            key,
            entries: 0,
            retained: Bytes(0),
            example: Address(heap.id(entry.entry)),
        };
        let (row, entries) = rows
            .entry(classes.map(|c| c.0))
            .or_insert_with(|| (empty(), Vec::new()));
        row.entries += 1;
        entries.push(entry.entry);
        answer.entries += 1;
    }
    // An entry of a bucket holds the next one.
    let all: Vec<ObjIdx> = rows.values().flat_map(|row| &row.1).copied().collect();
    let above = Above::of(heap, &all, &mut pace(control, &all))?;
    answer.retained = above.retained_by_all(heap, &all);
    let summed = rows.into_values().map(|(mut row, entries)| {
        row.retained = above.retained(heap, entries.into_iter());
        row
    });
    let mut rows: Vec<WeakMapRow> = summed.collect();
    rows.sort_by_key(|r| (Reverse(r.retained), r.example));
    answer.omitted_rows = cut(&mut rows, top);
    answer.rows = rows;
    Ok(answer)
}
