//! Objects with a `finalize` method. The VM has a Finalizer for each of them, also while the program uses the object, so
//! that a suspect that is the class of the Finalizers is explained only by the objects that wait.

use crate::objects::fields::{class_named, field_ref, static_ref};
use crate::pace::Pace;
use crate::sets::selection::Selection;
use heap_graph::{ClassIdx, Control, Dominator, Heap, HeapError, ObjIdx, Strength};
use hprof::Bytes;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;

/// The class whose static fields hold all Finalizers.
const FINALIZER: &str = "java.lang.ref.Finalizer";

/// The most classes that are listed.
const CLASSES: usize = 10;

/// The objects that have a `finalize` method which has not run yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Finalizable {
    /// Number of objects.
    pub objects: u64,
    /// Number of those that wait for their `finalize` method: their Finalizer is in its queue, or nothing else refers
    /// to them.
    pub waiting: u64,
    /// Their classes, at most 10, those whose waiting objects retain most first.
    pub classes: Vec<FinalizableClass>,
}

/// Objects of one class that have a `finalize` method which has not run yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FinalizableClass {
    /// Name of the class.
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// Number of those that wait for their `finalize` method.
    pub waiting: u64,
    /// Sum of the retained sizes of those that wait.
    pub waiting_retained: Bytes,
}

/// The objects with a `finalize` method, if the suspect is the class of their Finalizers and these keep objects.
pub(super) fn finalizable(
    heap: &Heap,
    suspect: ObjIdx,
    control: &Control<'_>,
) -> Result<Option<Finalizable>, HeapError> {
    let Some(class) = heap.class_by_object(suspect) else {
        return Ok(None);
    };
    // Finalizers keep no objects if final references do not count.
    let counts = heap.summary().strength == Strength::All;
    if !counts || heap.class(class).name != FINALIZER {
        return Ok(None);
    }
    let finalizers = Selection::by(heap, |columns, o| {
        columns.class_of(o) == class && columns.is_reachable(o)
    });
    // A Finalizer in the queue refers to the queue ENQUEUED instead of its own.
    let enqueued = class_named(heap, "java.lang.ref.ReferenceQueue")
        .and_then(|queues| static_ref(heap, queues, "ENQUEUED"));
    let mut rows: FxHashMap<ClassIdx, FinalizableClass> = FxHashMap::default();
    let mut pace = Pace::new(control, "Finalizers", finalizers.len());
    for finalizer in finalizers.iter() {
        pace.step()?;
        let Some(object) = field_ref(heap, finalizer, "referent") else {
            continue;
        };
        let row = rows.entry(heap.class_of(object)).or_default();
        row.objects += 1;
        let is_alone = heap.dominator(object) == Dominator::Object(finalizer);
        if is_alone || enqueued.is_some() && field_ref(heap, finalizer, "queue") == enqueued {
            row.waiting += 1;
            row.waiting_retained.0 += heap.retained(object).0;
        }
    }
    let mut classes: Vec<FinalizableClass> = rows
        .into_iter()
        .map(|(class, row)| FinalizableClass {
            class: heap.class(class).name.clone(),
            ..row
        })
        .collect();
    let mut found = Finalizable {
        objects: classes.iter().map(|row| row.objects).sum(),
        waiting: classes.iter().map(|row| row.waiting).sum(),
        classes: Vec::new(),
    };
    classes.sort_by(|a, b| {
        let rank = |row: &FinalizableClass| Reverse((row.waiting_retained, row.objects));
        (rank(a), &a.class).cmp(&(rank(b), &b.class))
    });
    classes.truncate(CLASSES);
    found.classes = classes;
    Ok((found.objects > 0).then_some(found))
}
