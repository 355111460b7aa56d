//! Progress and cancellation of long work.

use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

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

/// The caller cancelled the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cancelled")]
pub struct Cancelled;

/// Receives progress, and can cancel.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Called from any worker thread, at most about ten times a second.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Set it to cancel; the work ends with an error within milliseconds.
    pub cancel: &'a AtomicBool,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl std::fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control")
            .field("cancel", self.cancel)
            .finish_non_exhaustive()
    }
}

impl Default for Control<'_> {
    fn default() -> Self {
        Control::quiet()
    }
}

impl Control<'static> {
    /// Ignores progress and never cancels.
    pub fn quiet() -> Control<'static> {
        Control {
            progress: &|_| {},
            cancel: &NEVER,
        }
    }
}

impl Control<'_> {
    /// Checks whether the work is to continue.
    ///
    /// # Errors
    /// When the caller cancelled it.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.cancel.load(Ordering::Relaxed) {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }

    /// Reports how far a phase is.
    pub fn report(&self, phase: &'static str, done: u64, total: u64) {
        (self.progress)(Progress { phase, done, total });
    }
}
