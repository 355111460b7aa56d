//! The class loaders: how many classes each has defined, what it retains, and classes that more than one loader
//! defines.

use crate::objects::describe::Address;
use crate::tables::group::{GroupBy, GroupKey, loader_name};
use crate::tables::histogram::{HistogramOptions, HistogramRow, histogram};
use crate::tables::ranking::cut;
use heap_graph::{ClassIdx, Heap, HeapError};
use hprof::{Bytes, ObjectId};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// A class loader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loader {
    /// Class of the loader with its name, or `<boot>`.
    pub loader: String,
    /// Id of the loader; 0 for the boot loader.
    pub object: Address,
    /// Number of classes that it defined.
    pub classes: u64,
    /// Number of reachable objects of these classes, including the class objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
    /// The size that they retain together, as in the histogram by loader and in `top`; `null` if none is reachable.
    pub retained: Option<Bytes>,
    /// Retained size of the loader object; `null` for the boot loader.
    pub loader_retained: Option<Bytes>,
    /// True if the loader is unreachable, although its classes are still in the dump.
    pub unreachable: bool,
}

/// A class name that several loaders define.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DuplicateClass {
    /// Name of the class.
    pub class: String,
    /// Number of classes with this name.
    pub count: u64,
    /// Number of their reachable objects.
    pub objects: u64,
    /// Ids of the loaders, one for each class.
    pub loaders: Vec<Address>,
}

/// The class loaders of a heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loaders {
    /// The loaders, those that retain most first.
    pub loaders: Vec<Loader>,
    /// Number of loaders that were left out.
    pub omitted_loaders: u64,
    /// Class names that several loaders define, those with the most classes first.
    pub duplicates: Vec<DuplicateClass>,
    /// Number of all such names.
    pub duplicate_names: u64,
}

/// All loaders as the histogram counts them, what retains most first.
pub(crate) fn loader_rows(heap: &Heap) -> Result<Vec<HistogramRow>, HeapError> {
    let options = HistogramOptions {
        by: GroupBy::Loader,
        ..HistogramOptions::default()
    };
    Ok(histogram(heap, &options)?.rows)
}

fn loader_of(row: &HistogramRow) -> Option<ObjectId> {
    match &row.key {
        GroupKey::Loader { object, .. } => Some(object.0),
        _ => None,
    }
}

/// Sums up loaders; at most `top` loaders and as many duplicate classes.
pub fn loaders(heap: &Heap, top: Option<usize>) -> Result<Loaders, HeapError> {
    let rows = loader_rows(heap)?;
    let mut sums: BTreeMap<ObjectId, u64> = BTreeMap::new();
    let mut names: BTreeMap<&str, Vec<ClassIdx>> = BTreeMap::new();
    for (n, class) in heap.classes().iter().enumerate() {
        *sums.entry(class.loader).or_default() += u64::from(class.dumped);
        // Hidden classes share the name of the class that they were made from, by design.
        if class.dumped && !class.name.contains('+') && class.element.is_none() {
            names
                .entry(&class.name)
                .or_default()
                .push(ClassIdx(n as u32));
        }
    }
    let by_id: FxHashMap<ObjectId, &HistogramRow> = rows
        .iter()
        .filter_map(|row| Some((loader_of(row)?, row)))
        .collect();
    let mut found: Vec<(ObjectId, u64, Option<&HistogramRow>)> = sums
        .into_iter()
        .map(|(id, classes)| (id, classes, by_id.get(&id).copied()))
        .collect();
    found.sort_by_key(|(id, _, row)| {
        let sizes = row.map(|r| (r.retained, r.shallow));
        (std::cmp::Reverse(sizes.unwrap_or_default()), *id)
    });
    let omitted_loaders = cut(&mut found, top);
    let loaders = found
        .into_iter()
        .map(|(id, classes, row)| {
            let object = heap.find(id);
            Loader {
                loader: loader_name(heap, id),
                object: Address(id),
                classes,
                objects: row.map_or(0, |r| r.objects),
                shallow: row.map_or(Bytes(0), |r| r.shallow),
                retained: row.and_then(|r| r.retained),
                loader_retained: object.map(|o| heap.retained(o)),
                unreachable: object.is_some_and(|o| !heap.is_reachable(o)),
            }
        })
        .collect();
    let mut duplicates: Vec<DuplicateClass> = names
        .into_iter()
        .filter(|(_, classes)| {
            // The VM of JDK 8 defines many anonymous classes with the same name for a single loader.
            let first = heap.class(classes[0]).loader;
            classes.iter().any(|c| heap.class(*c).loader != first)
        })
        .map(|(name, classes)| DuplicateClass {
            class: name.to_owned(),
            count: classes.len() as u64,
            objects: classes
                .iter()
                .map(|c| heap.class(*c).reachable_objects)
                .sum(),
            loaders: classes
                .iter()
                .map(|c| Address(heap.class(*c).loader))
                .collect(),
        })
        .collect();
    duplicates.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.class.cmp(&b.class)));
    let duplicate_names = duplicates.len() as u64;
    cut(&mut duplicates, top);
    Ok(Loaders {
        loaders,
        omitted_loaders,
        duplicates,
        duplicate_names,
    })
}
