//! Services of the process around the agent: it returns the time and prints messages.

use std::path::PathBuf;

/// Local wall-clock time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallTime {
    /// Milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
    /// What to add to UTC for local time, in seconds.
    pub offset_seconds: i32,
}

/// The process around the agent.
pub trait Host: Send {
    /// The time now.
    fn now(&self) -> WallTime;

    /// The path of a file that does not exist, on a file system with enough space for a heap dump; `None` if the VM
    /// must not write a dump.
    fn scratch(&self) -> Option<PathBuf> {
        None
    }

    /// Writes text to standard error unchanged. One line may come in several calls.
    fn say(&mut self, text: &str);
}

impl WallTime {
    /// The date as C's `ctime` prints it, without the line end: `Fri Feb  6 13:13:42 2004`.
    pub fn ctime(self) -> String {
        let seconds = (self.unix_ms / 1000) as i64 + i64::from(self.offset_seconds);
        let (days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        format!(
            "{} {} {day:2} {:02}:{:02}:{:02} {year}",
            DAYS[days.rem_euclid(7) as usize],
            MONTHS[month],
            clock / 3600,
            clock / 60 % 60,
            clock % 60,
        )
    }
}

/// Year, month from 0 and day from 1 of a day count since 1970-01-01, in the Gregorian calendar.
pub(crate) fn civil(days: i64) -> (i64, usize, i64) {
    // Count from 1 March of year 0: the leap day is then the last day of a year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    (year, month as usize, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_ctime_prints_them() {
        let check = |unix: u64, offset_seconds, text| {
            let time = WallTime {
                unix_ms: unix * 1000 + 999,
                offset_seconds,
            };
            assert_eq!(time.ctime(), text);
        };
        check(0, 0, "Thu Jan  1 00:00:00 1970");
        check(1_795_237_044, 0, "Sat Nov 21 04:57:24 2026");
        check(1_795_237_044, 3600, "Sat Nov 21 05:57:24 2026");
        check(1_076_073_222, 0, "Fri Feb  6 13:13:42 2004");
        check(951_782_400, 0, "Tue Feb 29 00:00:00 2000");
        check(4_102_444_799, 0, "Thu Dec 31 23:59:59 2099");
    }
}
