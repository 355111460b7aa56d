//! The time of day, which never goes back: ranges of time and the order of a timeline depend on it.

use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

static CLOCK: Mutex<Clock> = Mutex::new(Clock { last: None });

/// Milliseconds since 1970. If the system's clock is set back, this one continues from the time that it had; it follows
/// when the system's clock is ahead of it, for instance after the machine was suspended.
pub fn now_ms() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let wall_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    clock.read(wall_ms, Instant::now())
}

/// Continues from this time if the system's clock is behind it: an earlier server has recorded until then.
pub(crate) fn continue_from(time_ms: u64) {
    let now = now_ms();
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if now < time_ms {
        clock.last = Some((time_ms, Instant::now()));
    }
}

struct Clock {
    /// A time that was read, by this clock and by one that is never set.
    last: Option<(u64, Instant)>,
}

impl Clock {
    fn read(&mut self, wall_ms: u64, now: Instant) -> u64 {
        if let Some((last_ms, last)) = self.last {
            let passed = now.saturating_duration_since(last).as_millis();
            let continued = last_ms.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX));
            if wall_ms < continued {
                return continued;
            }
        }
        self.last = Some((wall_ms, now));
        wall_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_clock_that_is_set_back_continues_and_one_that_is_set_forward_is_followed() {
        let begin = Instant::now();
        let mut clock = Clock { last: None };
        let mut read =
            |wall_ms, after_ms| clock.read(wall_ms, begin + Duration::from_millis(after_ms));
        assert_eq!(read(10_000, 0), 10_000);
        assert_eq!(read(10_250, 250), 10_250);
        // By NTP, two seconds back.
        assert_eq!(read(8_500, 500), 10_500);
        assert_eq!(read(8_750, 750), 10_750);
        assert_eq!(read(10_900, 2_900), 12_900);
        // The machine was suspended for a minute.
        assert_eq!(read(71_000, 3_000), 71_000);
        assert_eq!(read(71_250, 3_250), 71_250);
    }
}
