//! How a dump is opened, and how the caller follows and stops the work.

use crate::{LayoutModel, Strength};
use hprof::HeaderError;
use hprof::source::SourceError;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

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
    /// Bytes of memory for the arrays of a build; past it they go to temporary files.
    pub max_memory: Option<u64>,
    /// Worker threads; 0 for one per core.
    pub threads: usize,
    /// Use 64-bit numbers for objects even where 32 bits would do (for tests).
    pub wide: bool,
}

impl Options {
    pub(crate) fn thread_count(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        }
    }
}

/// A step of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub phase: &'static str,
    /// Units done (bytes of the dump or objects).
    pub done: u64,
    /// Units in all; 0 if unknown.
    pub total: u64,
}

/// Progress out, cancellation in.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Called from any worker thread, some ten times a second at most.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Set it to stop; the work ends with [`HeapError::Cancelled`] within milliseconds.
    pub cancel: &'a AtomicBool,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Control<'static> {
    /// Nobody listens and nobody cancels.
    pub fn quiet() -> Control<'static> {
        Control {
            progress: &|_| {},
            cancel: &NEVER,
        }
    }
}

impl Control<'_> {
    pub(crate) fn check(&self) -> Result<(), HeapError> {
        if self.cancel.load(Ordering::Relaxed) {
            Err(HeapError::Cancelled)
        } else {
            Ok(())
        }
    }

    pub(crate) fn report(&self, phase: &'static str, done: u64, total: u64) {
        (self.progress)(Progress { phase, done, total });
    }
}

/// Why a heap could not be opened or asked.
#[derive(Debug, Error)]
pub enum HeapError {
    /// The file could not be read or unpacked.
    #[error(transparent)]
    Source(#[from] SourceError),
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
        /// The one asked for.
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
    /// The caller stopped the work.
    #[error("stopped")]
    Cancelled,
    /// An object could not be read back from the dump.
    #[error("object {id} cannot be read at offset {offset} of the dump")]
    Object {
        /// The object.
        id: hprof::ObjectId,
        /// Where it should be.
        offset: u64,
    },
}

impl HeapError {
    /// True when the input, not the surroundings, is the reason.
    pub fn is_unusable_input(&self) -> bool {
        !matches!(self, HeapError::Io { .. } | HeapError::Cancelled)
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> HeapError {
        let what = what.into();
        move |error| HeapError::Io { what, error }
    }
}
