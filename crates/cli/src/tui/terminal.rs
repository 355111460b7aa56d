//! The terminal, taken and given back: by a key, an error, a panic or a signal, and when it is gone.

use crate::system::{at_signal, wait_for_input};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// What runs may take this long to end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a signal has requested the end.
#[derive(Clone, Debug, Default)]
pub struct Ended(Arc<AtomicBool>);

impl Ended {
    /// True once a signal has come.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The next key; `None` after `patience` without one, or after anything else. Of the keys with Ctrl, Ctrl-C is one: no
    /// other one stands for its letter.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn key(&self, patience: Duration) -> io::Result<Option<KeyEvent>> {
        // Crossterm reads a terminal that has been closed over and over, without end, so the state of the
        // terminal is checked before each read.
        wait_for_input(Duration::ZERO)?;
        if !event::poll(Duration::ZERO)? {
            wait_for_input(patience)?;
            if self.is_set() || !event::poll(Duration::ZERO)? {
                return Ok(None);
            }
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release && is_known(key) => Some(key),
            _ => None,
        })
    }
}

fn is_known(key: KeyEvent) -> bool {
    !key.modifiers.contains(KeyModifiers::CONTROL) || key.code == KeyCode::Char('c')
}

/// Runs something with the terminal. Whatever happens, the terminal is the user's again.
///
/// # Errors
/// When the terminal cannot be used, or `run` fails.
pub fn with_terminal(
    run: impl FnOnce(&mut DefaultTerminal, &Ended) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let ended = Ended::default();
    let flag = ended.clone();
    let (running, runs) = sync_channel::<()>(0);
    let handle = at_signal(move |signal| {
        flag.0.store(true, Ordering::Relaxed);
        // It ends by itself, unless it is in the middle of something long. What follows it, such as the end of a
        // recording, may take longer.
        if runs.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = ratatui::try_restore();
            std::process::exit(128 + signal);
        }
    })?;
    // It also gives the terminal back when the program panics.
    let result = match ratatui::try_init() {
        Ok(mut terminal) => {
            let result = run(&mut terminal, &ended);
            let restored = ratatui::try_restore();
            result.and(restored.map_err(Into::into))
        }
        Err(error) => {
            // It may have failed half-way.
            let _ = ratatui::try_restore();
            Err(error.into())
        }
    };
    drop(running);
    handle.close();
    result
}
