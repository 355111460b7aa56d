//! The first screen: facts about the file, its largest consumers, and leak suspects.

use crate::leaks::{LeakOptions, Leaks, find};
use crate::tables::histogram::{Histogram, HistogramOptions, histogram};
use crate::tables::ranking::cut;
use crate::tables::top::{BigObject, largest_objects};
use heap_graph::{Control, Heap, HeapError, ObjectCounts};
use hprof::Bytes;
use serde::Serialize;

/// The number of objects.
const OBJECTS: usize = 15;

/// The number of suspects.
const SUSPECTS: usize = 3;

/// How long the lists are.
#[derive(Clone, Copy, Debug)]
pub struct OverviewOptions {
    /// Classes.
    pub classes: usize,
}

impl Default for OverviewOptions {
    fn default() -> Self {
        OverviewOptions { classes: 15 }
    }
}

/// Facts about the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Version string of the file.
    pub format: String,
    /// Width of ids in bytes.
    pub id_size: u32,
    /// When the dump was written, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Size of the file in bytes, decompressed.
    pub bytes: u64,
    /// Version of the JVM, from its system properties; absent if the dump does not have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jvm: Option<String>,
    /// Objects by kind.
    pub objects: ObjectCounts,
    /// Number of reachable objects.
    pub reachable_objects: u64,
    /// Sum of their shallow sizes.
    pub reachable_shallow: Bytes,
    /// Sum of the shallow sizes of all objects.
    pub shallow: Bytes,
    /// Number of classes in the dump.
    pub classes: u64,
    /// Number of class loaders, including the boot loader.
    pub loaders: u64,
    /// Number of threads.
    pub threads: u64,
    /// Number of root records.
    pub roots: u64,
    /// Number of parked virtual threads whose stacks are not in the dump. Objects that only these stacks refer to count
    /// as unreachable. 0 if the dump is read from memory, because it has these references.
    pub parked_virtual_threads: u64,
}

/// The first screen about a dump.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// Facts about the file.
    pub facts: Facts,
    /// Classes by retained size, largest first.
    pub classes: Histogram,
    /// The largest objects at the top of the dominator tree.
    pub objects: Vec<BigObject>,
    /// The first leak suspects.
    pub leaks: Leaks,
    /// Number of suspects that were left out.
    pub omitted_suspects: u64,
}

/// Facts about the file.
pub fn facts(heap: &Heap) -> Facts {
    let summary = heap.summary();
    let mut loaders: Vec<_> = heap.classes().iter().map(|c| c.loader).collect();
    loaders.sort_unstable();
    loaders.dedup();
    Facts {
        format: summary.format.clone(),
        id_size: summary.id_size,
        timestamp_ms: summary.timestamp_ms,
        bytes: summary.bytes,
        jvm: jvm(heap),
        objects: summary.objects,
        reachable_objects: summary.reachable_objects,
        reachable_shallow: summary.reachable_shallow,
        shallow: summary.shallow,
        classes: heap.classes().iter().filter(|c| c.dumped).count() as u64,
        loaders: loaders.len() as u64,
        threads: heap.threads().len() as u64,
        roots: summary.gc_roots.values().sum(),
        parked_virtual_threads: summary.unknown_virtual_threads(),
    }
}

fn jvm(heap: &Heap) -> Option<String> {
    let properties = crate::tables::properties::properties(heap).properties;
    let value = |name: &str| {
        properties
            .iter()
            .find(|p| p.name == name)
            .map(|p| p.value.clone())
    };
    let version = value("java.vm.version").or_else(|| value("java.version"))?;
    Some(match value("java.vm.name") {
        Some(name) => format!("{name} {version}"),
        None => version,
    })
}

/// Puts the first screen together.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels.
pub fn overview(
    heap: &Heap,
    options: &OverviewOptions,
    control: &Control<'_>,
) -> Result<Overview, HeapError> {
    let classes = histogram(
        heap,
        &HistogramOptions {
            top: Some(options.classes),
            ..HistogramOptions::default()
        },
    )?;
    let mut leaks = find(heap, &LeakOptions::default(), control)?;
    let omitted_suspects = cut(&mut leaks.suspects, Some(SUSPECTS));
    Ok(Overview {
        facts: facts(heap),
        classes,
        objects: largest_objects(heap, OBJECTS),
        leaks,
        omitted_suspects,
    })
}
