//! Where there is no such system call as Linux has: nothing can be stopped.

use std::io;

/// What a wait for a thread found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// It still runs.
    Runs,
    /// It stands still. A signal that was about to be delivered has to be given back to it.
    Stopped { signal: i32 },
    /// It has ended.
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
