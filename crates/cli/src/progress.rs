//! A progress line on a terminal's standard error, redrawn at most ten times a second.

use heap_graph::Progress;
use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(100);

/// The line. Shared by worker threads; when two report at once, one of them is not shown.
pub(crate) struct Meter {
    enabled: bool,
    state: Mutex<State>,
}

struct State {
    started: Instant,
    drawn: Option<Instant>,
}

impl Meter {
    pub(crate) fn new(enabled: bool) -> Meter {
        Meter {
            enabled,
            state: Mutex::new(State {
                started: Instant::now(),
                drawn: None,
            }),
        }
    }

    /// Shows how far a phase is. Nothing appears in the first moments: quick answers stay quiet.
    pub(crate) fn show(&self, progress: Progress) {
        if !self.enabled {
            return;
        }
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        let last = state.drawn.unwrap_or(state.started);
        if last.elapsed() < INTERVAL {
            return;
        }
        state.drawn = Some(Instant::now());
        let done = match (progress.done as f64 * 100.0 / progress.total as f64) as u64 {
            _ if progress.total == 0 => String::new(),
            percent => format!(" {:>3} %", percent.min(100)),
        };
        let seconds = state.started.elapsed().as_secs();
        // Progress is a courtesy: a broken terminal must not stop the work.
        let _ = write!(
            io::stderr(),
            "\r\x1b[2K{}{done}  {seconds} s",
            progress.phase
        );
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        let drawn = self.state.lock().is_ok_and(|s| s.drawn.is_some());
        if drawn {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}
