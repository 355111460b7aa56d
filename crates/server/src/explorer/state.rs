//! A dump for the pages: its heap once it is open, what was computed of it, and how far the opening is.

use super::history::History;
use super::later::Later;
use super::notes::Notes;
use super::recent::Recent;
use crate::reply::Written;
use heap_analysis::sets::selection::Selection;
use heap_analysis::tables::group::GroupBy;
use heap_analysis::tables::histogram::{Histogram, Total};
use heap_graph::{Control, Heap, Mapping, Options, Progress, QuickHistogram};
use heap_query::Session;
use live_session::dumps::opened::OpenDump;
use requests::{Fault, Stage};
use serde::Serialize;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::watch;

/// The state that pages follow: `tenure.state/1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct State {
    /// Name of the schema.
    pub schema: &'static str,
    /// File name of the dump.
    pub file: String,
    /// How far it is.
    pub stage: Stage,
    /// What is being done, if anything.
    pub phase: Option<&'static str>,
    /// Units of the phase that are done.
    pub done: u64,
    /// Units of the phase; 0 when unknown.
    pub total: u64,
    /// True when the histogram can be requested, without retained sizes.
    pub quick: bool,
    /// True when part of the file could not be read.
    pub damaged: bool,
    /// True for a dump of Android.
    pub android: bool,
    /// File name of the dump to compare with, if there is one.
    pub base: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

/// A set with its sums.
pub(super) struct Chosen {
    pub(super) objects: Arc<Selection>,
    pub(super) total: Total,
}

/// Which set: its text, and whether unreachable objects count.
pub(super) type SetKey = (String, bool);

/// The names that ProGuard or R8 changed.
#[derive(Clone, Debug)]
pub struct Renaming {
    /// The mapping file.
    pub file: PathBuf,
    /// Its contents.
    pub mapping: Mapping,
}

/// An opened dump, or one that is being opened.
pub struct Explorer {
    pub(super) path: PathBuf,
    pub(super) options: Options,
    pub(super) mapping: Option<Renaming>,
    pub(super) cancel: AtomicBool,
    pub(super) state: watch::Sender<State>,
    pub(super) heap: OnceLock<Arc<Heap>>,
    pub(super) base: OnceLock<PathBuf>,
    /// The heap of `base`, opened when it is first requested.
    pub(super) base_heap: Mutex<Option<Arc<Heap>>>,
    pub(super) quick: OnceLock<QuickHistogram>,
    /// What the user wrote about this dump.
    pub notes: Notes,
    /// What the user asked.
    pub history: History,
    pub(super) queries: OnceLock<Session>,
    pub(super) running_queries: AtomicUsize,
    pub(super) answers: Recent<String, Written>,
    pub(super) histograms: Recent<(GroupBy, bool), Histogram>,
    pub(super) sets: Recent<SetKey, Chosen>,
    pub(super) later: Later,
}

impl std::fmt::Debug for Explorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Explorer")
            .field("path", &self.path)
            .finish()
    }
}

pub(super) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

impl Explorer {
    /// How many queries run now.
    pub fn running_queries(&self) -> usize {
        self.running_queries.load(Ordering::Relaxed)
    }

    /// Names an earlier dump of the same program, which is opened when the two are compared first. The first one named counts.
    pub fn compare_with(&self, base: &Path) {
        if self.base.set(base.to_owned()).is_ok() {
            let name = file_name(base);
            self.state.send_modify(|state| state.base = Some(name));
        }
    }

    /// The dump to compare with.
    pub(super) fn base(&self) -> Option<&Path> {
        self.base.get().map(PathBuf::as_path)
    }

    /// Its file name and its heap.
    pub(super) fn base_heap(&self) -> Result<(String, Arc<Heap>), Fault> {
        let base = self.base().ok_or_else(|| {
            Fault::bad("there is no dump to compare with: open the later one with --base EARLIER")
        })?;
        let mut opened = self
            .base_heap
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(heap) = &*opened {
            return Ok((file_name(base), Arc::clone(heap)));
        }
        let control = Control {
            progress: &|_| {},
            cancel: &self.cancel,
        };
        let mut heap = Heap::open(base, &self.options, &control)?;
        if let Some(renaming) = &self.mapping {
            heap.rename(&renaming.mapping);
        }
        let heap = Arc::new(heap);
        *opened = Some(Arc::clone(&heap));
        Ok((file_name(base), heap))
    }

    /// The present state, and how to follow it.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Stops what is being built and computed, within milliseconds.
    pub fn close(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.later.close();
    }

    /// The file as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The heap, once it is open.
    pub fn heap(&self) -> Result<&Arc<Heap>, Fault> {
        self.heap.get().ok_or_else(|| {
            let state = self.state.borrow();
            match &state.error {
                Some(error) => Fault::failed(error.clone()),
                None => Fault::not_ready("the index is being built"),
            }
        })
    }

    /// The heap, once referrers are known too.
    pub fn heap_with_referrers(&self) -> Result<&Arc<Heap>, Fault> {
        let heap = self.heap()?;
        if self.referrers_known() {
            Ok(heap)
        } else {
            Err(Fault::not_ready("the referrers are being collected"))
        }
    }

    /// True when inbound references can be requested without a pass over the file.
    pub fn referrers_known(&self) -> bool {
        self.state.borrow().stage == Stage::Ready
    }

    /// The histogram of the first pass, if there was one.
    pub fn quick(&self) -> Option<&QuickHistogram> {
        self.quick.get()
    }

    pub(super) fn fail(&self, message: &str) {
        self.state.send_modify(|state| {
            state.stage = Stage::Failed;
            state.phase = None;
            state.error = Some(message.to_owned());
        });
    }

    pub(super) fn progress(&self, progress: Progress) {
        self.state.send_modify(|state| {
            state.phase = Some(progress.phase);
            state.done = progress.done;
            state.total = progress.total;
        });
    }
}

impl OpenDump for Explorer {
    fn heap(&self) -> Result<&Arc<Heap>, Fault> {
        Explorer::heap(self)
    }

    fn stage(&self) -> Stage {
        self.state.borrow().stage
    }

    fn compare_with(&self, before: &Path) {
        Explorer::compare_with(self, before);
    }

    fn close(&self) {
        Explorer::close(self);
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
