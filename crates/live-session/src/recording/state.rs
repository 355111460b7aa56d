//! One watched program: all its data, and access to it. The operations on it are in other files that implement more of
//! [`Live`].

use super::asking::Asking;
use super::class_filters::Chosen;
use super::program::{Commands, Program};
use super::recorded::Recorded;
use super::status::Status;
use crate::clock::now_ms;
use crate::dumps::list::Dumps;
use crate::persist::journal_state::Past;
use crate::persist::saved_tables::SavedTables;
use live_analysis::metrics::{METRICS, MetricInfo, Row};
use live_analysis::sampler::Memory;
use live_analysis::timeline::{Collections, Event, EventKind};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio::sync::watch;

/// Metrics of the timeline with rows and events: `tenure.live.timeline/1`.
#[derive(Clone, Debug, Serialize)]
pub struct TimelineAnswer {
    /// Name of the schema.
    pub schema: &'static str,
    /// What the values of a row are.
    pub metrics: &'static [MetricInfo],
    /// Rows.
    pub rows: Vec<Row>,
    /// Events in the range.
    pub events: Vec<Event>,
}

/// A watched program.
pub struct Live {
    pub(crate) program: Arc<dyn Program>,
    /// The timeline, and the journal that stores the history. Locked after `recorded`, if both are locked.
    pub(crate) past: Mutex<Past>,
    pub(crate) recorded: RwLock<Recorded>,
    pub(crate) commands: Mutex<Option<Arc<Commands>>>,
    /// The last values of memory by category.
    pub(crate) memory: Mutex<Memory>,
    /// Whether memory by category should be read before the next regular time.
    pub(crate) memory_wanted: AtomicBool,
    /// Its heap dumps.
    pub dumps: Dumps,
    /// Its saved tables of classes.
    pub saved_tables: SavedTables,
    /// The class filters.
    pub rules: Chosen,
    /// Folders in which sources of its frames are searched.
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) interval_ms: AtomicU64,
    /// Locked during a command, so that only one runs at a time.
    pub(crate) turn: Mutex<()>,
    /// How many snapshots of the sites the connected agent will have sent when all requested ones have been received.
    pub(crate) sites_asked: Mutex<u64>,
    /// How often the agent will have sent CPU samples when all requested ones have been received.
    pub(crate) samples_asked: Mutex<u64>,
    /// How many users need CPU samples now: the page, and measurements.
    pub(crate) samples_wanted: Mutex<u32>,
    /// Locked during a measurement, so that only one runs at a time.
    pub(crate) measuring: Mutex<()>,
    /// How often measurements were ended early.
    pub(crate) finished: AtomicU64,
    /// Locked during a request about objects, so that only one runs at a time.
    pub(crate) asking: Mutex<Asking>,
    pub(crate) stop: AtomicBool,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("pid", &self.program.pid())
            .finish_non_exhaustive()
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// Runs `work` on a separate thread.
    pub(crate) fn thread(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce(&Arc<Live>) + Send + 'static,
    ) {
        let live = Arc::clone(self);
        let spawned = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&live));
        if let Err(error) = spawned {
            self.fail(&error.to_string());
        }
    }

    /// Stops monitoring; the program continues.
    pub fn close(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.dumps.close();
    }

    /// The current status, and a way to wait for changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// The program.
    pub fn program(&self) -> &dyn Program {
        &*self.program
    }

    /// Folders below which sources of frames are searched.
    pub fn sources(&self) -> &[PathBuf] {
        &self.sources
    }

    /// Rows and events from `from` to `to`.
    pub fn timeline(
        &self,
        from: u64,
        to: u64,
        points: usize,
        after: Option<u64>,
    ) -> TimelineAnswer {
        let timeline = &locked(&self.past).timeline;
        TimelineAnswer {
            schema: "tenure.live.timeline/1",
            metrics: &METRICS,
            rows: timeline.rows(from, to, points),
            events: timeline.events(from, to, after),
        }
    }

    /// All garbage collections since the program was first watched.
    pub fn collections(&self) -> Collections {
        locked(&self.past).timeline.collections()
    }

    /// Reads the data received from the agent.
    pub fn recorded<T>(&self, look: impl FnOnce(&Recorded) -> T) -> T {
        look(&self.recorded.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn recorded_mut<T>(&self, change: impl FnOnce(&mut Recorded) -> T) -> T {
        change(
            &mut self
                .recorded
                .write()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    pub(crate) fn fail(&self, message: &str) {
        self.status
            .send_modify(|status| status.error = Some(message.to_owned()));
    }

    pub(crate) fn alive(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && !self.status.borrow().ended
    }

    /// Adds a marker to the timeline.
    pub fn mark(&self, text: impl Into<String>) {
        let kind = EventKind::Marker { text: text.into() };
        let id = locked(&self.past).mark(now_ms(), kind);
        self.status
            .send_modify(|status| status.last_event = Some(id));
    }

    /// Runs a lengthy command while no other one runs, and shows it on the pages as in progress.
    pub(crate) fn busy<T>(
        &self,
        what: &str,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let _turn = locked(&self.turn);
        if self.status.borrow().ended {
            return Err("the program has ended".to_owned());
        }
        self.status.send_modify(|status| {
            status.busy = Some(what.to_owned());
            status.error = None;
        });
        let done = work();
        self.status.send_modify(|status| {
            status.busy = None;
            status.error = done.as_ref().err().cloned();
        });
        done
    }

    /// Sets the function that sends commands to the connected agent; `None` when the agent is gone.
    pub(crate) fn set_commands(&self, commands: Option<Commands>) {
        if commands.is_some() {
            *locked(&self.sites_asked) = 0;
            *locked(&self.samples_wanted) = 0;
            *locked(&self.samples_asked) = self.recorded(|recorded| recorded.measured[0]);
        }
        self.status
            .send_if_modified(|status| std::mem::take(&mut status.cpu));
        *locked(&self.commands) = commands.map(Arc::new);
    }

    /// The function that sends commands to the connected agent.
    pub fn commands(&self) -> Option<Arc<Commands>> {
        locked(&self.commands).clone()
    }
}
