//! What is removed when a signal ends a command: outputs that are not whole.

use crate::system;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use tempfile::NamedTempFile;

static PARTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn lock() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body`, which makes a file, and removes this file if a signal ends the process. A signal waits for `body`. Commands that
/// handle signals themselves must not call it.
pub(crate) fn remove_at_signal(
    body: impl FnOnce() -> io::Result<NamedTempFile>,
) -> io::Result<NamedTempFile> {
    static WATCH: Once = Once::new();
    WATCH.call_once(watch);
    let mut parts = lock();
    let part = body()?;
    parts.insert(part.path().to_owned());
    Ok(part)
}

/// Runs `body`, which gives the file its name or removes it. A signal waits for it.
pub(crate) fn forget<T>(part: &Path, body: impl FnOnce() -> T) -> T {
    let mut parts = lock();
    parts.remove(part);
    body()
}

/// Has the files removed when a signal ends the process. With the lock held, nothing is written any more.
fn watch() {
    system::before_end(|| {
        let parts = lock();
        for part in &*parts {
            let _ = fs::remove_file(part);
        }
        parts
    });
}
