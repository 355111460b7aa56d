//! From a file to an opened heap, on a thread of its own: progress, the quick histogram while the
//! index is being built, and afterwards the work that makes the first click fast.

use super::history::History;
use super::later::Later;
use super::notes::Notes;
use super::params::Params;
use super::prepared;
use super::query;
use super::recent::Recent;
use super::views;
use crate::reply::{Fault, Form, Written};
use heap_analysis::sets::selection::Selection;
use heap_analysis::tables::group::GroupBy;
use heap_analysis::tables::histogram::{Histogram, Total};
use heap_graph::{Control, Heap, HeapError, Mapping, ObjIdx, Options, Progress, QuickHistogram};
use heap_query::Session;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use tokio::sync::watch;

/// How far the opening is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Reading the file.
    #[default]
    Opening,
    /// Every question is answered, except those that need the referrers.
    Indexed,
    /// Every question is answered.
    Ready,
    /// The file cannot be used.
    Failed,
}

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
    /// True when the histogram can be asked for, without retained sizes.
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
    pub(super) objects: Selection,
    pub(super) total: Total,
}

/// Which set: its text, and whether unreachable objects count.
pub(super) type SetKey = (String, bool);

/// An opened dump, or one that is being opened.
pub struct Explorer {
    path: PathBuf,
    options: Options,
    mapping: Option<Mapping>,
    cancel: AtomicBool,
    state: watch::Sender<State>,
    heap: OnceLock<Arc<Heap>>,
    base: OnceLock<PathBuf>,
    /// The heap of `base`, opened when it is first asked for.
    base_heap: Mutex<Option<Arc<Heap>>>,
    quick: OnceLock<QuickHistogram>,
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

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

impl Explorer {
    /// How many queries run now.
    pub fn running_queries(&self) -> usize {
        self.running_queries.load(Ordering::Relaxed)
    }

    /// Begins to open a dump and returns at once.
    pub fn open(path: &Path, options: Options) -> Arc<Explorer> {
        Explorer::open_renamed(path, options, None)
    }

    /// As [`open`](Self::open), with the names of a mapping file in place of those in the dump.
    pub fn open_renamed(path: &Path, options: Options, mapping: Option<Mapping>) -> Arc<Explorer> {
        let state = State {
            schema: "tenure.state/1",
            file: file_name(path),
            ..State::default()
        };
        let explorer = Arc::new(Explorer {
            notes: Notes::beside(path, options.cache_dir.as_deref()),
            history: History::beside(path, options.cache_dir.as_deref()),
            queries: OnceLock::new(),
            running_queries: AtomicUsize::new(0),
            path: path.to_owned(),
            options,
            mapping,
            cancel: AtomicBool::new(false),
            state: watch::channel(state).0,
            heap: OnceLock::new(),
            base: OnceLock::new(),
            base_heap: Mutex::new(None),
            quick: OnceLock::new(),
            answers: Recent::new(64 << 20),
            histograms: Recent::new(64 << 20),
            sets: Recent::new(256 << 20),
            later: Later::default(),
        });
        let worker = Arc::clone(&explorer);
        let spawned = std::thread::Builder::new()
            .name("tenure-open".to_owned())
            .spawn(move || worker.work());
        if let Err(error) = spawned {
            explorer.fail(&error.to_string());
        }
        explorer
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
        let mut heap = Heap::open(base, &self.options, &self.control())?;
        if let Some(mapping) = &self.mapping {
            heap.rename(mapping);
        }
        let heap = Arc::new(heap);
        *opened = Some(Arc::clone(&heap));
        Ok((file_name(base), heap))
    }

    /// The present state, and how to follow it.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Stops what is being built, within milliseconds.
    pub fn close(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Control of work for an answer: it stops when the explorer is closed.
    pub(super) fn control(&self) -> Control<'_> {
        Control {
            progress: &|_| {},
            cancel: &self.cancel,
        }
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

    /// True when inbound references can be asked for without a pass over the file.
    pub fn referrers_known(&self) -> bool {
        self.state.borrow().stage == Stage::Ready
    }

    /// The histogram of the first pass, if there was one.
    pub fn quick(&self) -> Option<&QuickHistogram> {
        self.quick.get()
    }

    /// Answers a question; a query stops when `cancel` becomes true.
    pub(crate) fn answer(
        self: &Arc<Self>,
        view: &str,
        params: &Params,
        form: Form,
        cancel: Arc<AtomicBool>,
    ) -> Result<Arc<Written>, Fault> {
        let answer = match query::answer(self, view, params, form, cancel) {
            Some(answer) => answer.map(Arc::new),
            None if form == Form::Json && params.flag("soon") => views::soon(self, view, params),
            None => views::answer(self, view, params, form),
        };
        if let Some(heap) = self.heap.get() {
            heap.check().map_err(|e| Fault::failed(e.to_string()))?;
        }
        answer
    }

    fn fail(&self, message: &str) {
        self.state.send_modify(|state| {
            state.stage = Stage::Failed;
            state.phase = None;
            state.error = Some(message.to_owned());
        });
    }

    fn progress(&self, progress: Progress) {
        self.state.send_modify(|state| {
            state.phase = Some(progress.phase);
            state.done = progress.done;
            state.total = progress.total;
        });
    }

    fn work(&self) {
        match self.open_heap() {
            Ok(mut heap) => {
                if let Some(mapping) = &self.mapping {
                    heap.rename(mapping);
                }
                let damaged = heap.summary().diagnostics.any_damage();
                let android = !heap.summary().heaps.is_empty();
                // The cell is empty: only this thread fills it.
                let _ = self.heap.set(Arc::new(heap));
                self.state.send_modify(|state| {
                    state.stage = Stage::Indexed;
                    state.phase = None;
                    state.damaged = damaged;
                    state.android = android;
                });
                self.prepare();
            }
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Opens the heap. When that turns out to be work, the quick histogram is made beside it.
    fn open_heap(&self) -> Result<Heap, HeapError> {
        let (begun, begins) = mpsc::channel();
        std::thread::scope(|scope| {
            let opening = scope.spawn(move || {
                let said = AtomicBool::new(false);
                let progress = |progress: Progress| {
                    if !said.swap(true, Ordering::Relaxed) {
                        // Nobody listens when the dump is standard input.
                        let _ = begun.send(());
                    }
                    self.progress(progress);
                };
                let control = Control {
                    progress: &progress,
                    cancel: &self.cancel,
                };
                Heap::open(&self.path, &self.options, &control)
            });
            // Standard input and pipes can be read only once.
            if self.path.is_file() && begins.recv().is_ok() {
                self.count();
            }
            opening.join().unwrap_or(Err(HeapError::Cancelled))
        })
    }

    fn count(&self) {
        let control = Control {
            progress: &|_| {},
            cancel: &self.cancel,
        };
        // A fault shows in the opening as well, and is said there.
        if let Ok(mut quick) = heap_graph::quick_histogram(&self.path, &self.options, &control) {
            for row in &mut quick.rows {
                let renamed = self.mapping.as_ref().and_then(|m| m.class(&row.name));
                row.name = renamed.unwrap_or_else(|| std::mem::take(&mut row.name));
            }
            let _ = self.quick.set(quick);
            self.state.send_modify(|state| state.quick = true);
        }
    }

    /// The referrers, and the answers that every visit begins with.
    fn prepare(&self) {
        let Some(heap) = self.heap.get() else {
            return;
        };
        let control = Control {
            progress: &|progress| self.progress(progress),
            cancel: &self.cancel,
        };
        let done = if heap.is_empty() {
            Ok(Vec::new())
        } else {
            heap.inbound_with(ObjIdx(0), &control)
        };
        if let Err(error) = done {
            // Without referrers everything else can still be asked.
            self.state.send_modify(|state| {
                state.phase = None;
                state.error = Some(error.to_string());
            });
            return;
        }
        self.state.send_modify(|state| {
            state.stage = Stage::Ready;
            state.phase = Some("first answers");
            state.done = 0;
            state.total = views::PREPARED.len() as u64;
        });
        let kept = self.mapping.is_none() && prepared::recall(self, heap);
        for (n, (view, query)) in views::PREPARED.iter().enumerate() {
            if self.cancel.load(Ordering::Relaxed) {
                return;
            }
            // What fails here fails again, and is said, when it is asked for.
            let _ = views::answer(self, view, &Params::parse(query), Form::Json);
            self.state.send_modify(|state| state.done = n as u64 + 1);
        }
        if self.mapping.is_none() && !kept {
            prepared::keep(self, heap);
        }
        self.state.send_modify(|state| state.phase = None);
    }
}
