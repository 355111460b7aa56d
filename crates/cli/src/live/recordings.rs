//! The recordings that a collector of several agents receives, and their end when the user presses Ctrl-C.

use crate::output::note;
use crate::system::{TOGETHER, heeded};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The recordings that are received, by the numbers of their connections.
#[derive(Clone, Default)]
pub(crate) struct Recordings(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    open: BTreeSet<usize>,
    are_ending: bool,
}

impl Recordings {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A recording begins.
    pub(crate) fn begin(&self, number: usize) {
        self.state().open.insert(number);
    }

    /// The result of a connection has been handed on.
    pub(crate) fn end(&self, number: usize) {
        self.state().open.remove(&number);
    }

    /// Whether the agents are to end their recordings.
    pub(crate) fn are_ending(&self) -> bool {
        self.state().are_ending
    }
}

/// Ends recordings at a signal.
pub(crate) struct Ending {
    signals: Signals,
    recordings: Recordings,
    since: Option<Instant>,
}

impl Ending {
    /// Heeds the signals from now on. A script that starts this command in the background ignores SIGINT for it, and may
    /// send it all the same; `nohup` ignores SIGHUP, which must not end it.
    pub(crate) fn new(recordings: Recordings) -> io::Result<Ending> {
        Ok(Ending {
            signals: Signals::new([SIGINT, SIGTERM].into_iter().chain(heeded(&[SIGHUP])))?,
            recordings,
            since: None,
        })
    }

    /// Heeds the signals that have arrived: the first one ends the recordings, and this process at once if there are
    /// none, as a later one does. Returns true when all recordings have ended after a signal.
    pub(crate) fn is_complete(&mut self) -> bool {
        let Some(signal) = self.signals.pending().last() else {
            return self.since.is_some() && self.recordings.state().open.is_empty();
        };
        let is_last = match self.since {
            None => self.recordings.state().open.is_empty(),
            Some(since) => since.elapsed() > TOGETHER,
        };
        if is_last {
            let _ = emulate_default_handler(signal);
        } else if self.since.is_none() {
            self.since = Some(Instant::now());
            self.recordings.state().are_ending = true;
            note("the recording ends; Ctrl-C again does not wait for the rest of its data");
        }
        false
    }
}
