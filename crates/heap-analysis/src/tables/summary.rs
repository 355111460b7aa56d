//! Counts of the records and objects in the file.

use super::validate::{Finding, findings};
use heap_graph::{Heap, ObjectCounts};
use hprof::Bytes;
use private_records::record_name;
use serde::Serialize;
use std::collections::BTreeMap;

/// Sums over the reachable objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reachable {
    /// Number of objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
}

/// Sums over the objects of an Android heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AndroidHeap {
    /// Number of objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
}

/// Totals of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileSummary {
    /// Version string of the file.
    pub format: String,
    /// Width of ids in bytes.
    pub id_size: u32,
    /// When the dump was written, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Size of the file in bytes, decompressed.
    pub bytes: u64,
    /// Number of this snapshot in the file, from 1.
    pub snapshot: u32,
    /// Number of snapshots in the file.
    pub snapshots: u32,
    /// Number of top-level records, by the name of their tag.
    pub records: BTreeMap<String, u64>,
    /// Number of sub-records of the snapshot, by tag (`0x21`).
    pub sub_records: BTreeMap<String, u64>,
    /// Number of root records by kind.
    pub gc_roots: BTreeMap<String, u64>,
    /// Number of root records whose object is not in the dump.
    pub dangling_roots: u64,
    /// Number of references of objects to objects that are not in the dump.
    pub dangling_references: u64,
    /// Number of object ids that occur more than once; only the first object with an id counts.
    pub duplicate_objects: u64,
    /// Objects by kind.
    pub objects: ObjectCounts,
    /// Sum of the shallow sizes of all objects.
    pub shallow: Bytes,
    /// The objects that are reachable from GC roots.
    pub reachable: Reachable,
    /// Android heaps by name; absent if the dump has none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub heaps: BTreeMap<String, AndroidHeap>,
    /// Number of parked virtual threads whose stacks are not in the dump.
    pub parked_virtual_threads: u64,
    /// Bytes that belong to no readable record.
    pub skipped_bytes: u64,
    /// Remarks about an archive with several dumps; JSON has them among the diagnostics.
    #[serde(skip)]
    pub archive: Vec<String>,
}

/// Summarizes a file without a heap dump: a profile of the JDK's agent, or a dump that was cut before its heap.
pub fn without_heap(map: &hprof::FileMap, bytes: u64) -> FileSummary {
    let records = map.records.iter();
    FileSummary {
        format: map.header.format.clone(),
        id_size: map.header.id_size.bytes() as u32,
        timestamp_ms: map.header.timestamp_ms,
        bytes,
        records: records.map(|(tag, n)| (record_name(*tag), *n)).collect(),
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
        dangling_references: s.dangling_references,
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
        archive: findings(s)
            .into_iter()
            .filter(Finding::is_about_archive)
            .map(|note| note.message)
            .collect(),
    }
}
