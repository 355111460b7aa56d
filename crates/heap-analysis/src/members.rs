//! The objects of a set: listed page by page, counted by group, and who dominates them.

use crate::describe::{ObjectRef, describe};
use crate::group::{
    ClassGroups, GroupBy, GroupKey, class_key, owner_class, retained_by_group, trace_frames,
};
use crate::histogram::{Histogram, HistogramOptions, HistogramRow, SortBy, Total, page_of};
use crate::paths::ObjectSet;
use heap_graph::{ClassIdx, Dominator, Heap, ObjIdx};
use hprof::{Bytes, Serial};
use regex::Regex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};

/// A page of the objects of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Objects {
    /// The set, as text.
    pub set: String,
    /// All of it.
    pub total: Total,
    /// How many objects come before this page.
    pub offset: u64,
    /// The page.
    pub rows: Vec<ObjectRef>,
}

/// Puts objects in an order: largest first, ties by id (`Name`: by class, then id).
pub fn sort(heap: &Heap, objects: &mut [ObjIdx], by: SortBy) {
    match by {
        SortBy::Retained => objects.sort_by_cached_key(|o| (Reverse(heap.retained(*o)), *o)),
        SortBy::Shallow => objects.sort_by_cached_key(|o| (Reverse(heap.shallow(*o)), *o)),
        SortBy::Objects => objects.sort_unstable(),
        SortBy::Name => {
            let names: Vec<&str> = heap.classes().iter().map(|c| c.name.as_str()).collect();
            objects.sort_by_cached_key(|o| (names[heap.class_of(*o).0 as usize], *o));
        }
    }
}

/// Sums up objects.
pub fn total(heap: &Heap, objects: &[ObjIdx]) -> Total {
    Total {
        objects: objects.len() as u64,
        shallow: Bytes(objects.iter().map(|o| heap.shallow(*o).0).sum()),
    }
}

/// A page of objects that are in order already.
pub fn page(
    heap: &Heap,
    set: String,
    objects: &[ObjIdx],
    total: Total,
    offset: usize,
    limit: usize,
) -> Objects {
    Objects {
        set,
        total,
        offset: offset as u64,
        rows: objects
            .iter()
            .skip(offset)
            .take(limit)
            .map(|o| describe(heap, *o))
            .collect(),
    }
}

/// A histogram of some objects. What a row retains is the sum over its members that no other member
/// of the row dominates.
pub fn histogram_of(heap: &Heap, objects: &[ObjIdx], options: &HistogramOptions) -> Histogram {
    let groups = ClassGroups::new(heap, options.by);
    let mut heaps: FxHashMap<&str, u32> = FxHashMap::default();
    let mut sites: FxHashMap<Serial, u32> = FxHashMap::default();
    let mut keys: Vec<GroupKey> = groups.keys.clone();
    let mut of = |object: ObjIdx| -> u32 {
        let next = keys.len() as u32;
        match options.by {
            GroupBy::Class | GroupBy::Superclass => groups.of[heap.class_of(object).0 as usize],
            GroupBy::Loader | GroupBy::Package => groups.of[owner_class(heap, object).0 as usize],
            GroupBy::Heap => {
                let name = heap.heap_name(object).unwrap_or("<java>");
                *heaps.entry(name).or_insert_with(|| {
                    keys.push(GroupKey::Heap {
                        heap: name.to_owned(),
                    });
                    next
                })
            }
            GroupBy::Site => {
                let trace = heap.allocation_trace(object);
                *sites.entry(trace).or_insert_with(|| {
                    keys.push(GroupKey::Site {
                        trace: trace.0,
                        frames: trace_frames(heap, trace),
                    });
                    next
                })
            }
        }
    };
    let numbers: Vec<u32> = objects.iter().map(|o| of(*o)).collect();
    let mut sums = vec![(0u64, 0u64, 0u64); keys.len()];
    for (object, group) in objects.iter().zip(&numbers) {
        let sum = &mut sums[*group as usize];
        sum.0 += 1;
        sum.1 += heap.shallow(*object).0;
    }
    let members = Members {
        objects,
        numbers: &numbers,
        set: set_of(heap, objects),
    };
    let retained = climbed(heap, &members, sums.len()).unwrap_or_else(|| {
        retained_by_group(heap, sums.len(), |o, out| out.extend(members.group(o)))
    });
    for (sum, bytes) in sums.iter_mut().zip(retained) {
        sum.2 = bytes;
    }
    let rows = keys
        .into_iter()
        .zip(sums)
        .filter(|(_, sum)| sum.0 > 0)
        .map(|(key, (objects, shallow, retained))| HistogramRow {
            key,
            objects,
            shallow: Bytes(shallow),
            retained: Some(Bytes(retained)),
        })
        .collect();
    let whole = total(heap, objects);
    let full = Histogram {
        by: options.by,
        all_objects: options.all,
        rows,
        skipped_rows: 0,
        omitted_rows: 0,
        heap_shallow: heap.summary().reachable_shallow,
        total: whole,
    };
    page_of(&full, options)
}

/// Members of a set, by id, with the number of each one's group.
struct Members<'a> {
    objects: &'a [ObjIdx],
    numbers: &'a [u32],
    set: ObjectSet,
}

impl Members<'_> {
    fn group(&self, object: ObjIdx) -> Option<u32> {
        if !self.set.contains(object) {
            return None;
        }
        let at = self.objects.binary_search(&object).ok()?;
        Some(self.numbers[at])
    }
}

fn set_of(heap: &Heap, objects: &[ObjIdx]) -> ObjectSet {
    let mut set = ObjectSet::new(heap);
    for object in objects {
        set.insert(*object);
    }
    set
}

/// A set of this share of the heap is looked at by walking over the whole dominator tree.
const LARGE: u64 = 64;

/// As is one in which some member lies deeper than this.
const MAX_CLIMB: usize = 4096;

/// What each group retains: the sum over members above which there is no other of the group, found by
/// climbing from each member. `None` when a walk over the tree is cheaper.
fn climbed(heap: &Heap, members: &Members<'_>, groups: usize) -> Option<Vec<u64>> {
    if members.objects.len() as u64 > heap.len() / LARGE {
        return None;
    }
    let mut retained = vec![0; groups];
    for (object, group) in members.objects.iter().zip(members.numbers) {
        let mut at = *object;
        let mut steps = 0;
        let covered = loop {
            match heap.dominator(at) {
                Dominator::Object(above) => at = above,
                _ => break false,
            }
            if members.group(at) == Some(*group) {
                break true;
            }
            steps += 1;
            if steps > MAX_CLIMB {
                return None;
            }
        };
        if !covered {
            retained[*group as usize] += heap.retained(*object).0;
        }
    }
    Some(retained)
}

/// The objects of one class that immediately dominate members of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DominatorClass {
    /// Their class; `<roots>` for members that nothing but roots keeps.
    #[serde(flatten)]
    pub key: GroupKey,
    /// How many they are.
    pub dominators: u64,
    /// Members they dominate.
    pub dominated: u64,
    /// Own size of the dominators.
    pub shallow: Bytes,
    /// Own size of the members.
    pub dominated_shallow: Bytes,
}

/// Who keeps the members of a set alive, by class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImmediateDominators {
    /// The set, as text.
    pub set: String,
    /// Classes that were skipped.
    pub skip: Option<String>,
    /// By class, most members first.
    pub rows: Vec<DominatorClass>,
}

/// Dominators of one class, and what of the set they dominate.
#[derive(Clone, Copy, Debug, Default)]
struct DominatorSum {
    dominators: u64,
    shallow: u64,
    dominated: u64,
    dominated_shallow: u64,
}

impl DominatorSum {
    fn add(&mut self, other: DominatorSum) {
        self.dominators += other.dominators;
        self.shallow += other.shallow;
        self.dominated += other.dominated;
        self.dominated_shallow += other.dominated_shallow;
    }
}

/// By class number, the virtual root last. `seen` has a bit for every object, so that each
/// dominator counts once, whichever worker meets it first.
fn dominator_sums(
    heap: &Heap,
    objects: &[ObjIdx],
    skipped: &[bool],
    seen: &[AtomicU64],
) -> Vec<DominatorSum> {
    let mut sums = vec![DominatorSum::default(); skipped.len() + 1];
    for object in objects {
        let mut above = heap.dominator(*object);
        let mut row = skipped.len();
        while let Dominator::Object(o) = above {
            row = heap.class_of(o).0 as usize;
            if !skipped[row] {
                break;
            }
            above = heap.dominator(o);
            row = skipped.len();
        }
        if above == Dominator::Unreachable {
            continue;
        }
        let sum = &mut sums[row];
        sum.dominated += 1;
        sum.dominated_shallow += heap.shallow(*object).0;
        if let Dominator::Object(holder) = above {
            let bit = 1 << (holder.0 % 64);
            let word = &seen[(holder.0 / 64) as usize];
            if word.load(Ordering::Relaxed) & bit == 0
                && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
            {
                sum.dominators += 1;
                sum.shallow += heap.shallow(holder).0;
            }
        }
    }
    sums
}

/// The immediate dominators by class; a dominator whose class name matches `skip` gives way to
/// its own dominator (as MAT's `immediate_dominators -skip java.*`).
pub fn immediate_dominators(
    heap: &Heap,
    set: String,
    objects: &[ObjIdx],
    skip: Option<&Regex>,
) -> ImmediateDominators {
    let skipped: Vec<bool> = heap
        .classes()
        .iter()
        .map(|c| skip.is_some_and(|s| s.is_match(&c.name)))
        .collect();
    let seen: Vec<AtomicU64> = (0..heap.len().div_ceil(64))
        .map(|_| AtomicU64::new(0))
        .collect();
    let part = |objects: &[ObjIdx]| dominator_sums(heap, objects, &skipped, &seen);
    let half = objects.len() / 2;
    let mut sums = if half > 1 << 16 {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| part(&objects[half..]));
            let mut mine = part(&objects[..half]);
            let other = other
                .join()
                .unwrap_or_else(|p| std::panic::resume_unwind(p));
            mine.iter_mut().zip(other).for_each(|(a, b)| a.add(b));
            mine
        })
    } else {
        part(objects)
    };
    let roots = sums.pop().unwrap_or_default();
    let key = |class| match class {
        Some(class) => class_key(heap, class),
        None => GroupKey::Class {
            class: "<roots>".to_owned(),
            class_id: crate::describe::Address::default(),
        },
    };
    let mut rows: Vec<DominatorClass> = (0..)
        .map(|n| Some(ClassIdx(n)))
        .zip(sums)
        .chain([(None, roots)])
        .filter(|(_, sum)| sum.dominated > 0)
        .map(|(class, sum)| DominatorClass {
            key: key(class),
            dominators: sum.dominators,
            dominated: sum.dominated,
            shallow: Bytes(sum.shallow),
            dominated_shallow: Bytes(sum.dominated_shallow),
        })
        .collect();
    rows.sort_by(|a, b| {
        b.dominated
            .cmp(&a.dominated)
            .then_with(|| a.key.cmp(&b.key))
    });
    ImmediateDominators {
        set,
        skip: skip.map(|s| s.as_str().to_owned()),
        rows,
    }
}
