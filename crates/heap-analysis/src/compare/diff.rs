//! What changed from dump to dump: classes by name, and the dominator trees matched by structure
//! (class, field, thread name, map key) instead of by address, because the garbage collector
//! moves objects and a restarted program has other ones.
//!
//! Cost: one walk over the top of each tree, and for every group that changed its members' children.

pub use crate::compare::groups::GroupChange;
use crate::compare::groups::{Group, top};
use crate::compare::identity::stable_name;
pub use crate::compare::places::Change;
use crate::compare::places::{Place, places};
use crate::leaks::is_plumbing;
use crate::pace::Pace;
use crate::tables::ranking::{cut, is_zero};
use heap_graph::{Control, Heap, HeapError};
use hprof::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;

/// How to compare.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// At most so many rows per table.
    pub top: Option<usize>,
    /// Percent of the first heap that a place must have grown or shrunk by to be listed.
    pub threshold: f64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        DiffOptions {
            top: Some(20),
            threshold: 1.0,
        }
    }
}

/// Totals of the reachable objects of one dump.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DumpFacts {
    /// Name of the dump, such as its file name.
    pub name: String,
    /// When the dump was written, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Number of reachable objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
    /// True if fewer than half of the application's classes in this dump (or in the first dump, if that has fewer) are
    /// in both: it is probably of another program, and the changes mean little.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unrelated: bool,
}

/// A class in all dumps; classes with the same name are added up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassChange {
    /// Name of the class, without the numbers that differ between runs.
    pub class: String,
    /// Number of reachable objects in each dump.
    pub objects: Vec<u64>,
    /// Their shallow size in each dump.
    pub shallow: Vec<Bytes>,
    /// Their retained size in each dump.
    pub retained: Vec<Bytes>,
    /// True if the number of objects is larger in each dump than in the one before.
    pub steady: bool,
}

fn growth(retained: &[Bytes]) -> i64 {
    let first = retained.first().map_or(0, |b| b.0);
    let last = retained.last().map_or(0, |b| b.0);
    last as i64 - first as i64
}

/// The differences between dumps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// The dumps, in the requested order.
    pub dumps: Vec<DumpFacts>,
    /// Places that grew, the largest growth first.
    pub grown: Vec<Change>,
    /// Places that shrank, the largest decrease first.
    pub shrunk: Vec<Change>,
    /// Groups at the top of the dominator tree that only the last dump has, largest first.
    pub new: Vec<GroupChange>,
    /// Groups at the top of the dominator tree that only the first dump has, largest first.
    pub gone: Vec<GroupChange>,
    /// Classes that changed, the largest change of retained size first.
    pub classes: Vec<ClassChange>,
    /// Number of changed classes that were left out.
    pub omitted_classes: u64,
    /// Number of places that grew and were left out; absent if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_grown: u64,
    /// Number of places that shrank and were left out; absent if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_shrunk: u64,
    /// Number of groups of `new` that were left out; absent if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_new: u64,
    /// Number of groups of `gone` that were left out; absent if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_gone: u64,
}

/// Compares dumps of one program, in the order of time.
///
/// # Errors
/// [`HeapError::Cancelled`].
pub fn diff(
    dumps: &[(String, &Heap)],
    options: &DiffOptions,
    control: &Control<'_>,
) -> Result<Diff, HeapError> {
    let heaps: Vec<&Heap> = dumps.iter().map(|d| d.1).collect();
    let facts = dumps.iter().map(|(name, heap)| DumpFacts {
        name: name.clone(),
        unrelated: heaps.first().is_some_and(|first| !are_related(first, heap)),
        timestamp_ms: heap.summary().timestamp_ms,
        objects: heap.summary().reachable_objects,
        shallow: heap.summary().reachable_shallow,
    });
    let objects = heaps.iter().map(|heap| heap.len()).sum();
    let mut pace = Pace::new(control, "differences", objects);
    let top = top(&heaps, &mut pace)?;
    let only = |last: bool| {
        let absent = |g: &&Group| {
            let (a, b) = (g.members.first(), g.members.last());
            let (there, not) = if last { (b, a) } else { (a, b) };
            there.is_some_and(|m| !m.is_empty()) && not.is_some_and(Vec::is_empty)
        };
        let mut list: Vec<GroupChange> = top.iter().filter(absent).map(Group::change).collect();
        list.sort_by(|a, b| {
            (Reverse(a.growth().abs()), &a.label).cmp(&(Reverse(b.growth().abs()), &b.label))
        });
        let omitted = cut(&mut list, options.top);
        (list, omitted)
    };
    let ((new, omitted_new), (gone, omitted_gone)) = (only(true), only(false));
    let first = heaps.first().map_or(0, |h| h.summary().reachable_shallow.0);
    let least = ((first as f64 * options.threshold / 100.0) as i64).max(1);
    let mut moved = places(&heaps, top, least, &mut pace)?;
    moved.sort_by(|a, b| {
        let key = |p: &Place| Reverse(p.growth().abs());
        (key(a), a.signature()).cmp(&(key(b), b.signature()))
    });
    let mut changes = |sign: i64| -> Result<(Vec<Change>, u64), HeapError> {
        let mut moved: Vec<&Place> = moved.iter().filter(|p| p.growth() * sign > 0).collect();
        let omitted = cut(&mut moved, options.top);
        let moved = moved.into_iter().map(|p| p.change(&heaps, &mut pace));
        Ok((moved.collect::<Result<_, _>>()?, omitted))
    };
    let (classes, omitted_classes) = classes(&heaps, options.top);
    let ((grown, omitted_grown), (shrunk, omitted_shrunk)) = (changes(1)?, changes(-1)?);
    Ok(Diff {
        dumps: facts.collect(),
        grown,
        shrunk,
        new,
        gone,
        classes,
        omitted_classes,
        omitted_grown,
        omitted_shrunk,
        omitted_new,
        omitted_gone,
    })
}

/// Whether two dumps may be of one program: the smaller set of the application's class names is at
/// least half in the other one. Without any, all classes count.
fn are_related(a: &Heap, b: &Heap) -> bool {
    let names = |heap: &Heap, all: bool| -> FxHashSet<String> {
        let classes = heap.classes().iter().filter(|c| c.dumped);
        let classes = classes.filter(|c| all || !is_plumbing(&c.name) && !c.name.ends_with("[]"));
        classes.map(|c| stable_name(&c.name)).collect()
    };
    let alike = |all: bool| {
        let (a, b) = (names(a, all), names(b, all));
        let least = a.len().min(b.len());
        (least > 0).then(|| a.intersection(&b).count() * 2 >= least)
    };
    alike(false).or_else(|| alike(true)).unwrap_or(true)
}

fn classes(heaps: &[&Heap], top: Option<usize>) -> (Vec<ClassChange>, u64) {
    let mut rows: FxHashMap<String, ClassChange> = FxHashMap::default();
    for (n, heap) in heaps.iter().enumerate() {
        for info in heap.classes() {
            let name = stable_name(&info.name);
            let row = rows.entry(name).or_insert_with_key(|name| ClassChange {
                class: name.clone(),
                objects: vec![0; heaps.len()],
                shallow: vec![Bytes(0); heaps.len()],
                retained: vec![Bytes(0); heaps.len()],
                steady: false,
            });
            row.objects[n] += info.reachable_objects;
            row.shallow[n].0 += info.reachable_shallow.0;
            row.retained[n].0 += info.retained.0;
        }
    }
    let mut rows: Vec<ClassChange> = rows.into_values().collect();
    let moved = |r: &ClassChange| {
        let objects = r.objects.windows(2).any(|w| w[0] != w[1]);
        objects || r.retained.windows(2).any(|w| w[0] != w[1])
    };
    rows.retain(moved);
    for row in &mut rows {
        row.steady = row.objects.windows(2).all(|w| w[1] > w[0]);
    }
    rows.sort_by(|a, b| {
        let size = |list: &[Bytes]| Reverse(growth(list).unsigned_abs());
        let key = |r: &ClassChange| (size(&r.retained), size(&r.shallow));
        (key(a), &a.class).cmp(&(key(b), &b.class))
    });
    let omitted = cut(&mut rows, top);
    (rows, omitted)
}
