//! Thread-local variables: what the values of each `ThreadLocal` retain, over all threads.

use crate::objects::describe::{Address, ObjectRef, describe, thread_name};
use crate::objects::fields::{elements, field_ref};
use heap_graph::{Heap, ObjIdx};
use hprof::{BasicType, Bytes, ObjectId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::BTreeSet;

/// The fields of a thread that have thread-local values. A frame's local variables are something else.
pub(crate) const FIELDS: [&str; 2] = ["threadLocals", "inheritableThreadLocals"];

/// The class of an entry in such a field's table.
pub(crate) const ENTRY: &str = "java.lang.ThreadLocal$ThreadLocalMap$Entry";

/// A `ThreadLocal` and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadLocal {
    /// The static field that holds the `ThreadLocal`, `Class.field`; absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// Number of `ThreadLocal`s with this name. It is more than 1 if several loaders have defined the class, as after an
    /// application was loaded again, and for values whose `ThreadLocal` no longer exists it is 0: no code can read
    /// them, and a thread drops one only when it happens to use its slot again.
    pub variables: u64,
    /// The `ThreadLocal` of the largest value; 0 if it no longer exists.
    pub object: Address,
    /// Class of the `ThreadLocal`; empty if it no longer exists.
    pub class: String,
    /// Number of threads that have a value.
    pub threads: u64,
    /// Sum of the retained sizes of the values. A value that several threads share counts once.
    pub retained: Bytes,
    /// The value that retains most.
    pub largest: ObjectRef,
    /// Name of a thread that has this value.
    pub thread: String,
}

/// A value of a thread; without a variable if this no longer exists.
#[derive(Clone, Copy)]
struct Value {
    variable: Option<ObjIdx>,
    thread: ObjIdx,
    object: ObjIdx,
}

/// The thread-local variables of some threads, those that retain most first.
pub fn thread_locals(heap: &Heap, threads: impl Iterator<Item = ObjIdx>) -> Vec<ThreadLocal> {
    // A damaged dump may have a thread twice.
    let threads: BTreeSet<ObjIdx> = threads.collect();
    let (mut values, mut seen) = (Vec::new(), FxHashSet::default());
    for thread in threads {
        values_of(heap, thread, &mut seen, &mut values);
    }
    let names = static_fields(heap, values.iter().filter_map(|value| value.variable));
    let mut groups: FxHashMap<(Option<&str>, Option<ObjIdx>), Vec<Value>> = FxHashMap::default();
    for value in values {
        let id = value.variable.map(|variable| heap.id(variable));
        let name = id.and_then(|id| names.get(&id)).map(String::as_str);
        let without_name = value.variable.filter(|_| name.is_none());
        groups.entry((name, without_name)).or_default().push(value);
    }
    let mut rows: Vec<ThreadLocal> = groups
        .into_iter()
        .filter_map(|((name, _), values)| row(heap, name, &values))
        .collect();
    rows.sort_by(|a, b| {
        let order = |row: &ThreadLocal| std::cmp::Reverse((row.retained, row.threads));
        (order(a), a.object.0).cmp(&(order(b), b.object.0))
    });
    rows
}

fn row(heap: &Heap, name: Option<&str>, values: &[Value]) -> Option<ThreadLocal> {
    let distinct = |of: fn(&Value) -> Option<ObjIdx>| -> FxHashSet<ObjIdx> {
        values.iter().filter_map(of).collect()
    };
    let objects = distinct(|value| Some(value.object));
    let sizes = objects.iter().map(|value| heap.retained(*value).0);
    let size = |value: &&Value| (heap.retained(value.object), std::cmp::Reverse(value.thread));
    let largest = values.iter().max_by_key(size)?;
    let class = |object: ObjIdx| heap.class(heap.class_of(object)).name.clone();
    Some(ThreadLocal {
        variable: name.map(str::to_owned),
        variables: distinct(|value| value.variable).len() as u64,
        object: Address(largest.variable.map_or(ObjectId::NULL, |o| heap.id(o))),
        class: largest.variable.map(class).unwrap_or_default(),
        threads: distinct(|value| Some(value.thread)).len() as u64,
        retained: Bytes(sizes.fold(0, u64::saturating_add)),
        largest: describe(heap, largest.object),
        thread: thread_name(heap, largest.thread).unwrap_or_default(),
    })
}

/// Adds the thread-local values of a thread. Tables and entries that were `seen` are left out: each belongs to one thread,
/// but in a hostile dump all threads may have the same ones.
fn values_of(heap: &Heap, thread: ObjIdx, seen: &mut FxHashSet<ObjIdx>, values: &mut Vec<Value>) {
    for field in FIELDS {
        let map = field_ref(heap, thread, field);
        let table = map.and_then(|map| field_ref(heap, map, "table"));
        let Some(table) = table.filter(|table| seen.insert(*table)) else {
            continue;
        };
        for entry in elements(heap, table) {
            if seen.insert(entry)
                && let Some(object) = field_ref(heap, entry, "value")
            {
                values.push(Value {
                    variable: field_ref(heap, entry, "referent"),
                    thread,
                    object,
                });
            }
        }
    }
}

/// For each of these objects that a static field has, the first such field as `Class.field`.
pub(crate) fn static_fields(
    heap: &Heap,
    objects: impl Iterator<Item = ObjIdx>,
) -> FxHashMap<ObjectId, String> {
    let wanted: FxHashSet<ObjectId> = objects.map(|object| heap.id(object)).collect();
    let mut names = FxHashMap::default();
    if wanted.is_empty() {
        return names;
    }
    for class in heap.classes() {
        for field in &class.statics {
            let id = ObjectId(field.bits);
            if field.kind == BasicType::Object && wanted.contains(&id) {
                names
                    .entry(id)
                    .or_insert_with(|| format!("{}.{}", class.name, field.name));
            }
        }
    }
    names
}
