//! A progress line on a terminal's standard error, redrawn at most ten times a second, with the
//! time that is left.

use crate::output::note;
use heap_graph::Progress;
use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(100);

/// A phase is watched so long before its end is foretold.
const WATCHED: Duration = Duration::from_secs(2);

/// What takes longer than this is announced.
const LONG: Duration = Duration::from_secs(15);

/// The line. Shared by worker threads; when two report at once, one of them is not shown.
pub(crate) struct Meter {
    enabled: bool,
    /// Long work is announced in a line that stays, on a terminal or not.
    announces: bool,
    state: Mutex<State>,
}

struct State {
    started: Instant,
    looked: Option<Instant>,
    drawn: bool,
    announced: bool,
    /// The present phase, and when it began.
    phase: (&'static str, Instant),
}

/// The time that a phase still takes when it continues as it did for `elapsed`.
fn left(elapsed: Duration, progress: Progress) -> Option<Duration> {
    let (done, total) = (progress.done as f64, progress.total as f64);
    (elapsed >= WATCHED && progress.done > 0 && progress.total >= progress.done)
        .then(|| elapsed.mul_f64(total / done - 1.0))
}

impl Meter {
    pub(crate) fn new(enabled: bool) -> Meter {
        let now = Instant::now();
        Meter {
            enabled,
            announces: false,
            state: Mutex::new(State {
                started: now,
                looked: None,
                drawn: false,
                announced: false,
                phase: ("", now),
            }),
        }
    }

    /// The same that also says once, in a line that stays, when the work will take long.
    pub(crate) fn announcing(self, announces: bool) -> Meter {
        Meter { announces, ..self }
    }

    /// Shows how far a phase is. Nothing appears in the first moments: quick answers stay quiet.
    pub(crate) fn show(&self, progress: Progress) {
        if !self.enabled && !self.announces {
            return;
        }
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        let now = Instant::now();
        let last = state.looked.unwrap_or(state.started);
        if now.duration_since(last) < INTERVAL {
            return;
        }
        state.looked = Some(now);
        if state.phase.0 != progress.phase {
            state.phase = (progress.phase, now);
        }
        let left = left(now.duration_since(state.phase.1), progress);
        if self.announces && !state.announced && left.is_some_and(|l| l >= LONG) {
            state.announced = true;
            let all = left.unwrap_or_default() + now.duration_since(state.started);
            if state.drawn {
                let _ = write!(io::stderr(), "\r\x1b[2K");
            }
            note(&format!(
                "reading {} takes about {} s in all; Ctrl-C or --timeout ends it",
                progress.phase,
                all.as_secs()
            ));
        }
        if !self.enabled {
            return;
        }
        state.drawn = true;
        let done = match (progress.done as f64 * 100.0 / progress.total as f64) as u64 {
            _ if progress.total == 0 => String::new(),
            percent => format!(" {:>3} %", percent.min(100)),
        };
        let seconds = state.started.elapsed().as_secs();
        let left = match left {
            Some(left) if left.as_secs() > 0 => format!(", about {} s left", left.as_secs()),
            _ => String::new(),
        };
        // Progress is a courtesy: a broken terminal must not stop the work.
        let _ = write!(
            io::stderr(),
            "\r\x1b[2K{}{done}  {seconds} s{left}",
            progress.phase
        );
    }

    /// Runs `body`, which writes to the terminal, while there is no line.
    pub(crate) fn beside<T>(&self, body: impl FnOnce() -> T) -> T {
        let state = self.state.lock();
        if state.as_ref().is_ok_and(|state| state.drawn) {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
        body()
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        let drawn = self.state.lock().is_ok_and(|s| s.drawn);
        if drawn {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_foretold_from_the_share_that_is_done() {
        let at = |done, total| Progress {
            phase: "references",
            done,
            total,
        };
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(1), at(50, 100)), None, "too early to say");
        assert_eq!(left(seconds(10), at(25, 100)), Some(seconds(30)));
        assert_eq!(left(seconds(10), at(100, 100)), Some(seconds(0)));
        assert_eq!(left(seconds(10), at(0, 100)), None);
        assert_eq!(left(seconds(10), at(7, 0)), None, "no total is known");
    }
}
