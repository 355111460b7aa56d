//! The objects of a set: listed page by page, counted by group, and their dominators.

use crate::objects::describe::{ObjectRef, describe, scalar_text, value_of};
use crate::objects::fields::lineage;
use crate::sets::selection::Selection;
use crate::tables::group::{
    ClassGroups, GroupBy, GroupKey, class_key, owner_class, retained_by_group, trace_frames,
};
use crate::tables::histogram::{Histogram, HistogramOptions, HistogramRow, SortBy, Total, page_of};
use crate::tables::ranking::{cut, is_zero};
use heap_graph::{ClassIdx, Columns, Dominator, Heap, ObjIdx, ObjectView, Value};
use hprof::{Bytes, Serial};
use regex::Regex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// A page of the list of a set's objects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Objects {
    /// The set, in the syntax of set expressions.
    pub set: String,
    /// Sums over the whole set.
    pub total: Total,
    /// Number of objects before this page.
    pub offset: u64,
    /// The objects of this page.
    pub rows: Vec<Member>,
}

/// An object of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// If the object has no readable value: its first fields with a readable value, in the order of the dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldText>,
}

/// A field and its readable value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldText {
    /// The name of the field.
    pub name: String,
    /// A number, or the quoted readable value of the object that the field refers to.
    pub value: String,
}

/// The number of fields that are shown to distinguish an object from others of its class.
const FIELDS: usize = 3;

fn member(heap: &Heap, object: ObjIdx) -> Member {
    let named = describe(heap, object);
    let fields = match named.value {
        None => field_texts(heap, object),
        Some(_) => Vec::new(),
    };
    Member {
        object: named,
        fields,
    }
}

fn field_texts(heap: &Heap, object: ObjIdx) -> Vec<FieldText> {
    let Ok(ObjectView::Instance { fields, .. }) = heap.object(object) else {
        return Vec::new();
    };
    let text = |value: &Value| match value {
        Value::Reference(id) => {
            let value = value_of(heap, heap.find(*id)?)?;
            Some(format!("\"{value}\""))
        }
        number => scalar_text(number),
    };
    let readable = fields.iter().filter_map(|field| {
        Some(FieldText {
            name: field.name.to_owned(),
            value: text(&field.value)?,
        })
    });
    readable.take(FIELDS).collect()
}

/// The first `count` members in an order: largest first, ties by id (`Objects`: by id; `Name`: by
/// class, then id).
pub fn first(heap: &Heap, set: &Selection, by: SortBy, count: usize) -> Vec<ObjIdx> {
    let columns = heap.columns();
    match by {
        SortBy::Retained => set.largest(heap, count, |o| columns.retained(o).0),
        SortBy::Shallow => set.largest(heap, count, |o| columns.shallow(o).0),
        SortBy::Objects => set.iter().take(count).collect(),
        SortBy::Name => {
            let names = heap.classes().iter().map(|c| c.name.as_str());
            let mut sorted: Vec<&str> = names.clone().collect();
            sorted.sort_unstable();
            let rank = |name: &str| sorted.partition_point(|s| *s < name) as u64;
            let ranks: Vec<u64> = names.map(|name| u64::MAX - rank(name)).collect();
            set.largest(heap, count, |o| ranks[columns.class_of(o).0 as usize])
        }
    }
}

/// Sums up objects.
pub fn total(heap: &Heap, set: &Selection) -> Total {
    let columns = heap.columns();
    let parts = set.in_parts(heap, |part| part.map(|o| columns.shallow(o).0).sum::<u64>());
    Total {
        objects: set.len(),
        shallow: Bytes(parts.into_iter().sum()),
    }
}

/// The order and range of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions {
    /// The order.
    pub sort: SortBy,
    /// Objects before the page.
    pub offset: usize,
    /// Objects on the page, at most.
    pub limit: usize,
}

/// A page of the members; `name` is the set as text, `total` its [`total`].
pub fn page(
    heap: &Heap,
    name: String,
    set: &Selection,
    total: Total,
    options: &PageOptions,
) -> Objects {
    let shown = options.offset.saturating_add(options.limit);
    let objects = first(heap, set, options.sort, shown);
    Objects {
        set: name,
        total,
        offset: options.offset as u64,
        rows: objects
            .iter()
            .skip(options.offset)
            .map(|o| member(heap, *o))
            .collect(),
    }
}

/// A histogram of some objects without the retained sizes of the groups, which take longer to compute.
pub fn counts_of(heap: &Heap, set: &Selection, options: &HistogramOptions) -> Histogram {
    let groups = Groups::new(heap, set, options.by);
    rows_of(heap, set, &groups, None, options)
}

/// A histogram of some objects. The retained size of a row is the sum over its members that no other member of the row
/// dominates.
pub fn histogram_of(heap: &Heap, set: &Selection, options: &HistogramOptions) -> Histogram {
    let groups = Groups::new(heap, set, options.by);
    let retained = retained_in(heap, set, groups.keys.len(), |o, out| groups.of(o, out));
    rows_of(heap, set, &groups, Some(&retained), options)
}

fn rows_of(
    heap: &Heap,
    set: &Selection,
    groups: &Groups<'_>,
    retained: Option<&[u64]>,
    options: &HistogramOptions,
) -> Histogram {
    let columns = heap.columns();
    let parts = set.in_parts(heap, |members| {
        let mut sums = vec![(0u64, 0u64); groups.of_unit.len()];
        for object in members {
            let sum = &mut sums[groups.unit(object)];
            sum.0 += 1;
            sum.1 += columns.shallow(object).0;
        }
        sums
    });
    let mut sums = vec![(0u64, 0u64); groups.keys.len()];
    let mut of = Vec::new();
    for part in parts {
        for (unit, (objects, shallow)) in part.into_iter().enumerate().filter(|(_, s)| s.0 > 0) {
            of.clear();
            groups.of_unit(unit, &mut of);
            for group in &of {
                let sum = &mut sums[*group as usize];
                sum.0 += objects;
                sum.1 += shallow;
            }
        }
    }
    let rows = groups
        .keys
        .iter()
        .zip(sums)
        .enumerate()
        .filter(|(_, (_, sum))| sum.0 > 0)
        .map(|(n, (key, (objects, shallow)))| HistogramRow {
            key: key.clone(),
            objects,
            shallow: Bytes(shallow),
            retained: retained.map(|r| Bytes(r[n])),
        })
        .collect();
    let full = Histogram {
        by: options.by,
        all_objects: options.all,
        rows,
        skipped_rows: 0,
        omitted_rows: 0,
        heap_shallow: heap.summary().reachable_shallow,
        total: total(heap, set),
    };
    page_of(&full, options)
}

/// The groups of each object. Objects of one unit (their class, Android heap or site) belong to the same groups.
struct Groups<'h> {
    heap: &'h Heap,
    columns: Columns<'h>,
    by: GroupBy,
    keys: Vec<GroupKey>,
    /// The group of each unit; when grouping by superclass, the group of the class itself.
    of_unit: Vec<u32>,
    heaps: FxHashMap<&'h str, usize>,
    sites: FxHashMap<Serial, usize>,
}

impl<'h> Groups<'h> {
    fn new(heap: &'h Heap, set: &Selection, by: GroupBy) -> Groups<'h> {
        let classes = ClassGroups::new(heap, by);
        let mut groups = Groups {
            heap,
            columns: heap.columns(),
            by,
            keys: classes.keys,
            of_unit: classes.of,
            heaps: FxHashMap::default(),
            sites: FxHashMap::default(),
        };
        if !matches!(by, GroupBy::Heap | GroupBy::Site) {
            return groups;
        }
        (groups.keys, groups.of_unit) = (Vec::new(), Vec::new());
        for object in set.iter() {
            let key = match by {
                GroupBy::Heap => {
                    let name = groups.heap_name(object);
                    let next = groups.heaps.len();
                    (*groups.heaps.entry(name).or_insert(next) == groups.keys.len()).then(|| {
                        GroupKey::Heap {
                            heap: name.to_owned(),
                        }
                    })
                }
                _ => {
                    let trace = heap.allocation_trace(object);
                    let next = groups.sites.len();
                    (*groups.sites.entry(trace).or_insert(next) == groups.keys.len()).then(|| {
                        GroupKey::Site {
                            trace: trace.0,
                            frames: trace_frames(heap, trace),
                        }
                    })
                }
            };
            if let Some(key) = key {
                groups.of_unit.push(groups.keys.len() as u32);
                groups.keys.push(key);
            }
        }
        groups
    }

    fn heap_name(&self, object: ObjIdx) -> &'h str {
        self.heap.heap_name(object).unwrap_or("<java>")
    }

    /// The unit of a member of the set.
    fn unit(&self, object: ObjIdx) -> usize {
        let class = self.columns.class_of(object);
        match self.by {
            GroupBy::Class | GroupBy::Superclass => class.0 as usize,
            // A class object belongs to its own package and loader.
            GroupBy::Loader | GroupBy::Package if class == self.heap.class_class() => {
                owner_class(self.heap, object).0 as usize
            }
            GroupBy::Loader | GroupBy::Package => class.0 as usize,
            GroupBy::Heap => self.heaps[self.heap_name(object)],
            GroupBy::Site => self.sites[&self.heap.allocation_trace(object)],
        }
    }

    /// Adds the groups of a member of the set.
    fn of(&self, object: ObjIdx, out: &mut Vec<u32>) {
        self.of_unit(self.unit(object), out);
    }

    fn of_unit(&self, unit: usize, out: &mut Vec<u32>) {
        match self.by {
            GroupBy::Superclass => {
                let classes = lineage(self.heap, ClassIdx(unit as u32));
                out.extend(classes.map(|class| self.of_unit[class.0 as usize]));
            }
            _ => out.push(self.of_unit[unit]),
        }
    }
}

/// Steps per object of the heap that may be climbed before a walk over the whole dominator tree is cheaper: a step is
/// a third of the work, and threads share the steps.
const STEPS: u64 = 4;

/// Steps that a worker climbs before it adds them to the shared count.
const UNTOLD: u64 = 1 << 12;

/// What the members of each group retain together: the sum over the members that no other member of the group
/// dominates. `groups_of` adds the groups of a member, each one once.
pub(crate) fn retained_in(
    heap: &Heap,
    set: &Selection,
    groups: usize,
    groups_of: impl Fn(ObjIdx, &mut Vec<u32>) + Sync,
) -> Vec<u64> {
    climbed(heap, set, groups, &groups_of).unwrap_or_else(|| {
        retained_by_group(heap, groups, |object, out| {
            if set.contains(object) {
                groups_of(object, out);
            }
        })
    })
}

/// What each group retains, found by climbing from each member. `None` when a walk over the tree is cheaper.
fn climbed(
    heap: &Heap,
    set: &Selection,
    groups: usize,
    groups_of: &(impl Fn(ObjIdx, &mut Vec<u32>) + Sync),
) -> Option<Vec<u64>> {
    let columns = heap.columns();
    let budget = heap.len().saturating_mul(STEPS).max(UNTOLD);
    let steps = AtomicU64::new(0);
    let parts = set.in_parts(heap, |members| {
        let mut retained = vec![0; groups];
        let (mut open, mut of) = (Vec::new(), Vec::new());
        let mut untold = 0;
        for object in members {
            open.clear();
            groups_of(object, &mut open);
            let mut at = object;
            while let Dominator::Object(above) = columns.dominator(at) {
                at = above;
                untold += 1;
                if untold >= UNTOLD {
                    if steps.fetch_add(untold, Ordering::Relaxed) > budget {
                        return None;
                    }
                    untold = 0;
                }
                if set.contains(at) {
                    of.clear();
                    groups_of(at, &mut of);
                    // Counts as more than one step only if a dump has unrealistically deep hierarchies.
                    untold += (open.len() * of.len() / 64) as u64;
                    open.retain(|group| !of.contains(group));
                    if open.is_empty() {
                        break;
                    }
                } else if set.is_closed() {
                    // No object above this one is a member.
                    break;
                }
            }
            for group in &open {
                retained[*group as usize] += columns.retained(object).0;
            }
        }
        Some(retained)
    });
    parts.into_iter().reduce(|all, one| {
        let (mut all, one) = (all?, one?);
        all.iter_mut().zip(one).for_each(|(a, b)| *a += b);
        Some(all)
    })?
}

/// The objects of one class that immediately dominate members of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DominatorClass {
    /// Class of the dominators; `<roots>` for members that no object dominates.
    #[serde(flatten)]
    pub key: GroupKey,
    /// Number of dominators.
    pub dominators: u64,
    /// Number of members that they immediately dominate.
    pub dominated: u64,
    /// Sum of the shallow sizes of the dominators.
    pub shallow: Bytes,
    /// Sum of the shallow sizes of these members.
    pub dominated_shallow: Bytes,
}

/// The objects that immediately dominate the members of a set, by class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImmediateDominators {
    /// The set, in the syntax of set expressions.
    pub set: String,
    /// Regular expression of the class names that were skipped: the next dominator above counts instead. `null` if none
    /// was requested.
    pub skip: Option<String>,
    /// The classes, those with the most dominated members first.
    pub rows: Vec<DominatorClass>,
    /// Number of rows that were left out; absent if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_rows: u64,
}

impl ImmediateDominators {
    /// Only the first rows, or all of them.
    #[must_use]
    pub fn first(mut self, top: Option<usize>) -> ImmediateDominators {
        self.omitted_rows += cut(&mut self.rows, top);
        self
    }
}

/// Dominators of one class, and the members of the set that they dominate.
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

/// By class number, the virtual root last. `seen` has a bit for every object, so that each dominator counts once even
/// if several workers find it.
fn dominator_sums(
    columns: &Columns<'_>,
    members: &mut dyn Iterator<Item = ObjIdx>,
    skipped: &[bool],
    seen: &[AtomicU64],
) -> Vec<DominatorSum> {
    let mut sums = vec![DominatorSum::default(); skipped.len() + 1];
    for object in members {
        let mut above = columns.dominator(object);
        let mut row = skipped.len();
        while let Dominator::Object(o) = above {
            row = columns.class_of(o).0 as usize;
            if !skipped[row] {
                break;
            }
            above = columns.dominator(o);
            row = skipped.len();
        }
        if above == Dominator::Unreachable {
            continue;
        }
        let sum = &mut sums[row];
        sum.dominated += 1;
        sum.dominated_shallow += columns.shallow(object).0;
        if let Dominator::Object(holder) = above {
            let bit = 1 << (holder.0 % 64);
            let word = &seen[(holder.0 / 64) as usize];
            if word.load(Ordering::Relaxed) & bit == 0
                && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
            {
                sum.dominators += 1;
                sum.shallow += columns.shallow(holder).0;
            }
        }
    }
    sums
}

/// The immediate dominators by class; a dominator whose class name matches `skip` is replaced by its own dominator (as
/// MAT's `immediate_dominators -skip java.*`).
pub fn immediate_dominators(
    heap: &Heap,
    name: String,
    set: &Selection,
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
    let columns = heap.columns();
    let parts = set.in_parts(heap, |part| dominator_sums(&columns, part, &skipped, &seen));
    let joined = parts.into_iter().reduce(|mut all, one| {
        all.iter_mut().zip(one).for_each(|(a, b)| a.add(b));
        all
    });
    let mut sums = joined.unwrap_or_default();
    let roots = sums.pop().unwrap_or_default();
    let key = |class| match class {
        Some(class) => class_key(heap, class),
        None => GroupKey::Class {
            class: "<roots>".to_owned(),
            class_id: crate::objects::describe::Address::default(),
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
        set: name,
        skip: skip.map(|s| s.as_str().to_owned()),
        rows,
        omitted_rows: 0,
    }
}
