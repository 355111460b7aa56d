//! Detects whether a mapped file has changed since it was mapped.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use thiserror::Error;

/// A file changed while it was read, so the data read from it are unreliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Changed {
    /// Bytes could not be read: the file was shortened, or its disk failed.
    #[error("the file was shortened, or its disk failed, while it was being read")]
    Unreadable,
    /// Another process wrote to it.
    #[error("another program wrote to the file while it was being read")]
    Written,
}

/// Watches one mapped file; clones watch the same one. The default watches no file and always succeeds.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// A page could not be read; the handler of SIGBUS sets it.
    failed: AtomicBool,
    file: Option<(File, Stamp)>,
}

static CHANGED: AtomicBool = AtomicBool::new(false);

/// True after any file changed while this process had it mapped. A program with one task checks this at its end; one
/// with many tasks checks each [`Health`].
pub fn input_changed() -> bool {
    CHANGED.load(Ordering::Relaxed)
}

/// The length and modification time of a file, which show whether it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

fn stamp(file: &File) -> io::Result<Stamp> {
    let about = file.metadata()?;
    Ok(Stamp {
        len: about.len(),
        modified: about.modified().ok(),
    })
}

impl Health {
    /// Watches a file from now on.
    ///
    /// # Errors
    /// When the system does not report the length and time.
    pub fn of_file(file: &File) -> io::Result<Health> {
        let file = file.try_clone()?;
        let stamp = stamp(&file)?;
        Ok(Health(Arc::new(Inner {
            failed: AtomicBool::new(false),
            file: Some((file, stamp)),
        })))
    }

    /// Checks once more before the mapping ends, for [`input_changed`].
    pub(super) fn close(&self) {
        if self.check().is_err() {
            CHANGED.store(true, Ordering::Relaxed);
        }
    }

    /// Marks the file as unusable, for a reason that its reader has found.
    pub fn fail(&self) {
        self.0.failed.store(true, Ordering::Release);
    }

    #[cfg(unix)]
    pub(super) fn failed(&self) -> &AtomicBool {
        &self.0.failed
    }

    /// True when a page could not be read. Costs one load.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.0.failed.load(Ordering::Acquire)
    }

    /// Checks the length and time of the file again: call it before an answer is returned.
    ///
    /// # Errors
    /// When the file has changed.
    pub fn check(&self) -> Result<(), Changed> {
        if self.has_failed() {
            return Err(Changed::Unreadable);
        }
        let Some((file, then)) = &self.0.file else {
            return Ok(());
        };
        match stamp(file) {
            Ok(now) if now == *then => Ok(()),
            Ok(now) if now.len >= then.len => Err(Changed::Written),
            _ => Err(Changed::Unreadable),
        }
    }
}
