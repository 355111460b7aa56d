//! What an analysis of an opened heap may use of the memory limit.

use crate::index::spill_dir;
use crate::raw::give_large_pieces_back;
use crate::{Heap, HeapError};
use std::path::PathBuf;

/// The most parts that an analysis is divided into: each takes a walk over the dump or more.
const MOST_PARTS: u64 = 64;

impl Heap {
    /// Bytes that an analysis may use for data that grows with the heap; `None` without a limit.
    pub fn memory(&self) -> Option<u64> {
        let (limit, used) = self.options.analysis_limit()?;
        Some(limit.saturating_sub(used))
    }

    /// The folder for large temporary files: the cache folder that was requested, or that of the dump if it can be
    /// written.
    pub fn temporary_folder(&self) -> PathBuf {
        spill_dir(&self.path, &self.options)
    }

    /// The number of parts that work has to be divided into so that it stays within the memory limit: it uses `fixed`
    /// bytes for any part, and `all` bytes more if it is done at once.
    ///
    /// # Errors
    /// With the least limit, if there would be too many parts. `what` is the work: "the index".
    pub fn parts(&self, what: &'static str, fixed: u64, all: u64) -> Result<u64, HeapError> {
        self.parts_within(what, fixed, all, MOST_PARTS)
    }

    /// Checks that work that cannot be divided stays within the memory limit.
    ///
    /// # Errors
    /// As [`parts`](Self::parts).
    pub fn require_memory(&self, what: &'static str, bytes: u64) -> Result<(), HeapError> {
        self.parts_within(what, 0, bytes, 1).map(drop)
    }

    fn parts_within(
        &self,
        what: &'static str,
        fixed: u64,
        all: u64,
        most: u64,
    ) -> Result<u64, HeapError> {
        let Some((limit, used)) = self.options.analysis_limit() else {
            return Ok(1);
        };
        // What one part frees must not count beside the next.
        give_large_pieces_back();
        let left = limit.saturating_sub(used.saturating_add(fixed));
        let parts = all.div_ceil(left.max(1)).max(1);
        match parts <= most {
            true => Ok(parts),
            false => Err(HeapError::Memory {
                what,
                limit,
                least: used
                    .saturating_add(fixed)
                    .saturating_add(all.div_ceil(most)),
            }),
        }
    }
}
