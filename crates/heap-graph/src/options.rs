//! Options for opening a dump, and how the caller observes and cancels the work.

use crate::phases::private_memory;
use crate::{LayoutModel, Phases, Strength};
use hprof::HeaderError;
use hprof::source::{Cancelled, Changed, SourceError};
use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Memory of a build besides its arrays and the map of ids: small arrays, which stay in memory, and buffers.
const FIXED_MEMORY: u64 = 20 << 20;
/// Memory of an analysis besides what grows with the heap.
const ANALYSIS_MEMORY: u64 = 6 << 20;
/// The buffers of a worker thread.
const THREAD_MEMORY: u64 = 2 << 20;
/// So many bytes of a dump have one byte in the map of its ids.
const BYTES_PER_ID_MAP: u64 = 56;

/// Bytes that the map of ids usually has for so many bytes of a dump. If the ids are far apart it has more.
pub(crate) fn expected_id_map(input: u64) -> u64 {
    input / BYTES_PER_ID_MAP
}

/// How to open a dump.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Size model.
    pub layout: LayoutModel,
    /// Which referents count as references.
    pub strength: Strength,
    /// Which dump of the file, from 1; 0 takes the first.
    pub snapshot: u32,
    /// Folder for index and temporary files; `None`: beside the dump, or the user's cache folder
    /// when that cannot be written.
    pub cache_dir: Option<PathBuf>,
    /// Neither read nor write an index file.
    pub no_index: bool,
    /// Bytes of memory for the arrays of a build; arrays beyond that go to temporary files.
    pub max_memory: Option<u64>,
    /// Bytes of memory that the process may use: the arrays of a build get what the rest of the build leaves, and an
    /// analysis gets what the process leaves. What needs more is refused.
    pub total_memory: Option<u64>,
    /// Bytes that an analysis of the opened heap may use, instead of what `total_memory` leaves. What needs more is refused.
    pub analysis_memory: Option<u64>,
    /// Worker threads; 0 for one per core.
    pub threads: usize,
    /// What the analyses of the opened heap must know besides the dump. They get it by its type with
    /// [`Heap::attached`](crate::Heap::attached).
    pub attached: Option<Arc<dyn Any + Send + Sync>>,
    /// When the work is done in another way; for tests.
    pub tuning: Tuning,
    /// Records what each phase of a build costs.
    pub phases: Phases,
}

/// From which sizes on a heap is read and built in another way. The answers do not depend on it: tests use small values,
/// so that small heaps take every way. Sizes that an inner loop compares with stay constants; they are so small that a
/// heap of 100,000 objects exceeds them: the window of references, the blocks of tapes, pairs, facts and columns, and
/// the chunks of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Number of elements from which on arrays and sequences that are not read soon go to temporary files; at least 1.
    pub in_file: u64,
    /// Number of elements above which an array of references is written without the window.
    pub long_array: usize,
    /// Bytes of rows of references that a worker takes at a time.
    pub row_block: u64,
    /// Number of values per block of the stacks of the search. Each has two blocks in memory, the rest is in a file.
    pub stack_block: usize,
    /// Bytes of a segment after which a pass leaves a checkpoint, where the next pass divides the segment.
    pub checkpoint: u64,
    /// Bytes up to which a segment is copied into a buffer; longer ones are read from the mapping of the file.
    pub copied: u64,
    /// Bytes above which a walk over the contents divides a segment.
    pub divided: u64,
    /// Bytes that a step of a walk over the contents reads.
    pub content_step: u64,
    /// Whether numbers of objects have 40 bits even if 32 bits are sufficient.
    pub wide: bool,
    /// Whether numbers of sizes have 40 bits even if the width of object numbers is sufficient.
    pub wide_sizes: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            in_file: 2 << 20,
            long_array: 2048,
            row_block: 1 << 16,
            stack_block: 1 << 13,
            checkpoint: 8 << 20,
            // What is copied stays in the cache.
            copied: 3 << 19,
            divided: 32 << 20,
            content_step: 128 << 10,
            wide: false,
            wide_sizes: false,
        }
    }
}

impl Options {
    pub(crate) fn thread_count(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        }
    }

    /// Bytes of memory for the arrays of a build whose input has so many bytes.
    ///
    /// # Errors
    /// With the least limit, if nothing is left for them.
    pub(crate) fn array_memory(&self, input: u64) -> Result<Option<u64>, HeapError> {
        let Some(limit) = self.total_memory else {
            return Ok(self.max_memory);
        };
        let threads = THREAD_MEMORY * self.thread_count() as u64;
        let least = private_memory() + FIXED_MEMORY + threads + expected_id_map(input);
        match limit.checked_sub(least) {
            Some(left) => Ok(Some(left)),
            None => Err(HeapError::Memory {
                what: "the index",
                limit,
                least,
            }),
        }
    }

    /// The limit that an analysis of the opened heap has to keep, and the bytes of it that are in use already.
    pub(crate) fn analysis_limit(&self) -> Option<(u64, u64)> {
        if let Some(limit) = self.analysis_memory {
            return Some((limit, 0));
        }
        let threads = THREAD_MEMORY * self.thread_count() as u64;
        let limit = self.total_memory?;
        Some((limit, private_memory() + ANALYSIS_MEMORY + threads))
    }
}

/// Why a heap could not be opened or queried.
#[derive(Debug, Error)]
pub enum HeapError {
    /// The file could not be read or unpacked.
    #[error(transparent)]
    Source(SourceError),
    /// The file is not a dump.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The file has no heap dump in it (an agent's profile, or cut before the heap).
    #[error("{path} has no heap dump in it: {found}")]
    NoHeap {
        /// The file.
        path: String,
        /// What it has.
        found: String,
    },
    /// There are fewer dumps in the file.
    #[error("{path} has {found} heap dump(s), so there is no #{wanted}")]
    NoSnapshot {
        /// The file.
        path: String,
        /// Dumps in it.
        found: u32,
        /// The one requested.
        wanted: u32,
    },
    /// Reading or writing a temporary or index file failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        error: io::Error,
    },
    /// The memory limit is too small.
    #[error("--max-memory: {} is too little, {what} of this dump needs about {}M", size(*limit), least.div_ceil(1 << 20))]
    Memory {
        /// What does not fit.
        what: &'static str,
        /// Bytes that were allowed.
        limit: u64,
        /// Bytes that are needed.
        least: u64,
    },
    /// The caller cancelled the work.
    #[error("cancelled")]
    Cancelled,
    /// The dump or its index changed while it was read, so results are not valid.
    #[error("{path}: {why}; run the command again when the file is at rest")]
    Changed {
        /// The dump.
        path: String,
        /// What happened.
        why: Changed,
    },
    /// An object could not be read back from the dump.
    #[error("object {id} cannot be read at offset {offset} of the dump")]
    Object {
        /// The object.
        id: hprof::ObjectId,
        /// Where it should be.
        offset: u64,
    },
}

/// A size as it is given on the command line.
fn size(bytes: u64) -> String {
    let mut units = [("G", 30), ("M", 20), ("K", 10)].into_iter();
    match units.find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift)) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

impl From<SourceError> for HeapError {
    fn from(error: SourceError) -> HeapError {
        match error {
            SourceError::Cancelled => HeapError::Cancelled,
            error => HeapError::Source(error),
        }
    }
}

impl From<Cancelled> for HeapError {
    fn from(_: Cancelled) -> HeapError {
        HeapError::Cancelled
    }
}

impl HeapError {
    /// True if the input is the reason, and not the environment.
    pub fn is_unusable_input(&self) -> bool {
        !matches!(
            self,
            HeapError::Io { .. } | HeapError::Memory { .. } | HeapError::Cancelled
        )
    }

    /// True if a disk for temporary files is full.
    pub(crate) fn is_full_disk(&self) -> bool {
        match self {
            HeapError::Io { error, .. } | HeapError::Source(SourceError::Spill { error, .. }) => {
                is_full_disk(error)
            }
            _ => false,
        }
    }

    /// Names the folder of the temporary files, if the reason is that its disk is full.
    pub(crate) fn with_folder(self, dir: &std::path::Path) -> HeapError {
        match self {
            HeapError::Io { what, error } if is_full_disk(&error) => {
                let dir = dir.display();
                HeapError::Io {
                    what: format!(
                        "{what}: temporary files in {dir} (--cache-dir names another folder)"
                    ),
                    error,
                }
            }
            other => other,
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> HeapError {
        let what = what.into();
        move |error| HeapError::Io { what, error }
    }
}

/// True if nothing more can be written: the disk is full, or the user's share of it.
pub(crate) fn is_full_disk(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_its_folder_and_other_errors_stay_as_they_are() {
        let dir = std::path::Path::new("/var/tmp/here");
        let failed = |kind: io::ErrorKind| {
            let error = HeapError::io("search")(kind.into());
            error.with_folder(dir).to_string()
        };
        let full = failed(io::ErrorKind::StorageFull);
        assert!(
            full.starts_with("search: ")
                && full.contains("/var/tmp/here")
                && full.contains("--cache-dir"),
            "{full}"
        );
        let other = failed(io::ErrorKind::UnexpectedEof);
        assert!(!other.contains("/var/tmp/here"), "{other}");
    }
}
