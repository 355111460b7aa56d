//! Values of the JDK's own types as their `toString` formats them: dates and times, big numbers,
//! UUIDs, patterns, paths, addresses. Fields are read by name; a type whose fields are not the
//! expected ones has no readable value.

use crate::objects::describe::{MAX_VALUE, value_of};
use crate::objects::fields::{field_int, field_ref};
use heap_graph::{Heap, ObjIdx, ObjectView};
use hprof::BasicType;

/// Longest number, in 32-bit words, that is turned into decimal digits.
const MAX_WORDS: usize = 32;

/// Nesting of values: a zoned time contains a local time, which contains a date.
const PARTS: u32 = 2;

/// The readable value of an instance of the class called `class`, if it is one of those types.
pub(crate) fn value(heap: &Heap, object: ObjIdx, class: &str) -> Option<String> {
    part_of(heap, object, class, PARTS)
}

/// The value with at most `parts` levels of nested values; a damaged dump may have a date that contains itself.
fn part_of(heap: &Heap, object: ObjIdx, class: &str, parts: u32) -> Option<String> {
    let int = |name| field_int(heap, object, name);
    let part = |name| {
        let inner = field_ref(heap, object, name)?;
        let class = &heap.class(heap.class_of(inner)).name;
        part_of(heap, inner, class, parts.checked_sub(1)?)
    };
    let text = |name| heap.string_prefix(field_ref(heap, object, name)?, MAX_VALUE + 1);
    match class {
        "java.util.Date" | "java.sql.Timestamp" | "java.sql.Date" => {
            let millis = int("fastTime")?;
            instant(millis.div_euclid(1000), millis.rem_euclid(1000) * 1_000_000)
        }
        "java.time.Instant" => instant(int("seconds")?, int("nanos")?),
        "java.time.LocalDate" => date(int("year")?, int("month")?, int("day")?),
        "java.time.LocalTime" => Some(time(
            int("hour")?,
            int("minute")?,
            int("second")?,
            int("nano")?,
        )),
        "java.time.LocalDateTime" => Some(format!("{}T{}", part("date")?, part("time")?)),
        "java.time.ZoneOffset" | "java.time.ZoneRegion" => text("id"),
        "java.time.OffsetDateTime" => Some(part("dateTime")? + &part("offset")?),
        "java.time.ZonedDateTime" => {
            let zone = field_ref(heap, object, "zone")?;
            let named = heap.class(heap.class_of(zone)).name == "java.time.ZoneRegion";
            let zone = named.then(|| part("zone")).flatten();
            let zone = zone.map(|z| format!("[{z}]")).unwrap_or_default();
            Some(part("dateTime")? + &part("offset")? + &zone)
        }
        "java.math.BigInteger" => big_integer(heap, object),
        "java.math.BigDecimal" => {
            let digits = match int("intCompact")? {
                // In a damaged dump this may be any object; it is read as a BigInteger.
                i64::MIN => big_integer(heap, field_ref(heap, object, "intVal")?)?,
                compact => compact.to_string(),
            };
            scaled(&digits, int("scale")?)
        }
        "java.util.UUID" => {
            let (high, low) = (int("mostSigBits")? as u64, int("leastSigBits")? as u64);
            Some(format!(
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                high >> 32,
                high >> 16 & 0xffff,
                high & 0xffff,
                low >> 48,
                low & 0xffff_ffff_ffff
            ))
        }
        "java.lang.StringBuilder" | "java.lang.StringBuffer" => builder(heap, object),
        "java.util.regex.Pattern" => text("pattern"),
        "java.util.Currency" => text("currencyCode"),
        // Only at the top: these are not parts of other values.
        "java.util.Optional" | "java.util.concurrent.atomic.AtomicReference" if parts == PARTS => {
            let inner = field_ref(heap, object, "value")?;
            // One level only: such values may hold each other.
            let class = heap.class(heap.class_of(inner)).name.as_str();
            let simple = class != "java.util.Optional" && !class.ends_with("AtomicReference");
            simple.then(|| value_of(heap, inner)).flatten()
        }
        "sun.nio.fs.UnixPath" => {
            let bytes = array(heap, field_ref(heap, object, "path")?)?.1;
            Some(String::from_utf8_lossy(bytes.get(..bytes.len().min(4096))?).into_owned())
        }
        "java.net.Inet4Address" => {
            let holder = field_ref(heap, object, "holder")?;
            let [a, b, c, d] = (field_int(heap, holder, "address")? as u32).to_be_bytes();
            Some(format!("{a}.{b}.{c}.{d}"))
        }
        _ => None,
    }
}

fn array(heap: &Heap, object: ObjIdx) -> Option<(BasicType, &[u8])> {
    match heap.object(object).ok()? {
        ObjectView::PrimitiveArray { element, data, .. } => Some((element, data)),
        _ => None,
    }
}

/// Year, month and day of a day counted from 1970-01-01 (the usual era arithmetic over cycles of
/// 400 years).
pub fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

/// `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A moment in UTC, `2026-11-21 08:18:25 UTC`; empty for 0.
pub fn utc(timestamp_ms: u64) -> String {
    if timestamp_ms == 0 {
        return String::new();
    }
    let seconds = timestamp_ms / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// `2026-11-21T08:18:25Z`, with as many fractional digits as needed, in groups of three.
fn instant(seconds: i64, nanos: i64) -> Option<String> {
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let rest = seconds.rem_euclid(86_400);
    let clock = fraction(nanos);
    Some(format!(
        "{}T{:02}:{:02}:{:02}{clock}Z",
        date(year, month, day)?,
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    ))
}

fn date(year: i64, month: i64, day: i64) -> Option<String> {
    // A damaged dump may have values that are not a date.
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day);
    valid.then(|| format!("{year:04}-{month:02}-{day:02}"))
}

fn time(hour: i64, minute: i64, second: i64, nanos: i64) -> String {
    if second == 0 && nanos == 0 {
        return format!("{hour:02}:{minute:02}");
    }
    format!("{hour:02}:{minute:02}:{second:02}{}", fraction(nanos))
}

fn fraction(nanos: i64) -> String {
    match nanos {
        0 => String::new(),
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1000 == 0 => format!(".{:06}", n / 1000),
        n => format!(".{n:09}"),
    }
}

/// A number of a sign and a magnitude in big-endian words of 32 bits.
fn big_integer(heap: &Heap, object: ObjIdx) -> Option<String> {
    let (_, bytes) = array(heap, field_ref(heap, object, "mag")?)?;
    let mut words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]))
        .collect();
    if words.len() > MAX_WORDS {
        return Some(format!("{} bits", words.len() * 32));
    }
    let mut groups = Vec::new();
    while words.iter().any(|w| *w != 0) {
        let mut rest = 0u64;
        for word in &mut words {
            let n = rest << 32 | u64::from(*word);
            *word = (n / 1_000_000_000) as u32;
            rest = n % 1_000_000_000;
        }
        groups.push(rest);
    }
    let sign = if field_int(heap, object, "signum")? < 0 {
        "-"
    } else {
        ""
    };
    let mut text = match groups.pop() {
        Some(first) => format!("{sign}{first}"),
        None => "0".to_owned(),
    };
    for group in groups.into_iter().rev() {
        text.push_str(&format!("{group:09}"));
    }
    Some(text)
}

/// Digits with the decimal point `scale` places from the right, as `toPlainString` writes them.
fn scaled(digits: &str, scale: i64) -> Option<String> {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    if scale == 0 || !is_number {
        return Some(format!("{sign}{digits}"));
    }
    let places = usize::try_from(scale).ok().filter(|p| *p <= MAX_VALUE);
    let Some(places) = places else {
        return Some(format!("{sign}{digits}E{}", -i128::from(scale)));
    };
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, rest) = padded.split_at(padded.len() - places);
    Some(format!("{sign}{whole}.{rest}"))
}

/// The text in a StringBuilder: chars up to JDK 8, bytes with a coder since JDK 9.
fn builder(heap: &Heap, object: ObjIdx) -> Option<String> {
    let count = usize::try_from(field_int(heap, object, "count")?)
        .ok()?
        .min(MAX_VALUE + 1);
    let (element, data) = array(heap, field_ref(heap, object, "value")?)?;
    let latin = element == BasicType::Byte && field_int(heap, object, "coder") == Some(0);
    if latin {
        return Some(data.iter().take(count).map(|b| *b as char).collect());
    }
    let units = data.chunks_exact(2).take(count).map(|c| match element {
        BasicType::Char => u16::from_be_bytes([c[0], c[1]]),
        // A byte array has the byte order of the machine, which the dump does not state; all machines that the JDK
        // runs on today are little-endian.
        _ => u16::from_le_bytes([c[0], c[1]]),
    });
    Some(
        char::decode_utf16(units)
            .map(|c| c.unwrap_or('\u{fffd}'))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (day, want) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (20_778, (2026, 11, 21)),
            (-719_528, (0, 1, 1)),
        ] {
            assert_eq!(civil(day), want);
        }
    }

    #[test]
    fn numbers_have_their_point() {
        for (digits, scale, want) in [
            ("123", 0, "123"),
            ("123", 2, "1.23"),
            ("-5", 2, "-0.05"),
            ("7", -3, "7E3"),
            ("7", i64::MIN, "7E9223372036854775808"),
            ("64 bits", 1, "64 bits"),
            ("a\u{fffd}b", 1, "a\u{fffd}b"),
        ] {
            assert_eq!(scaled(digits, scale).as_deref(), Some(want));
        }
    }
}
