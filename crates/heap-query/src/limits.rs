//! How much a query may take, and how it is stopped.

use crate::cell::Cut;
use crate::error::QueryError;
use heap_graph::{Control, HeapError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How much a query may take.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// At most so many rows; `None` for all.
    pub rows: Option<usize>,
    /// At most so long; what was found until then is the answer.
    pub time: Option<Duration>,
    /// Set it from any thread to stop the query within milliseconds.
    pub cancel: Arc<AtomicBool>,
}

impl Limits {
    /// At most so many rows, for as long as it takes.
    pub fn rows(rows: usize) -> Limits {
        Limits {
            rows: Some(rows),
            ..Limits::default()
        }
    }
}

/// A running query's view of its limits.
#[derive(Debug)]
pub(crate) struct Stop {
    cancel: Arc<AtomicBool>,
    deadline: Option<Instant>,
    /// Set for work inside `heap-graph`, which knows no deadline.
    inner: AtomicBool,
}

impl Stop {
    pub(crate) fn new(limits: &Limits) -> Stop {
        Stop {
            cancel: limits.cancel.clone(),
            deadline: limits.time.and_then(|t| Instant::now().checked_add(t)),
            inner: AtomicBool::new(false),
        }
    }

    /// Why the query must end now, if it must.
    pub(crate) fn reason(&self) -> Option<Cut> {
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
        let watch = |_| {
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
