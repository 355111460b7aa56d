//! The counters that every HotSpot VM stores in a mapped file (`hsperfdata_USER/PID` in its temporary folder). Reading
//! them costs the VM nothing. The layout is that of version 2.0, the same from JDK 8 to 25.

use std::collections::HashMap;
use thiserror::Error;

/// Bytes before the first entry.
const PROLOGUE: usize = 32;
/// Bytes of an entry before its name.
const ENTRY: usize = 20;
/// The most entries: a VM has about 200, with all features enabled about 600.
const MOST_ENTRIES: usize = 10_000;

/// Why a file has no readable counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PerfDataError {
    /// Too short, or another magic number.
    #[error("no performance data file")]
    Magic,
    /// The VM is still writing the table of counters.
    #[error("the VM has not finished its table of counters")]
    NotReady,
    /// An entry is outside the file.
    #[error("offset {0}: an entry of the counter table points outside the file")]
    Entry(usize),
}

/// A counter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counter {
    /// A number; its unit follows from its name.
    Number(i64),
    /// A text.
    Text(String),
}

/// All counters at one time, by name (`sun.gc.collector.0.invocations`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(HashMap<String, Counter>);

impl Counters {
    /// Reads the content of a file.
    ///
    /// # Errors
    /// The file has another format, or is not complete yet.
    pub fn parse(data: &[u8]) -> Result<Counters, PerfDataError> {
        if data.len() < PROLOGUE || data[..4] != [0xca, 0xfe, 0xc0, 0xc0] {
            return Err(PerfDataError::Magic);
        }
        let words = Words {
            data,
            little: data[4] == 1,
        };
        if data[7] == 0 {
            return Err(PerfDataError::NotReady);
        }
        let mut at = words.offset(24).ok_or(PerfDataError::Magic)?;
        let count = words.offset(28).ok_or(PerfDataError::Magic)?;
        let mut counters = HashMap::new();
        for _ in 0..count.min(MOST_ENTRIES) {
            let (length, name, value) = words.entry(at).ok_or(PerfDataError::Entry(at))?;
            if let Some(value) = value {
                counters.insert(name, value);
            }
            at += length;
        }
        Ok(Counters(counters))
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.0.get(name)? {
            Counter::Number(number) => Some(*number),
            Counter::Text(_) => None,
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Counter::Text(text) => Some(text),
            Counter::Number(_) => None,
        }
    }
}

struct Words<'a> {
    data: &'a [u8],
    little: bool,
}

impl Words<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.data.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn offset(&self, at: usize) -> Option<usize> {
        let bytes = self.bytes(at)?;
        let number = match self.little {
            true => i32::from_le_bytes(bytes),
            false => i32::from_be_bytes(bytes),
        };
        usize::try_from(number).ok()
    }

    /// Length, name and value of the entry at an offset. If the outer `Option` is `None`, the entry is damaged; if the
    /// inner one is, its type is not used.
    fn entry(&self, at: usize) -> Option<(usize, String, Option<Counter>)> {
        let length = self.offset(at)?;
        if length < ENTRY {
            return None;
        }
        let name = self.text(at.checked_add(self.offset(at + 4)?)?, usize::MAX)?;
        let vector = self.offset(at + 8)?;
        let kind = *self.data.get(at + 12)?;
        let value = at.checked_add(self.offset(at + 16)?)?;
        let value = match (kind, vector) {
            (b'J', 0) => {
                let bytes = self.bytes(value)?;
                Some(Counter::Number(match self.little {
                    true => i64::from_le_bytes(bytes),
                    false => i64::from_be_bytes(bytes),
                }))
            }
            (b'B', 1..) => Some(Counter::Text(self.text(value, vector)?)),
            _ => None,
        };
        Some((length, name, value))
    }

    /// The text before a NUL, at most `most` bytes long.
    fn text(&self, at: usize, most: usize) -> Option<String> {
        let rest = self.data.get(at..)?;
        let rest = &rest[..rest.len().min(most)];
        let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(out: &mut Vec<u8>, name: &str, vector: i32, kind: u8, value: &[u8]) {
        let padded = (name.len() + 1).next_multiple_of(8) + 4;
        let data = ENTRY + padded;
        let length = (data + value.len()).next_multiple_of(8);
        let start = out.len();
        out.extend((length as i32).to_le_bytes());
        out.extend((ENTRY as i32).to_le_bytes());
        out.extend(vector.to_le_bytes());
        out.extend([kind, 1, 4, 3]);
        out.extend((data as i32).to_le_bytes());
        out.extend(name.as_bytes());
        out.resize(start + data, 0);
        out.extend(value);
        out.resize(start + length, 0);
    }

    fn file() -> Vec<u8> {
        let mut out = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        out.resize(24, 0);
        out.extend(32i32.to_le_bytes());
        out.extend(2i32.to_le_bytes());
        entry(&mut out, "a.number", 0, b'J', &(-7i64).to_le_bytes());
        entry(&mut out, "a.text", 16, b'B', b"hello\0\0\0\0\0\0\0\0\0\0\0");
        out
    }

    #[test]
    fn numbers_and_texts_are_found_by_name() {
        let counters = Counters::parse(&file()).unwrap();
        assert_eq!(counters.number("a.number"), Some(-7));
        assert_eq!(counters.text("a.text"), Some("hello"));
        assert_eq!(counters.number("a.text"), None);
    }

    #[test]
    fn any_cut_or_changed_byte_is_an_error_or_a_value_and_never_a_panic() {
        let whole = file();
        for end in 0..whole.len() {
            let _ = Counters::parse(&whole[..end]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = Counters::parse(&bytes);
            }
        }
        let mut young = whole;
        young[7] = 0;
        assert_eq!(Counters::parse(&young), Err(PerfDataError::NotReady));
    }
}
