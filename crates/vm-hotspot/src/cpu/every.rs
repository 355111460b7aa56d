//! What the sampling thread does at intervals.

use std::time::{Duration, Instant};

/// Something that is due again and again.
pub(crate) struct Every {
    period: Duration,
    last: Instant,
    /// When it is due.
    pub(crate) next: Instant,
}

impl Every {
    /// First after one period.
    pub(crate) fn new(period: Duration) -> Self {
        let last = Instant::now();
        let next = last + period;
        Self { period, last, next }
    }

    /// If it is due, the time since it was taken before.
    pub(crate) fn take_due(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        let since = now - self.last;
        self.last = now;
        // Times that were missed are skipped.
        self.next += self.period;
        if self.next <= now {
            self.next = now + self.period;
        }
        Some(since)
    }
}
