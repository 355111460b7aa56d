//! Systems other than Linux, which lack these system calls: no process can be stopped.

use std::io;

/// The result of checking a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The thread still runs.
    Runs,
    /// The thread is stopped. If it was stopped by a signal, that signal must be returned to it.
    Stopped { signal: i32 },
    /// The thread has ended.
    Gone,
}

fn nothing<T>() -> io::Result<T> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// As on Linux.
pub(crate) fn seize(_thread: i32) -> io::Result<()> {
    nothing()
}

/// As on Linux.
pub(crate) fn interrupt(_thread: i32) -> io::Result<()> {
    nothing()
}

/// As on Linux.
pub(crate) fn detach(_thread: i32, _signal: i32) -> io::Result<()> {
    nothing()
}

/// As on Linux.
pub(crate) fn look(_thread: i32) -> io::Result<Waited> {
    nothing()
}

/// As on Linux.
pub(crate) fn registers(_thread: i32) -> io::Result<Vec<u64>> {
    nothing()
}

/// As on Linux.
pub(crate) fn lower_priority(_nice: i32) {}
