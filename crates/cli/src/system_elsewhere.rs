//! What differs between systems, where there are no commands about running programs: macOS, Windows and others.

use ratatui::crossterm::event;
use std::io;
use std::time::Duration;

/// Stands for the handle of signals on Linux.
pub(crate) struct Handle;

impl Handle {
    pub(crate) fn close(&self) {}
}

/// Does nothing: signals end the process at once.
pub(crate) fn before_end<T>(_body: impl FnOnce() -> T + Send + 'static) {}

/// Does nothing. Ctrl-C is a key while a program uses the terminal.
pub(crate) fn at_signal(_body: impl FnOnce(i32) + Send + 'static) -> io::Result<Handle> {
    Ok(Handle)
}

/// Running JVMs are not known.
pub(crate) fn is_running_jvm(_name: &str) -> bool {
    false
}

/// Waits until something is typed or the time is over.
pub(crate) fn wait_for_input(patience: Duration) -> io::Result<()> {
    event::poll(patience).map(drop)
}
