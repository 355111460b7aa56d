//! How a thread holds the object that a path leads to: by a local variable of a frame, or by a thread-local variable.

use crate::objects::describe::thread_name;
use crate::objects::fields::field_ref;
use crate::paths::chain::Step;
use crate::tables::group::frame_text;
use crate::tables::thread_locals::{ENTRY, FIELDS, ThreadLocal, static_fields, thread_locals};
use heap_graph::{ClassIdx, Heap, ObjIdx, ThreadInfo};
use hprof::{Bytes, HeapTag};
use serde::Serialize;

/// The frame whose local variable holds an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocalOf {
    /// Name of the thread.
    pub thread: String,
    /// The frame as in a stack trace; empty if it is not in the dump.
    pub frame: String,
}

/// The `ThreadLocal` whose value is on a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadLocalOf {
    /// Name of the thread.
    pub thread: String,
    /// The static field that holds the `ThreadLocal`, `Class.field`; absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}

/// The frame that holds the second object of a path whose first one is a thread, or the first one of another path.
pub(super) fn local_of(heap: &Heap, path: &[Step]) -> Option<LocalOf> {
    let (first, thread) = start(heap, path)?;
    let (thread, frame) = match thread {
        Some(thread) => {
            let field = path[0].field.as_deref()?;
            let frame = field.strip_prefix("<local in frame ")?.strip_suffix('>')?;
            (thread, frame.parse().ok()?)
        }
        None => {
            let is_local = |kind| matches!(kind, HeapTag::RootJavaFrame | HeapTag::RootJniLocal);
            let root = heap.roots_of(first).find(|root| is_local(root.kind))?;
            let thread = heap.threads().iter().find(|t| t.serial == root.thread)?;
            (thread, root.frame as usize)
        }
    };
    Some(LocalOf {
        thread: name(heap, thread),
        frame: heap
            .trace(thread.trace)
            .get(frame)
            .map(|frame| frame_text(frame))
            .unwrap_or_default(),
    })
}

/// The static field that holds the first object of a path, `Class.field`, if this is no thread.
pub(super) fn static_field_of(heap: &Heap, path: &[Step]) -> Option<String> {
    let (first, thread) = start(heap, path)?;
    match thread {
        Some(_) => None,
        None => static_fields(heap, std::iter::once(first)).remove(&heap.id(first)),
    }
}

/// The thread-local variable of a thread that a path begins with.
pub(super) fn thread_local_of(heap: &Heap, path: &[Step]) -> Option<ThreadLocalOf> {
    let thread = start(heap, path)?.1?;
    let field = path[0].field.as_deref()?;
    if !FIELDS.contains(&field) {
        return None;
    }
    let is_entry = |step: &&Step| step.object.class == ENTRY;
    let entry = path.iter().find(is_entry);
    let entry = entry.and_then(|step| heap.find(step.object.object.0));
    let variable = entry.and_then(|entry| field_ref(heap, entry, "referent"));
    Some(ThreadLocalOf {
        thread: name(heap, thread),
        variable: variable.and_then(|variable| {
            static_fields(heap, std::iter::once(variable)).remove(&heap.id(variable))
        }),
    })
}

/// The thread-local variables that hold most of what the threads of a class retain; without the threads above the limit,
/// which are suspects themselves.
pub(super) fn variables_of(
    heap: &Heap,
    class: ClassIdx,
    limit: u64,
    retained: Bytes,
) -> Vec<ThreadLocal> {
    let threads = heap.threads().iter().filter_map(|thread| thread.object);
    let members = threads
        .filter(|thread| heap.class_of(*thread) == class && heap.retained(*thread).0 <= limit);
    large(thread_locals(heap, members), retained)
}

/// The thread-local variables that hold most of what a thread retains, if the path from the thread does not lead to one
/// named variable.
pub(super) fn variables_on(heap: &Heap, path: &[Step]) -> Vec<ThreadLocal> {
    let Some((thread, Some(_))) = start(heap, path) else {
        return Vec::new();
    };
    if thread_local_of(heap, path).is_none_or(|local| local.variable.is_some()) {
        return Vec::new();
    }
    large(
        thread_locals(heap, std::iter::once(thread)),
        heap.retained(thread),
    )
}

/// Variables with at least a tenth of a size.
fn large(mut variables: Vec<ThreadLocal>, of: Bytes) -> Vec<ThreadLocal> {
    variables.retain(|variable| variable.retained.0.saturating_mul(10) >= of.0);
    variables
}

/// The first object of a path, and the thread that it is.
fn start<'h>(heap: &'h Heap, path: &[Step]) -> Option<(ObjIdx, Option<&'h ThreadInfo>)> {
    let first = heap.find(path.first()?.object.object.0)?;
    let thread = heap.threads().iter().find(|t| t.object == Some(first));
    Some((first, thread))
}

fn name(heap: &Heap, thread: &ThreadInfo) -> String {
    let name = thread.object.and_then(|object| thread_name(heap, object));
    name.unwrap_or_default()
}
