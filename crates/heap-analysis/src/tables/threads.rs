//! The threads: what each retains, its stack, and the local variables of each frame; and the thread-local variables. There
//! may be thousands of virtual threads, so those with the same stack are one group.

use crate::objects::describe::{Address, ObjectRef, describe, thread_name};
use crate::objects::fields::{field_int, field_ref, is_subclass_of};
use crate::tables::group::frame_text;
use crate::tables::ranking::{cut, largest};
use crate::tables::thread_locals::{ThreadLocal, thread_locals};
use heap_graph::{Dominator, Heap, ObjIdx, RootInfo, ThreadInfo};
use hprof::{Bytes, Serial};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// What to include.
#[derive(Clone, Copy, Debug)]
pub struct ThreadOptions {
    /// The most local variables per frame, and the most objects in no known frame.
    pub locals: usize,
    /// The most threads, and the most groups of virtual threads, largest first; `None` for all.
    pub top: Option<usize>,
    /// The most thread-local variables, largest first. With `None` none is read, nor counted as omitted.
    pub thread_locals: Option<usize>,
}

impl Default for ThreadOptions {
    fn default() -> Self {
        ThreadOptions {
            locals: 8,
            top: None,
            thread_locals: Some(20),
        }
    }
}

/// A frame of a stack with the objects in its local variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StackFrame {
    /// The frame as in a stack trace: `a.B.run(B.java:12)`.
    pub frame: String,
    /// Objects that local variables of this frame refer to, largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locals: Vec<ObjectRef>,
    /// Number of such objects that were left out.
    pub omitted: u64,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its name; empty when the dump does not contain it.
    pub name: String,
    /// Id of the thread object; 0 if it is not in the dump.
    pub object: Address,
    /// Class of the thread object; empty if it is not in the dump.
    pub class: String,
    /// Thread serial in the dump; 0 for virtual threads to which no root refers.
    pub serial: u32,
    /// True for a daemon thread.
    pub daemon: bool,
    /// True for a virtual thread.
    pub is_virtual: bool,
    /// Shallow size of the thread object.
    pub shallow: Bytes,
    /// Bytes that only this thread keeps alive, including those that its local variables keep alive (without these
    /// under `--layout plain`).
    pub retained: Bytes,
    /// The part of `retained` that only its local variables keep alive.
    pub locals_retained: Bytes,
    /// Bytes that its local variables keep alive together with other threads or roots. They are in no thread's
    /// `retained`, and count here for each of these threads. Under `--layout plain`: all bytes that its local variables
    /// keep alive.
    pub shared_retained: Bytes,
    /// Its stack, innermost frame first.
    pub stack: Vec<StackFrame>,
    /// Objects that the thread refers to from its stack, but from no known frame, such as JNI local references of
    /// native code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_locals: Vec<ObjectRef>,
    /// Number of such objects that were left out.
    pub other_locals_omitted: u64,
}

/// Virtual threads that have the same stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VirtualGroup {
    /// Number of these threads.
    pub threads: u64,
    /// The size that they retain together.
    pub retained: Bytes,
    /// The stack, innermost frame first; empty if it is not in the dump.
    pub stack: Vec<String>,
    /// The threads with the largest retained sizes.
    pub largest: Vec<ObjectRef>,
}

/// The threads of a heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Threads {
    /// Platform threads, the largest retained size first.
    pub threads: Vec<Thread>,
    /// Number of platform threads that were left out.
    pub omitted: u64,
    /// Virtual threads grouped by stack, the largest group first.
    pub virtual_groups: Vec<VirtualGroup>,
    /// Number of groups of virtual threads that were left out.
    pub virtual_groups_omitted: u64,
    /// Number of virtual threads.
    pub virtual_threads: u64,
    /// Number of parked virtual threads whose stacks are not in the dump.
    pub virtual_without_stack: u64,
    /// Thread-local variables of all threads, those whose values retain most first.
    pub thread_locals: Vec<ThreadLocal>,
    /// Number of thread-local variables that were left out.
    pub thread_locals_omitted: u64,
}

/// Describes the threads.
pub fn threads(heap: &Heap, options: &ThreadOptions) -> Threads {
    let mut locals: FxHashMap<Serial, Vec<&RootInfo>> = FxHashMap::default();
    for root in heap.roots() {
        if root.thread != Serial(0) && root.kind != hprof::HeapTag::RootThreadObject {
            locals.entry(root.thread).or_default().push(root);
        }
    }
    let mut platform = Vec::new();
    let mut groups: FxHashMap<Vec<String>, Vec<ObjIdx>> = FxHashMap::default();
    let mut virtual_threads = 0;
    for info in heap.threads() {
        match info.object {
            Some(object) if is_virtual(heap, object) => {
                virtual_threads += 1;
                let stack = heap.trace(info.trace).into_iter().map(frame_text).collect();
                groups.entry(stack).or_default().push(object);
            }
            _ => platform.push(info),
        }
    }
    let retained = |info: &ThreadInfo| info.object.map_or(Bytes(0), |o| heap.retained(o));
    platform.sort_by_key(|info| (std::cmp::Reverse(retained(info)), info.object, info.serial));
    let omitted = cut(&mut platform, options.top);
    let none = Vec::new();
    let objects = heap.threads().iter().filter_map(|t| t.object);
    let objects = objects.filter(|_| options.thread_locals.is_some());
    let mut variables = thread_locals(heap, objects);
    let thread_locals_omitted = cut(&mut variables, options.thread_locals.or(Some(0)));
    let (virtual_groups, virtual_groups_omitted) = virtual_groups(heap, groups, options.top);
    Threads {
        threads: platform
            .into_iter()
            .map(|info| {
                let mine = locals.get(&info.serial).unwrap_or(&none);
                thread(heap, info, mine, options.locals)
            })
            .collect(),
        omitted,
        virtual_groups,
        virtual_groups_omitted,
        virtual_threads,
        virtual_without_stack: heap.summary().parked_virtual_threads,
        thread_locals: variables,
        thread_locals_omitted,
    }
}

/// The virtual threads with the same stack as this one: its group in [`threads`]. `None` when it is not a virtual
/// thread.
pub fn with_stack_of(heap: &Heap, thread: ObjIdx) -> Option<Vec<ObjIdx>> {
    let list = || {
        let threads = heap.threads().iter().filter_map(|t| Some((t.object?, t)));
        threads.filter(|(object, _)| is_virtual(heap, *object))
    };
    let stack = |info: &ThreadInfo| -> Vec<String> {
        heap.trace(info.trace).into_iter().map(frame_text).collect()
    };
    let wanted = list()
        .find(|(object, _)| *object == thread)
        .map(|(_, info)| stack(info))?;
    let same = list().filter(|(_, info)| stack(info) == wanted);
    Some(same.map(|(object, _)| object).collect())
}

/// True for a virtual thread.
pub fn is_virtual(heap: &Heap, thread: ObjIdx) -> bool {
    is_subclass_of(heap, heap.class_of(thread), "java.lang.BaseVirtualThread")
        || heap.class(heap.class_of(thread)).name == "java.lang.VirtualThread"
}

fn thread(heap: &Heap, info: &ThreadInfo, locals: &[&RootInfo], limit: usize) -> Thread {
    let frames = heap.trace(info.trace);
    let mut by_frame: Vec<Vec<ObjIdx>> = vec![Vec::new(); frames.len()];
    let mut others = Vec::new();
    for root in locals {
        match by_frame.get_mut(root.frame as usize) {
            Some(list) => list.push(root.object),
            None => others.push(root.object),
        }
    }
    let mut all: Vec<ObjIdx> = locals.iter().map(|r| r.object).collect();
    all.sort_unstable();
    all.dedup();
    let below = |dominator: Dominator| {
        // A thread is itself a local variable of its frames.
        let others = all.iter().filter(|o| Some(**o) != info.object);
        let found = others.filter(|o| heap.dominator(**o) == dominator);
        Bytes(found.map(|o| heap.retained(*o).0).sum())
    };
    let stack = frames
        .iter()
        .zip(by_frame)
        .map(|(frame, objects)| {
            let (locals, omitted) = some(heap, objects, limit);
            StackFrame {
                frame: frame_text(frame),
                locals,
                omitted,
            }
        })
        .collect();
    let object = info.object;
    let (other_locals, other_locals_omitted) = some(heap, others, limit);
    Thread {
        name: object
            .and_then(|o| thread_name(heap, o))
            .unwrap_or_default(),
        object: Address(object.map_or(hprof::ObjectId::NULL, |o| heap.id(o))),
        class: object.map_or_else(String::new, |o| heap.class(heap.class_of(o)).name.clone()),
        serial: info.serial.0,
        daemon: object.is_some_and(|o| is_daemon(heap, o)),
        is_virtual: false,
        shallow: object.map_or(Bytes(0), |o| heap.shallow(o)),
        retained: object.map_or(Bytes(0), |o| heap.retained(o)),
        locals_retained: object.map_or(Bytes(0), |o| below(Dominator::Object(o))),
        shared_retained: below(Dominator::Root),
        stack,
        other_locals,
        other_locals_omitted,
    }
}

fn some(heap: &Heap, mut objects: Vec<ObjIdx>, limit: usize) -> (Vec<ObjectRef>, u64) {
    objects.sort_unstable();
    objects.dedup();
    let count = objects.len();
    let kept = largest(heap, objects.into_iter(), limit);
    let omitted = (count - kept.len()) as u64;
    (
        kept.into_iter().map(|o| describe(heap, o)).collect(),
        omitted,
    )
}

/// True for a daemon thread: `daemon` is a field of Thread until JDK 18 and of Thread$FieldHolder since.
pub fn is_daemon(heap: &Heap, thread: ObjIdx) -> bool {
    let flag = |object| match crate::objects::fields::field(heap, object, "daemon") {
        Some(heap_graph::Value::Boolean(daemon)) => Some(daemon),
        _ => None,
    };
    flag(thread)
        .or_else(|| flag(field_ref(heap, thread, "holder")?))
        .unwrap_or_else(|| field_int(heap, thread, "daemon") == Some(1))
}

/// At most `top` groups, and the number of those that were left out.
fn virtual_groups(
    heap: &Heap,
    groups: FxHashMap<Vec<String>, Vec<ObjIdx>>,
    top: Option<usize>,
) -> (Vec<VirtualGroup>, u64) {
    let mut found: Vec<(Bytes, Vec<String>, Vec<ObjIdx>)> = groups
        .into_iter()
        .map(|(stack, objects)| {
            let retained = objects.iter().map(|o| heap.retained(*o).0).sum();
            (Bytes(retained), stack, objects)
        })
        .collect();
    found.sort_by(|(size_a, stack_a, a), (size_b, stack_b, b)| {
        (size_b, b.len())
            .cmp(&(size_a, a.len()))
            .then_with(|| stack_a.cmp(stack_b))
    });
    let omitted = cut(&mut found, top);
    let groups = found
        .into_iter()
        .map(|(retained, stack, objects)| VirtualGroup {
            threads: objects.len() as u64,
            retained,
            stack,
            largest: some(heap, objects, 5).0,
        });
    (groups.collect(), omitted)
}
