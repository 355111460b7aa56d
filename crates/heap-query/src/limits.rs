//! Limits of a query, and how it is stopped.

use crate::cell::Cut;
use crate::error::QueryError;
use heap_graph::{Control, HeapError, Progress};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The limits of a query.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most rows; `None` for all.
    pub rows: Option<usize>,
    /// The longest time; the rows found until then are the result.
    pub time: Option<Duration>,
    /// Bytes of memory for each of: a row, the rows that are collected, and the values of JavaScript. At most half of
    /// what the memory limit of the heap leaves, but 16 MiB in any case.
    pub memory: u64,
    /// Bytes of temporary files.
    pub temporary: u64,
    /// Set it from any thread to stop the query within milliseconds.
    pub cancel: Arc<AtomicBool>,
    /// Receives the progress of the query.
    pub watch: Option<Watch>,
}

/// Receives, from any thread, the progress of the outermost scan of a query, or of the pass over the dump that it
/// needs first. A query may report several such phases in succession.
#[derive(Clone)]
pub struct Watch(pub Arc<dyn Fn(Progress) + Send + Sync>);

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            rows: None,
            time: None,
            memory: 512 << 20,
            temporary: 8 << 30,
            cancel: Arc::default(),
            watch: None,
        }
    }
}

/// The least limit for the memory of a query that follows from that of the heap.
const LEAST_MEMORY: u64 = 16 << 20;

impl Limits {
    /// At most this many rows, without a time limit.
    pub fn rows(rows: usize) -> Limits {
        Limits {
            rows: Some(rows),
            ..Limits::default()
        }
    }
}

/// The limits of a running query, and whether it has been stopped.
#[derive(Debug)]
pub(crate) struct Stop {
    cancel: Arc<AtomicBool>,
    deadline: Option<Instant>,
    /// Cancels work inside `heap-graph`, which does not check the deadline.
    inner: AtomicBool,
    pub(crate) memory: u64,
    temporary: u64,
    /// Bytes of the temporary files.
    files: AtomicU64,
    /// The error of a limit for bytes that was exceeded.
    exceeded: OnceLock<String>,
    watch: Option<Watch>,
    /// True while a scan reports progress; scans inside it do not.
    led: AtomicBool,
    /// Whether a part of the query has ended early; it may produce no row after that.
    has_stopped: AtomicBool,
    /// The error of a table, of which SQLite passes on only the text.
    fault: Mutex<Option<HeapError>>,
}

impl Stop {
    /// The limits of a query that begins now, over a heap that leaves so much memory.
    pub(crate) fn new(limits: &Limits, of_heap: Option<u64>) -> Stop {
        let of_heap = of_heap.map_or(u64::MAX, |bytes| (bytes / 2).max(LEAST_MEMORY));
        Stop {
            cancel: limits.cancel.clone(),
            deadline: limits.time.and_then(|t| Instant::now().checked_add(t)),
            inner: AtomicBool::new(false),
            memory: limits.memory.min(of_heap),
            temporary: limits.temporary,
            files: AtomicU64::new(0),
            exceeded: OnceLock::new(),
            watch: limits.watch.clone(),
            led: AtomicBool::new(false),
            has_stopped: AtomicBool::new(false),
            fault: Mutex::default(),
        }
    }

    /// False if so many bytes of rows exceed the limit; the query must end then.
    pub(crate) fn admits(&self, bytes: u64) -> bool {
        let admits = bytes <= self.memory;
        if !admits {
            self.exceed(format!(
                "the rows exceed the memory limit of a query, {}: select fewer rows or shorter values",
                size(self.memory)
            ));
        }
        admits
    }

    /// Adds to the bytes of the temporary files. False if that exceeds the limit; the query must end then.
    pub(crate) fn grow_files(&self, bytes: u64) -> bool {
        let before = self.files.fetch_add(bytes, Ordering::Relaxed);
        let admits = before.saturating_add(bytes) <= self.temporary;
        if !admits {
            self.files.fetch_sub(bytes, Ordering::Relaxed);
            self.exceed(format!(
                "the temporary files of the query exceed their limit, {}: sort or group fewer rows, or raise --max-temporary",
                size(self.temporary)
            ));
        }
        admits
    }

    pub(crate) fn shrink_files(&self, bytes: u64) {
        self.files.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Keeps the error of the first limit that was exceeded.
    pub(crate) fn exceed(&self, message: String) {
        let _ = self.exceeded.set(message);
    }

    /// The error of a limit for bytes that was exceeded.
    pub(crate) fn exceeded(&self) -> Option<QueryError> {
        self.exceeded.get().cloned().map(QueryError::Limit)
    }

    /// Keeps the error that ends the query.
    pub(crate) fn keep_fault(&self, error: HeapError) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The error that ended the query.
    pub(crate) fn take_fault(&self) -> Option<HeapError> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.take()
    }

    /// Why the query must end now, if it must. A caller that gets a reason must end early.
    pub(crate) fn reason(&self) -> Option<Cut> {
        let reason = self.reason_now();
        if reason.is_some() {
            self.has_stopped.store(true, Ordering::Relaxed);
        }
        reason
    }

    /// Why rows are missing, if a part of the query has ended early.
    pub(crate) fn cut(&self) -> Option<Cut> {
        let stopped = self.has_stopped.load(Ordering::Relaxed);
        stopped.then(|| self.reason_now()).flatten()
    }

    fn reason_now(&self) -> Option<Cut> {
        if self.cancel.load(Ordering::Relaxed) {
            Some(Cut::Cancelled)
        } else if self.deadline.is_some_and(|d| Instant::now() >= d) {
            Some(Cut::Time)
        } else {
            None
        }
    }

    /// An error when the query must end now.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        self.reason()
            .map_or(Ok(()), |cut| Err(QueryError::Stopped(cut)))
    }

    /// Runs work of `heap-graph` under these limits.
    pub(crate) fn within<T>(
        &self,
        work: impl FnOnce(&Control<'_>) -> Result<T, HeapError>,
    ) -> Result<T, QueryError> {
        self.inner.store(self.reason().is_some(), Ordering::Relaxed);
        let watch = |progress| {
            if let Some(watch) = &self.watch {
                (watch.0)(progress);
            }
            if self.reason().is_some() {
                self.inner.store(true, Ordering::Relaxed);
            }
        };
        let result = work(&Control {
            progress: &watch,
            cancel: &self.inner,
        });
        result.map_err(|error| match (error, self.reason()) {
            (HeapError::Cancelled, Some(cut)) => QueryError::Stopped(cut),
            (error, _) => QueryError::Heap(error),
        })
    }
}

/// Bytes in the text of an error.
pub(crate) fn size(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// A scan that reports its progress, unless a scan around it does.
pub(crate) struct Lead {
    stop: Arc<Stop>,
    phase: &'static str,
    leads: bool,
}

impl Lead {
    pub(crate) fn new(stop: Arc<Stop>, phase: &'static str) -> Lead {
        let leads = stop.watch.is_some() && !stop.led.swap(true, Ordering::Relaxed);
        Lead { stop, phase, leads }
    }

    pub(crate) fn report(&self, done: u64, total: u64) {
        if self.leads
            && let Some(watch) = &self.stop.watch
        {
            let phase = self.phase;
            (watch.0)(Progress { phase, done, total });
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        if self.leads {
            self.stop.led.store(false, Ordering::Relaxed);
        }
    }
}
