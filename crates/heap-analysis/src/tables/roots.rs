//! The GC roots by kind and class, and the largest objects they name.

use crate::objects::describe::{ObjectRef, describe};
use crate::pace::Pace;
use crate::paths::together::Above;
use crate::tables::ranking::largest;
use heap_graph::{Control, Heap, HeapError, ObjIdx};
use hprof::{Bytes, HeapTag};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// Which roots to list.
#[derive(Clone, Debug)]
pub struct RootOptions {
    /// Only roots of this kind.
    pub kind: Option<HeapTag>,
    /// Maximum number of classes and of objects per kind.
    pub top: usize,
}

/// The kind of roots of this name, such as `JNI_GLOBAL`, in upper or lower case.
///
/// # Errors
/// A sentence with all names.
pub fn kind_named(name: &str) -> Result<HeapTag, String> {
    let kinds = || HeapTag::ALL.iter().copied().filter(|tag| tag.is_root());
    kinds()
        .find(|kind| kind.name().eq_ignore_ascii_case(name))
        .ok_or_else(|| {
            let names: Vec<_> = kinds().map(HeapTag::name).collect();
            format!(
                "{name} is not a kind of GC root: expected one of {}",
                names.join(", ")
            )
        })
}

/// The root objects of one kind and class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RootClass {
    /// Their class; class objects are listed as `java.lang.Class`, never as `class X`.
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// The size that they retain together: the sum of their retained sizes without those that another one of them
    /// dominates.
    pub retained: Bytes,
}

/// The roots of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RootKind {
    /// Name of the kind.
    pub kind: String,
    /// Number of root records.
    pub records: u64,
    /// Number of objects that they refer to; each counts once.
    pub objects: u64,
    /// Sum of the shallow sizes of these objects.
    pub shallow: Bytes,
    /// The size that these objects retain together: the sum of their retained sizes without those that another one of
    /// them dominates. The retained size of a thread includes its local variables, which are roots of other kinds.
    pub retained: Bytes,
    /// The objects by class, the largest retained size first.
    pub classes: Vec<RootClass>,
    /// The objects with the largest retained sizes.
    pub largest: Vec<ObjectRef>,
}

/// The GC roots of a heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Roots {
    /// The kinds of roots, ordered by name.
    pub kinds: Vec<RootKind>,
    /// Number of root records whose object is not in the dump.
    pub dangling: u64,
}

/// Sums up the roots.
///
/// # Errors
/// If `control` cancels.
pub fn roots(
    heap: &Heap,
    options: &RootOptions,
    control: &Control<'_>,
) -> Result<Roots, HeapError> {
    let mut pace = Pace::new(control, "roots", heap.roots().len() as u64);
    let mut by_kind: BTreeMap<&str, (HeapTag, Vec<ObjIdx>)> = BTreeMap::new();
    for root in heap.roots() {
        if options.kind.is_some_and(|kind| kind != root.kind) {
            continue;
        }
        by_kind
            .entry(root.kind.name())
            .or_insert((root.kind, Vec::new()))
            .1
            .push(root.object);
    }
    let kinds = by_kind
        .into_iter()
        .map(|(name, (_, objects))| kind(heap, name, objects, options.top, &mut pace))
        .collect::<Result<_, _>>()?;
    Ok(Roots {
        kinds,
        dangling: heap.summary().dangling_roots,
    })
}

fn kind(
    heap: &Heap,
    name: &str,
    mut objects: Vec<ObjIdx>,
    top: usize,
    pace: &mut Pace<'_>,
) -> Result<RootKind, HeapError> {
    let records = objects.len() as u64;
    objects.sort_unstable();
    objects.dedup();
    let mut by_class: FxHashMap<&str, Vec<ObjIdx>> = FxHashMap::default();
    for object in &objects {
        let class = &heap.class(heap.class_of(*object)).name;
        by_class.entry(class).or_default().push(*object);
    }
    let mut retained = |objects: &[ObjIdx]| {
        let above = Above::of(heap, objects, pace)?;
        Ok::<_, HeapError>(above.retained_by_all(heap, objects))
    };
    let mut classes = Vec::new();
    for (class, objects) in by_class {
        classes.push(RootClass {
            class: class.to_owned(),
            objects: objects.len() as u64,
            retained: retained(&objects)?,
        });
    }
    classes.sort_by(|a, b| {
        (b.retained, b.objects)
            .cmp(&(a.retained, a.objects))
            .then_with(|| a.class.cmp(&b.class))
    });
    classes.truncate(top);
    Ok(RootKind {
        kind: name.to_owned(),
        records,
        objects: objects.len() as u64,
        shallow: Bytes(objects.iter().map(|object| heap.shallow(*object).0).sum()),
        retained: retained(&objects)?,
        classes,
        largest: largest(heap, objects.into_iter(), top)
            .into_iter()
            .map(|o| describe(heap, o))
            .collect(),
    })
}
