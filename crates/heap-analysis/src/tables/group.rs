//! Groups of objects: by class, superclass, loader, package, Android heap or allocation site, and
//! what a group retains.

use crate::objects::describe::{Address, value_of};
use heap_graph::{ClassIdx, Heap, ObjIdx, ObjectKind};
use hprof::{ObjectId, Serial, package_of};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// How objects are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// By class; each class id is a group.
    #[default]
    Class,
    /// By class and all superclasses: an object is in the group of each of them, so groups overlap.
    Superclass,
    /// By the loader that defined the class.
    Loader,
    /// By the package of the class.
    Package,
    /// By Android heap (`app`, `zygote`, `image`).
    Heap,
    /// By allocation stack.
    Site,
}

/// The name of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum GroupKey {
    /// A class.
    Class {
        /// Name of the class.
        class: String,
        /// Id of the class object.
        class_id: Address,
    },
    /// A class loader.
    Loader {
        /// Class of the loader with its name, or `<boot>`.
        loader: String,
        /// Id of the loader; 0 for the boot loader.
        object: Address,
    },
    /// A package.
    Package {
        /// Name of the package; empty for the unnamed package.
        package: String,
    },
    /// An Android heap.
    Heap {
        /// Name of the heap.
        heap: String,
    },
    /// An allocation site.
    Site {
        /// Trace serial in the dump.
        trace: u32,
        /// Frames, innermost first.
        frames: Vec<String>,
    },
}

impl GroupKey {
    /// The name to show.
    pub fn name(&self) -> String {
        match self {
            GroupKey::Class { class, .. } => class.clone(),
            GroupKey::Loader { loader, object } if object.0.is_null() => loader.clone(),
            GroupKey::Loader { loader, object } => format!("{loader} @ {object}"),
            GroupKey::Package { package } if package.is_empty() => "<no package>".to_owned(),
            GroupKey::Package { package } => package.clone(),
            GroupKey::Heap { heap } => heap.clone(),
            GroupKey::Site { trace, frames } if frames.is_empty() => {
                format!("<no stack, trace {trace}>")
            }
            GroupKey::Site { frames, .. } => frames.join(" < "),
        }
    }
}

/// The key of a class.
pub fn class_key(heap: &Heap, class: ClassIdx) -> GroupKey {
    let info = heap.class(class);
    GroupKey::Class {
        class: info.name.clone(),
        class_id: Address(info.id),
    }
}

/// The key of a class loader.
pub fn loader_key(heap: &Heap, loader: ObjectId) -> GroupKey {
    GroupKey::Loader {
        loader: loader_name(heap, loader),
        object: Address(loader),
    }
}

/// Class of a loader and its name, or `<boot>`.
pub fn loader_name(heap: &Heap, loader: ObjectId) -> String {
    if loader.is_null() {
        return "<boot>".to_owned();
    }
    match heap.find(loader) {
        Some(object) => {
            let class = &heap.class(heap.class_of(object)).name;
            match value_of(heap, object) {
                Some(name) => format!("{class} \"{name}\""),
                None => class.clone(),
            }
        }
        None => "<loader not in the dump>".to_owned(),
    }
}

/// The frames of a trace as text, innermost first.
pub fn trace_frames(heap: &Heap, trace: Serial) -> Vec<String> {
    heap.trace(trace).into_iter().map(frame_text).collect()
}

/// A frame as a stack trace prints it: `a.B.run(B.java:12)`.
pub fn frame_text(frame: &heap_graph::FrameInfo) -> String {
    let class = if frame.class.is_empty() {
        "?"
    } else {
        &frame.class
    };
    let source = if frame.source.is_empty() {
        "Unknown Source"
    } else {
        &frame.source
    };
    match frame.line {
        -3 => format!("{class}.{}(Native Method)", frame.method),
        line if line > 0 => format!("{class}.{}({source}:{line})", frame.method),
        _ => format!("{class}.{}({source})", frame.method),
    }
}

/// The class under which an object is counted by package or loader: a class object belongs to its own package and
/// loader, not to those of `java.lang.Class`.
pub fn owner_class(heap: &Heap, object: ObjIdx) -> ClassIdx {
    match heap.kind(object) {
        ObjectKind::Class => heap
            .class_by_object(object)
            .unwrap_or_else(|| heap.class_of(object)),
        _ => heap.class_of(object),
    }
}

/// The group of each class, for groupings that depend on the class only.
#[derive(Clone, Debug)]
pub struct ClassGroups {
    /// Names of the groups.
    pub keys: Vec<GroupKey>,
    /// Group number by class number.
    pub of: Vec<u32>,
}

impl ClassGroups {
    /// Groups classes by `by`; `Superclass`, `Heap` and `Site` fall back to the class itself.
    pub fn new(heap: &Heap, by: GroupBy) -> ClassGroups {
        let mut numbers: FxHashMap<GroupId<'_>, u32> = FxHashMap::default();
        let mut keys = Vec::new();
        let mut of = Vec::with_capacity(heap.classes().len());
        for (n, info) in heap.classes().iter().enumerate() {
            let class = ClassIdx(n as u32);
            let id = match by {
                GroupBy::Loader => GroupId::Loader(info.loader),
                GroupBy::Package => GroupId::Package(package_of(&info.name)),
                _ => GroupId::Class(class),
            };
            of.push(*numbers.entry(id).or_insert_with(|| {
                keys.push(match id {
                    GroupId::Class(class) => class_key(heap, class),
                    GroupId::Loader(loader) => loader_key(heap, loader),
                    GroupId::Package(package) => GroupKey::Package {
                        package: package.to_owned(),
                    },
                });
                keys.len() as u32 - 1
            }));
        }
        ClassGroups { keys, of }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum GroupId<'h> {
    Class(ClassIdx),
    Loader(ObjectId),
    Package(&'h str),
}

/// What each group retains by the top-ancestor rule: the sum over members that no other member of
/// the group dominates. One walk over the dominator tree with an explicit stack (chains of
/// millions of objects exist).
pub fn retained_by_group(
    heap: &Heap,
    groups: usize,
    mut groups_of: impl FnMut(ObjIdx, &mut Vec<u32>),
) -> Vec<u64> {
    let columns = heap.columns();
    let mut retained = vec![0u64; groups];
    let mut depth = vec![0u32; groups];
    let mut mine = Vec::new();
    let mut stack: Vec<(ObjIdx, bool)> = heap.dominated(None).map(|o| (o, false)).collect();
    while let Some((object, leave)) = stack.pop() {
        mine.clear();
        groups_of(object, &mut mine);
        if leave {
            for g in &mine {
                depth[*g as usize] -= 1;
            }
            continue;
        }
        for g in &mine {
            if depth[*g as usize] == 0 {
                retained[*g as usize] += columns.retained(object).0;
            }
        }
        let from = stack.len();
        stack.push((object, true));
        stack.extend(heap.dominated(Some(object)).map(|o| (o, false)));
        if stack.len() == from + 1 {
            stack.pop();
        } else {
            for g in &mine {
                depth[*g as usize] += 1;
            }
        }
    }
    retained
}
