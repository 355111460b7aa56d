//! Android objects that are destroyed and still held: activities, fragments, services and others, and objects that
//! LeakCanary watched and found retained.
//!
//! Definitions follow the platform's own fields: an Activity is destroyed when `mDestroyed` is true,
//! a Fragment when `mFragmentManager` is null after `onCreate`, a ViewModel when `mCleared` is
//! true, a Dialog when `mDecor` is null after it was created, a Service when the
//! `ActivityThread` does not have it in `mServices`. LeakCanary's `KeyedWeakReference` refers to an object that should
//! be collected, and sets `retainedUptimeMillis` if that did not happen in time. Only objects that strong references
//! hold are listed; the path ignores weak, soft, phantom and final ones. Each object of these classes is read once; a
//! dump without such classes costs nothing.

use crate::objects::describe::{ObjectRef, describe};
use crate::objects::fields::{
    class_named, elements, field, field_int, field_ref, instances, static_ref,
};
use crate::paths::{Exclusions, Path, best_path};
use heap_graph::{Control, Heap, HeapError, ObjIdx, Value};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::cmp::Reverse;

/// A destroyed object that is still strongly reachable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Destroyed {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// `activity`, `fragment`, `view_model`, `dialog`, `service`, or `watched` by LeakCanary.
    pub kind: &'static str,
    /// Why it counts as destroyed.
    pub reason: &'static str,
    /// For `watched`: LeakCanary's key of the reference that watches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The shortest path from a root by strong references; from a JNI global only if there is no other.
    pub path: Path,
}

/// A class whose fields show whether an object is destroyed.
struct Rule {
    class: &'static str,
    kind: &'static str,
    reason: &'static str,
    is_finished: fn(&Heap, ObjIdx) -> bool,
}

const RULES: [Rule; 6] = [
    Rule {
        class: "android.app.Activity",
        kind: "activity",
        reason: "Activity.mDestroyed is true",
        is_finished: |h, o| is_true(h, o, "mDestroyed"),
    },
    fragment("androidx.fragment.app.Fragment"),
    fragment("android.support.v4.app.Fragment"),
    fragment("android.app.Fragment"),
    Rule {
        class: "androidx.lifecycle.ViewModel",
        kind: "view_model",
        reason: "ViewModel.mCleared is true",
        is_finished: |h, o| is_true(h, o, "mCleared"),
    },
    Rule {
        class: "android.app.Dialog",
        kind: "dialog",
        reason: "Dialog.mDecor is null",
        is_finished: |h, o| is_null(h, o, "mDecor") && is_true(h, o, "mCreated"),
    },
];

const fn fragment(class: &'static str) -> Rule {
    Rule {
        class,
        kind: "fragment",
        reason: "Fragment.mFragmentManager is null",
        is_finished: |h, o| is_null(h, o, "mFragmentManager") && is_true(h, o, "mCalled"),
    }
}

/// LeakCanary's reference, in its first and its second generation.
const WATCHING: [&str; 2] = [
    "leakcanary.KeyedWeakReference",
    "com.squareup.leakcanary.KeyedWeakReference",
];

fn is_true(heap: &Heap, object: ObjIdx, name: &str) -> bool {
    field(heap, object, name) == Some(Value::Boolean(true))
}

/// A reference field that exists and is null.
fn is_null(heap: &Heap, object: ObjIdx, name: &str) -> bool {
    matches!(field(heap, object, name), Some(Value::Reference(id)) if id.is_null())
}

/// A destroyed object, before the search for a path to it.
struct Finished {
    object: ObjIdx,
    kind: &'static str,
    reason: &'static str,
    key: Option<String>,
}

/// All objects that are destroyed and still held, the largest retained size first.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels.
pub fn destroyed(heap: &Heap, control: &Control<'_>) -> Result<Vec<Destroyed>, HeapError> {
    let mut finished = watched(heap);
    for rule in &RULES {
        let objects = instances(heap, rule.class).filter(|o| (rule.is_finished)(heap, *o));
        finished.extend(objects.map(|object| Finished {
            object,
            kind: rule.kind,
            reason: rule.reason,
            key: None,
        }));
    }
    finished.extend(services(heap));
    let mut seen = FxHashSet::default();
    let mut found = Vec::new();
    for one in finished {
        if !seen.insert(one.object) {
            continue;
        }
        // Held by weak references only: it can be collected at any time.
        if let Some(path) = best_path(heap, one.object, Exclusions::ALL, control)? {
            found.push(Destroyed {
                object: describe(heap, one.object),
                kind: one.kind,
                reason: one.reason,
                key: one.key,
                path,
            });
        }
    }
    found.sort_by_key(|d| (Reverse(d.object.retained), d.object.object));
    Ok(found)
}

/// The objects that LeakCanary found retained. Its first generation had no field for this: there, all objects that it
/// still watched when it wrote a dump were retained.
fn watched(heap: &Heap) -> Vec<Finished> {
    let references = WATCHING.iter().flat_map(|class| instances(heap, class));
    references
        .filter(|r| field_int(heap, *r, "retainedUptimeMillis") != Some(-1))
        .filter_map(|reference| {
            Some(Finished {
                object: field_ref(heap, reference, "referent")?,
                kind: "watched",
                reason: "LeakCanary watched it and it was not collected in time",
                key: field_ref(heap, reference, "key").and_then(|key| heap.string(key)),
            })
        })
        .collect()
}

/// Services that the process no longer runs; empty if the dump does not show which services it runs.
fn services(heap: &Heap) -> Vec<Finished> {
    let running = class_named(heap, "android.app.ActivityThread")
        .and_then(|class| static_ref(heap, class, "sCurrentActivityThread"))
        .and_then(|thread| field_ref(heap, thread, "mServices"))
        .and_then(|map| field_ref(heap, map, "mArray"));
    let Some(running) = running else {
        return Vec::new();
    };
    let running: FxHashSet<ObjIdx> = elements(heap, running).into_iter().collect();
    let stopped = instances(heap, "android.app.Service").filter(|o| !running.contains(o));
    stopped
        .map(|object| Finished {
            object,
            kind: "service",
            reason: "ActivityThread.mServices does not have it",
            key: None,
        })
        .collect()
}
