//! The history: collections, and how full arenas were.

use serde::Serialize;

/// One collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Collection {
    /// From 1.
    pub number: u32,
    /// `young`, `full`, or `unknown`: HotSpot does not report the kind.
    pub kind: &'static str,
    /// Bytes allocated by then.
    pub at_bytes: u64,
    /// Its start on the stream's clock, 0 if the stream has none.
    pub start_ns: u64,
    /// Its end likewise.
    pub end_ns: u64,
    /// Objects before.
    pub objects_before: u64,
    /// Bytes before.
    pub bytes_before: u64,
    /// Objects after.
    pub objects_after: u64,
    /// Bytes after.
    pub bytes_after: u64,
    /// Objects that were freed.
    pub freed_objects: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Moves.
    pub moves: u64,
    /// Bytes moved; an object that moves twice counts twice.
    pub moved_bytes: u64,
    /// Moves of an object that had moved in this collection before.
    pub moved_again: u64,
    /// Bytes moved from one arena into another.
    pub changed_arena_bytes: u64,
    /// Bytes in use at the end, as the VM reports.
    pub vm_used_bytes: u64,
    /// Bytes available for objects, as the VM reports.
    pub vm_total_bytes: u64,
}

impl Collection {
    /// Bytes moved per surviving byte.
    #[must_use]
    pub fn moved_to_live(&self) -> f64 {
        if self.bytes_after == 0 {
            0.0
        } else {
            self.moved_bytes as f64 / self.bytes_after as f64
        }
    }
}

/// How full each arena was at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Bytes allocated by then.
    pub at_bytes: u64,
    /// The stream's clock.
    pub ns: u64,
    /// Collections finished by then.
    pub collections: u32,
    /// Bytes of live and not yet collected objects by arena number.
    pub bytes: Vec<u64>,
    /// The value that the VM reported, or null, by arena number.
    pub vm_used: Vec<Option<u64>>,
}

/// The most samples and collections that are kept; when there are more, every second one is removed.
const SAMPLES: usize = 1024;
const COLLECTIONS: usize = 100_000;

/// The history.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) collections: Vec<Collection>,
    pub(crate) omitted_collections: u64,
    pub(crate) samples: Vec<Sample>,
    every: u64,
    next: u64,
}

impl Default for History {
    fn default() -> Self {
        Self {
            collections: Vec::new(),
            omitted_collections: 0,
            samples: Vec::new(),
            every: 4096,
            next: 0,
        }
    }
}

impl History {
    #[inline]
    pub(crate) fn is_due(&self, at_bytes: u64) -> bool {
        at_bytes >= self.next
    }

    pub(crate) fn sample(
        &mut self,
        at_bytes: u64,
        ns: u64,
        collections: u32,
        arenas: Vec<(u64, u64)>,
    ) {
        self.next = at_bytes.saturating_add(self.every);
        let vm_used = vec![None; arenas.len()];
        self.samples.push(Sample {
            at_bytes,
            ns,
            collections,
            bytes: arenas.into_iter().map(|(_, bytes)| bytes).collect(),
            vm_used,
        });
        if self.samples.len() > SAMPLES {
            let mut at = 0;
            self.samples.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every = self.every.saturating_mul(2);
        }
    }

    /// Reports how full an arena is, which applies to the last sample.
    pub(crate) fn reported_used(&mut self, arena: u32, used: u64) {
        if let Some(sample) = self.samples.last_mut()
            && let Some(place) = sample.vm_used.get_mut(arena as usize)
        {
            *place = Some(used);
        }
    }

    pub(crate) fn collection(&mut self, collection: Collection) {
        if self.collections.len() < COLLECTIONS {
            self.collections.push(collection);
        } else {
            self.omitted_collections += 1;
        }
    }
}
