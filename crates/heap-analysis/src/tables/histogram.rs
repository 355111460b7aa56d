//! The histogram: how many objects of each group there are, and their sizes.

use crate::objects::describe::Address;
use crate::objects::fields::lineage;
use crate::tables::group::{
    ClassGroups, GroupBy, GroupKey, owner_class, retained_by_group, trace_frames,
};
use crate::tables::ranking::{cut, is_zero};
use heap_graph::{ClassIdx, Heap, HeapError, LayoutModel, ObjIdx, QuickHistogram};
use hprof::{Bytes, ObjectId, Serial};
use regex::Regex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// The column by which rows are sorted, largest first (names from A to Z).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SortBy {
    /// Retained size.
    #[default]
    Retained,
    /// Shallow size.
    Shallow,
    /// Number of objects.
    Objects,
    /// Name.
    Name,
}

/// What to count.
#[derive(Clone, Debug, Default)]
pub struct HistogramOptions {
    /// Grouping.
    pub by: GroupBy,
    /// Only groups whose name matches.
    pub filter: Option<Regex>,
    /// Order of the rows.
    pub sort: SortBy,
    /// Rows to leave out at the beginning.
    pub skip: usize,
    /// The most rows; `None` for all.
    pub top: Option<usize>,
    /// Include unreachable objects.
    pub all: bool,
    /// Include rows for classes without objects (their class objects may retain much).
    pub empty: bool,
}

/// A group of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistogramRow {
    /// The group.
    #[serde(flatten)]
    pub key: GroupKey,
    /// Number of objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
    /// The size that they retain together; absent if it was not computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained: Option<Bytes>,
}

/// Sums over all rows that match, including those that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    /// Number of objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
}

/// Objects counted in groups.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    /// How objects are grouped.
    pub by: GroupBy,
    /// True if unreachable objects are included.
    pub all_objects: bool,
    /// The rows in the requested order.
    pub rows: Vec<HistogramRow>,
    /// Number of matching rows before this page.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped_rows: u64,
    /// Number of matching rows that `top` cut off.
    pub omitted_rows: u64,
    /// Size of the reachable heap, for shares of the retained sizes; 0 if it is unknown.
    pub heap_shallow: Bytes,
    /// Sums over all matching rows. Without a filter, classes and superclasses have the sums over all objects instead,
    /// because groups of superclasses overlap and the rows of `--layout plain` do not include class objects.
    pub total: Total,
}

/// Part of a histogram that has all rows: filtered, sorted and cut as in `options`. Counting is expensive; selecting
/// from the result is not.
pub fn page_of(full: &Histogram, options: &HistogramOptions) -> Histogram {
    let total = options.filter.is_none().then_some(full.total);
    let mut page = finish(full.rows.clone(), options, total);
    page.heap_shallow = full.heap_shallow;
    page
}

/// Counts the heap by the chosen grouping.
pub fn histogram(heap: &Heap, options: &HistogramOptions) -> Result<Histogram, HeapError> {
    let rows = match options.by {
        GroupBy::Class => class_rows(heap, options.all),
        GroupBy::Superclass => superclass_rows(heap, options.all),
        GroupBy::Loader | GroupBy::Package => owner_rows(heap, options),
        GroupBy::Heap => heap_rows(heap, options.all),
        GroupBy::Site => site_rows(heap, options.all),
    };
    let whole = matches!(options.by, GroupBy::Class | GroupBy::Superclass);
    let total = (whole && options.filter.is_none()).then(|| whole_heap(heap, options.all));
    let mut histogram = finish(rows, options, total);
    histogram.heap_shallow = heap.summary().reachable_shallow;
    Ok(histogram)
}

/// The histogram of a quick pass over the file: all objects, no retained sizes.
pub fn from_quick(quick: &QuickHistogram, options: &HistogramOptions) -> Histogram {
    let rows = quick
        .rows
        .iter()
        .map(|row| HistogramRow {
            key: GroupKey::Class {
                class: row.name.clone(),
                class_id: Address(row.class_id),
            },
            objects: row.objects,
            shallow: row.shallow,
            retained: None,
        })
        .collect();
    let options = HistogramOptions {
        all: true,
        by: GroupBy::Class,
        sort: match options.sort {
            SortBy::Retained => SortBy::Shallow,
            other => other,
        },
        ..options.clone()
    };
    let total = options.filter.is_none().then_some(Total {
        objects: quick.summary.objects.total,
        shallow: quick.summary.shallow,
    });
    finish(rows, &options, total)
}

fn finish(
    mut rows: Vec<HistogramRow>,
    options: &HistogramOptions,
    total: Option<Total>,
) -> Histogram {
    rows.retain(|row| options.empty || row.objects > 0);
    if let Some(filter) = &options.filter {
        rows.retain(|row| filter.is_match(&row.key.name()));
    }
    let total = total.unwrap_or_else(|| Total {
        objects: rows.iter().map(|r| r.objects).sum(),
        shallow: Bytes(rows.iter().map(|r| r.shallow.0).sum()),
    });
    rows.sort_by(|a, b| {
        let by_size = match options.sort {
            SortBy::Retained => (b.retained, b.shallow).cmp(&(a.retained, a.shallow)),
            SortBy::Shallow => b.shallow.cmp(&a.shallow),
            SortBy::Objects => b.objects.cmp(&a.objects),
            SortBy::Name => std::cmp::Ordering::Equal,
        };
        by_size.then_with(|| a.key.cmp(&b.key))
    });
    let skipped_rows = options.skip.min(rows.len());
    rows.drain(..skipped_rows);
    let omitted_rows = cut(&mut rows, options.top);
    Histogram {
        by: options.by,
        all_objects: options.all,
        rows,
        skipped_rows: skipped_rows as u64,
        omitted_rows,
        heap_shallow: Bytes(0),
        total,
    }
}

/// All objects, or all reachable ones.
fn whole_heap(heap: &Heap, all: bool) -> Total {
    let summary = heap.summary();
    let (objects, shallow) = if all {
        (heap.len(), summary.shallow)
    } else {
        (summary.reachable_objects, summary.reachable_shallow)
    };
    Total { objects, shallow }
}

fn counts(heap: &Heap, class: ClassIdx, all: bool) -> (u64, u64) {
    let info = heap.class(class);
    if all {
        (info.objects, info.shallow.0)
    } else {
        (info.reachable_objects, info.reachable_shallow.0)
    }
}

fn class_rows(heap: &Heap, all: bool) -> Vec<HistogramRow> {
    heap.classes()
        .iter()
        .enumerate()
        .map(|(n, info)| {
            let (objects, shallow) = counts(heap, ClassIdx(n as u32), all);
            HistogramRow {
                key: GroupKey::Class {
                    class: info.name.clone(),
                    class_id: Address(info.id),
                },
                objects,
                shallow: Bytes(shallow),
                retained: Some(info.retained),
            }
        })
        .collect()
}

fn superclass_rows(heap: &Heap, all: bool) -> Vec<HistogramRow> {
    let mut rows = class_rows(heap, all);
    for row in &mut rows {
        (row.objects, row.shallow) = (0, Bytes(0));
    }
    for class in (0..rows.len() as u32).map(ClassIdx) {
        let (objects, shallow) = counts(heap, class, all);
        for c in lineage(heap, class) {
            rows[c.0 as usize].objects += objects;
            rows[c.0 as usize].shallow.0 += shallow;
        }
    }
    for (row, bytes) in rows.iter_mut().zip(&heap.group_sums().superclasses) {
        row.retained = Some(*bytes);
    }
    rows
}

/// Rows by loader or package: counts come from the classes, except that class objects move from
/// `java.lang.Class` to the group of the class they stand for.
fn owner_rows(heap: &Heap, options: &HistogramOptions) -> Vec<HistogramRow> {
    let groups = ClassGroups::new(heap, options.by);
    let mut sums = vec![(0u64, 0u64); groups.keys.len()];
    for n in 0..heap.classes().len() {
        let class = ClassIdx(n as u32);
        let (objects, shallow) = counts(heap, class, options.all);
        let sum = &mut sums[groups.of[n] as usize];
        // The addition wraps, because class objects are subtracted before all of them have been added.
        sum.0 = sum.0.wrapping_add(objects);
        sum.1 = sum.1.wrapping_add(shallow);
        let Some(object) = heap.class_object(class) else {
            continue;
        };
        // In the plain model class objects belong to no row.
        if heap.summary().layout.model == LayoutModel::Plain {
            continue;
        }
        if !(options.all || heap.is_reachable(object)) {
            continue;
        }
        let shallow = heap.shallow(object).0;
        let from = groups.of[heap.class_of(object).0 as usize] as usize;
        sums[from].0 = sums[from].0.wrapping_sub(1);
        sums[from].1 = sums[from].1.wrapping_sub(shallow);
        let to = groups.of[n] as usize;
        sums[to].0 = sums[to].0.wrapping_add(1);
        sums[to].1 = sums[to].1.wrapping_add(shallow);
    }
    let retained = owners_retain(heap, &groups);
    groups
        .keys
        .into_iter()
        .zip(sums)
        .zip(retained)
        .map(|((key, (objects, shallow)), retained)| HistogramRow {
            key,
            objects,
            shallow: Bytes(shallow),
            retained: Some(Bytes(retained)),
        })
        .collect()
}

/// What loaders or packages retain: read from the index, or computed if renamed classes have other packages.
fn owners_retain(heap: &Heap, groups: &ClassGroups) -> Vec<u64> {
    let sums = heap.group_sums();
    let packages: FxHashMap<&str, Bytes> = sums.packages.iter().map(|(p, b)| (&**p, *b)).collect();
    let loaders: FxHashMap<ObjectId, Bytes> = sums.loaders.iter().copied().collect();
    let known = groups.keys.iter().map(|key| match key {
        GroupKey::Package { package } => packages.get(&**package).map(|b| b.0),
        GroupKey::Loader { object, .. } => loaders.get(&object.0).map(|b| b.0),
        _ => None,
    });
    known.collect::<Option<_>>().unwrap_or_else(|| {
        retained_by_group(heap, groups.keys.len(), |object, out| {
            out.push(groups.of[owner_class(heap, object).0 as usize]);
        })
    })
}

/// Rows by allocation site. Their retained sizes are in the index; unreachable objects are counted by a pass over the
/// column of traces.
fn site_rows(heap: &Heap, all: bool) -> Vec<HistogramRow> {
    let row = |trace: Serial, total: Total, retained| HistogramRow {
        key: GroupKey::Site {
            trace: trace.0,
            frames: trace_frames(heap, trace),
        },
        objects: total.objects,
        shallow: total.shallow,
        retained: Some(retained),
    };
    if let Some(trace) = heap.one_trace() {
        let retained = heap.summary().reachable_shallow;
        return vec![row(trace, whole_heap(heap, all), retained)];
    }
    let mut sums: BTreeMap<Serial, (Total, Bytes)> = BTreeMap::new();
    for site in &heap.group_sums().sites {
        let (objects, shallow) = (site.objects, site.shallow);
        sums.insert(site.trace, (Total { objects, shallow }, site.retained));
    }
    let garbage = (0..heap.len())
        .map(ObjIdx)
        .filter(|o| !heap.is_reachable(*o));
    for object in garbage.take_while(|_| all) {
        let (total, _) = sums.entry(heap.allocation_trace(object)).or_default();
        total.objects += 1;
        total.shallow.0 += heap.shallow(object).0;
    }
    sums.into_iter()
        .map(|(trace, (total, retained))| row(trace, total, retained))
        .collect()
}

/// Rows by Android heap: a pass over all objects, unless the dump names no heaps.
fn heap_rows(heap: &Heap, all: bool) -> Vec<HistogramRow> {
    let row = |name: &str, total: Total, retained| HistogramRow {
        key: GroupKey::Heap {
            heap: name.to_owned(),
        },
        objects: total.objects,
        shallow: total.shallow,
        retained: Some(retained),
    };
    if heap.summary().heaps.is_empty() {
        let retained = heap.summary().reachable_shallow;
        return vec![row("<java>", whole_heap(heap, all), retained)];
    }
    let mut names: Vec<&str> = Vec::new();
    let mut number = |object: ObjIdx| {
        let name = heap.heap_name(object).unwrap_or("<java>");
        names.iter().position(|n| *n == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
    };
    let mut sums: Vec<Total> = Vec::new();
    for object in (0..heap.len()).map(ObjIdx) {
        let n = number(object);
        sums.resize(sums.len().max(n + 1), Total::default());
        if all || heap.is_reachable(object) {
            sums[n].objects += 1;
            sums[n].shallow.0 += heap.shallow(object).0;
        }
    }
    let retained = retained_by_group(heap, sums.len(), |object, out| {
        out.push(number(object) as u32);
    });
    names
        .iter()
        .zip(sums)
        .zip(retained)
        .map(|((name, total), retained)| row(name, total, Bytes(retained)))
        .collect()
}
