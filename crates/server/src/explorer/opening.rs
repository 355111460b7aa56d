//! From a file to an opened heap, on a thread of its own: progress, the quick histogram while the
//! index is being built, and afterwards the work that makes the first click fast.

use super::history::History;
use super::later::Later;
use super::notes::Notes;
use super::recent::Recent;
use super::state::{Explorer, Renaming, State, file_name};
use super::{asking, describe, prepared, query};
use crate::reply::{Form, Written};
use heap_graph::{Control, Heap, HeapError, ObjIdx, Options, Progress};
use requests::Params;
use requests::{Fault, Stage};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use tokio::sync::watch;

impl Explorer {
    /// Begins to open a dump and returns at once.
    pub fn open(path: &Path, options: Options) -> Arc<Explorer> {
        Explorer::open_renamed(path, options, None)
    }

    /// As [`open`](Self::open), with the names of a mapping file in place of those in the dump.
    pub fn open_renamed(path: &Path, options: Options, mapping: Option<Renaming>) -> Arc<Explorer> {
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

    /// Answers a question. The work ends when `cancel` becomes true, unless others wait for the same answer.
    pub(crate) fn answer(
        self: &Arc<Self>,
        view: &str,
        params: &Params,
        form: Form,
        cancel: Arc<AtomicBool>,
    ) -> Result<Arc<Written>, Fault> {
        if let Some(view) = describe::named(view) {
            view.check(params)?;
        }
        let answer = match query::answer(self, view, params, form, Arc::clone(&cancel)) {
            Some(answer) => answer.map(Arc::new),
            None if form == Form::Json && params.flag("soon") => asking::soon(self, view, params),
            None => asking::answer(self, view, params, form, &cancel),
        };
        if let Some(heap) = self.heap.get() {
            heap.check().map_err(|e| Fault::failed(e.to_string()))?;
        }
        answer
    }

    fn work(self: &Arc<Self>) {
        match self.open_heap() {
            Ok(mut heap) => {
                if let Some(renaming) = &self.mapping {
                    heap.rename(&renaming.mapping);
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
                let printed = AtomicBool::new(false);
                let progress = |progress: Progress| {
                    if !printed.swap(true, Ordering::Relaxed) {
                        // No one listens when the dump is standard input.
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
        // A fault shows in the opening as well, and is reported there.
        if let Ok(mut quick) = heap_graph::quick_histogram(&self.path, &self.options, &control) {
            for row in &mut quick.rows {
                let renamed = self
                    .mapping
                    .as_ref()
                    .and_then(|it| it.mapping.class(&row.name));
                row.name = renamed.unwrap_or_else(|| std::mem::take(&mut row.name));
            }
            let _ = self.quick.set(quick);
            self.state.send_modify(|state| state.quick = true);
        }
    }

    /// The referrers, and the answers that every visit begins with.
    fn prepare(self: &Arc<Self>) {
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
            state.total = asking::PREPARED.len() as u64;
        });
        let kept = self.mapping.is_none() && prepared::recall(self, heap);
        for (n, (view, query)) in asking::PREPARED.iter().enumerate() {
            if self.cancel.load(Ordering::Relaxed) {
                return;
            }
            // What fails here fails again, and is reported, when it is requested.
            let _ = asking::answer(self, view, &Params::parse(query), Form::Json, &self.cancel);
            self.state.send_modify(|state| state.done = n as u64 + 1);
        }
        if self.mapping.is_none() && !kept {
            prepared::keep(self, heap);
        }
        self.state.send_modify(|state| state.phase = None);
    }
}
