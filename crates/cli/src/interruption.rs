//! What is removed when a signal ends a command, outputs that are not whole; and signals that do not end a command at
//! once.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;
use signal_hook::iterator::{Signals, SignalsInfo};
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
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

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT as they arrive, for a command that passes signals on.
pub(crate) struct Caught(SignalsInfo<WithRawSiginfo>);

/// A signal that has arrived.
pub(crate) struct Arrived {
    pub(crate) signal: i32,
    /// It was typed on the terminal, which sends it to the whole process group.
    pub(crate) is_typed: bool,
}

impl Caught {
    /// Catches signals from now on. A signal that this process ignores stays ignored, so that the programs that it starts
    /// ignore it, too.
    pub(crate) fn new() -> io::Result<Caught> {
        SignalsInfo::new(heeded(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])).map(Caught)
    }

    /// The signals that have arrived since the last call.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Arrived> {
        self.0.pending().map(|info| Arrived {
            signal: info.si_signo,
            // The code of what the kernel itself sends is positive, and that of kill(2) is 0.
            is_typed: info.si_code > 0,
        })
    }
}

/// Those that this process does not ignore: what `nohup` or a script has switched off stays so.
pub(crate) fn heeded(wanted: &[i32]) -> Vec<i32> {
    let ignored = ignored();
    let is_heeded = |signal: &i32| ignored >> (signal - 1) & 1 == 0;
    wanted.iter().copied().filter(is_heeded).collect()
}

/// Waits for signals on a thread of its own.
fn watch() {
    let Ok(mut signals) = Signals::new(heeded(&[SIGINT, SIGTERM, SIGHUP])) else {
        return;
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    let waiting = thread.spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let parts = lock();
            for part in &*parts {
                let _ = fs::remove_file(part);
            }
            // Ends the process, with the lock held: nothing is written any more.
            let _ = emulate_default_handler(signal);
        }
    });
    // Without a thread the files stay, as they do at SIGKILL.
    drop(waiting);
}

/// The signals that this process ignores, one bit each.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
