//! What the sampling thread does at intervals.

use std::time::{Duration, Instant};

/// Something that is due at regular intervals.
pub(crate) struct Every {
    period: Duration,
    /// When it is due.
    pub(crate) next: Instant,
}

impl Every {
    /// First after one period.
    pub(crate) fn new(period: Duration) -> Self {
        let next = Instant::now() + period;
        Self { period, next }
    }

    /// Whether it is due; true once for each due time.
    pub(crate) fn take_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.next;
        if is_due {
            // Times that were missed are skipped.
            self.next += self.period;
            if self.next <= now {
                self.next = now + self.period;
            }
        }
        is_due
    }
}
