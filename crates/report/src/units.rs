//! Numbers for people.

use crate::doc::Align;
pub use heap_analysis::objects::readable::{grouped, utc};
use live_analysis::metrics::Unit;

/// `4.0 KiB`, `1.5 GiB`: one decimal place, none for plain bytes.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would print as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// How sizes are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Rounded, with a unit: `38.2 MiB`.
    Human,
    /// All digits with a unit, inside a sentence: `40,006,848 B`.
    Sentence,
    /// All digits alone, in a column of numbers: `40006848`.
    Column,
}

impl Sizes {
    /// For text; `raw` shows all digits.
    pub(crate) fn in_text(raw: bool) -> Sizes {
        match raw {
            true => Sizes::Sentence,
            false => Sizes::Human,
        }
    }

    /// For a column of a table.
    pub(crate) fn in_column(raw: bool, align: Align) -> Sizes {
        match align {
            Align::Right if raw => Sizes::Column,
            _ => Sizes::in_text(raw),
        }
    }

    /// A size as text.
    pub(crate) fn show(self, bytes: u64) -> String {
        match self {
            Sizes::Human => human_bytes(bytes),
            Sizes::Sentence => format!("{} B", grouped(bytes)),
            Sizes::Column => bytes.to_string(),
        }
    }
}

/// `12.3 %`; small shares that are not zero are `<0.1 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.05 {
        return "<0.1 %".to_owned();
    }
    format!("{percent:.1} %")
}

/// A value of a metric with its unit; negative numbers are shown as 0.
pub fn metric(unit: Unit, value: f64) -> String {
    let whole = value.max(0.0).round() as u64;
    match unit {
        Unit::Bytes => human_bytes(whole),
        Unit::BytesPerSecond => format!("{}/s", human_bytes(whole)),
        Unit::Count => grouped(whole),
        Unit::Share => percent(value),
    }
}

/// A difference with its sign: `+1,234`.
pub fn change(number: i64) -> String {
    let text = grouped(number.unsigned_abs());
    match number {
        0 => text,
        1.. => format!("+{text}"),
        _ => format!("-{text}"),
    }
}

/// A difference of bytes: `-1.5 KiB`.
pub fn bytes_change(number: i64) -> String {
    let text = human_bytes(number.unsigned_abs());
    if number < 0 { format!("-{text}") } else { text }
}

/// `1 object`, `2 objects`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_digit_and_the_right_unit() {
        for (bytes, want) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(human_bytes(bytes), want);
        }
    }

    #[test]
    fn numbers_are_grouped_and_dates_are_civil() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(utc(0), "");
        assert_eq!(utc(1_000), "1970-01-01 00:00:01 UTC");
        assert_eq!(utc(951_827_696_000), "2000-02-29 12:34:56 UTC");
        assert_eq!(utc(1_795_237_793_869), "2026-11-21 05:09:53 UTC");
        // A damaged header may claim any moment.
        assert!(!utc(u64::MAX).is_empty());
    }

    #[test]
    fn shares_show_that_they_are_not_nothing() {
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(percent(0.0001), "<0.1 %");
        assert_eq!(percent(0.5), "50.0 %");
    }
}
