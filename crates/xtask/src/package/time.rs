//! Dates of a number of seconds since 1970, in UTC.

/// Year, month and day.
pub fn date(seconds: u64) -> (u64, u64, u64) {
    // The days of a year are counted from the first of March, so that the leap day is its last.
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Such as `2026-11-23`.
pub fn day(seconds: u64) -> String {
    let (year, month, day) = date(seconds);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Such as `2026-11-23T16:25:00Z`.
pub fn stamp(seconds: u64) -> String {
    let rest = seconds % 86_400;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", day(seconds))
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // Checked with GNU date.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(stamp(seconds), expected);
        }
    }
}
