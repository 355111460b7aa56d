//! Counts of the records and objects in the file.

use heap_graph::{Heap, ObjectCounts};
use hprof::Bytes;
use serde::Serialize;
use std::collections::BTreeMap;

/// Reachable objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reachable {
    /// Number.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
}

/// An Android heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AndroidHeap {
    /// Number of objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
}

/// The numbers of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileSummary {
    /// Version string.
    pub format: String,
    /// Width of ids in bytes.
    pub id_size: u32,
    /// Milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Bytes of the decoded file.
    pub bytes: u64,
    /// Which snapshot of the file, from 1.
    pub snapshot: u32,
    /// Number of snapshots in the file.
    pub snapshots: u32,
    /// Top-level records by name.
    pub records: BTreeMap<String, u64>,
    /// Sub-records by tag.
    pub sub_records: BTreeMap<String, u64>,
    /// Root records by kind.
    pub gc_roots: BTreeMap<String, u64>,
    /// Root records whose object is not in the dump.
    pub dangling_roots: u64,
    /// Object ids that occur more than once.
    pub duplicate_objects: u64,
    /// Objects by kind.
    pub objects: ObjectCounts,
    /// Size of all objects.
    pub shallow: Bytes,
    /// The objects that roots reach.
    pub reachable: Reachable,
    /// Android heaps.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub heaps: BTreeMap<String, AndroidHeap>,
    /// Parked virtual threads whose stacks the dump does not have.
    pub parked_virtual_threads: u64,
    /// Bytes that belong to no readable record.
    pub skipped_bytes: u64,
}

/// Summarizes a file without a heap dump: a profile of the JDK's agent, or a dump that was cut before its heap.
pub fn without_heap(map: &hprof::FileMap, bytes: u64) -> FileSummary {
    let name = |tag: u8| {
        hprof::RecordTag::from_u8(tag)
            .map_or_else(|| format!("0x{tag:02x}"), |t| t.name().to_owned())
    };
    FileSummary {
        format: map.header.format.clone(),
        id_size: map.header.id_size.bytes() as u32,
        timestamp_ms: map.header.timestamp_ms,
        bytes,
        records: map.records.iter().map(|(t, n)| (name(*t), *n)).collect(),
        skipped_bytes: map.skipped,
        ..FileSummary::default()
    }
}

/// Sums up a dump.
pub fn summary(heap: &Heap) -> FileSummary {
    let s = heap.summary();
    FileSummary {
        format: s.format.clone(),
        id_size: s.id_size,
        timestamp_ms: s.timestamp_ms,
        bytes: s.bytes,
        snapshot: s.snapshot.0,
        snapshots: s.snapshot.1,
        records: s.records.clone(),
        sub_records: s.sub_records.clone(),
        gc_roots: s.gc_roots.clone(),
        dangling_roots: s.dangling_roots,
        duplicate_objects: s.duplicate_objects,
        objects: s.objects,
        shallow: s.shallow,
        reachable: Reachable {
            objects: s.reachable_objects,
            shallow: s.reachable_shallow,
        },
        heaps: s
            .heaps
            .iter()
            .map(|(name, (objects, shallow))| {
                let heap = AndroidHeap {
                    objects: *objects,
                    shallow: *shallow,
                };
                (name.clone(), heap)
            })
            .collect(),
        parked_virtual_threads: s.parked_virtual_threads,
        skipped_bytes: s.skipped,
    }
}
