//! The bytes of a row: the references of one object.
//!
//! Each entry is a varint whose lowest bit marks the last one. The first entry has a second flag bit: if set, the entry
//! is the ordinal of the object's class among the classes that are not roots. All other entries are the zigzag
//! difference to the previous target (the first: to the object).

#[inline(always)]
pub(crate) fn zigzag(delta: i64) -> u64 {
    (delta << 1 ^ delta >> 63) as u64
}

#[inline(always)]
pub(crate) fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

/// Writes a varint at `at`; returns the position after it. `out` must have ten bytes left; six for numbers below 2^39,
/// five for numbers below 2^31.
#[inline(always)]
pub(crate) fn put(out: &mut [u8], mut at: usize, mut n: u64) -> usize {
    while n >= 0x80 {
        out[at] = n as u8 | 0x80;
        at += 1;
        n >>= 7;
    }
    out[at] = n as u8;
    at + 1
}

/// Reads a varint at `at`; returns the position after it.
#[inline(always)]
pub(crate) fn take(bytes: &[u8], mut at: usize) -> (u64, usize) {
    let mut n = 0u64;
    let mut shift = 0;
    loop {
        let byte = bytes[at];
        at += 1;
        n |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 || shift >= 63 {
            return (n, at);
        }
        shift += 7;
    }
}

/// Encodes one row.
pub(crate) struct RowWriter {
    previous: u64,
    held: Option<u64>,
    first: bool,
}

impl RowWriter {
    pub(crate) fn new(source: u64) -> RowWriter {
        RowWriter {
            previous: source,
            held: None,
            first: true,
        }
    }

    /// The edge to the object's class. Must come before all targets.
    #[inline]
    pub(crate) fn class(&mut self, ordinal: u64) {
        self.held = Some(ordinal << 1 | 1);
        self.first = false;
    }

    /// A reference. A repetition of the previous one is left out.
    #[inline(always)]
    pub(crate) fn target(&mut self, out: &mut [u8], mut at: usize, target: u64) -> usize {
        let delta = target.wrapping_sub(self.previous) as i64;
        if delta == 0 {
            return at;
        }
        self.previous = target;
        if let Some(held) = self.held {
            at = put(out, at, held << 1);
        }
        let code = zigzag(delta);
        self.held = Some(if self.first { code << 1 } else { code });
        self.first = false;
        at
    }

    /// Ends the row; `None` if it is empty.
    #[inline(always)]
    pub(crate) fn finish(self, out: &mut [u8], at: usize) -> Option<usize> {
        self.held.map(|held| put(out, at, held << 1 | 1))
    }
}

/// Decodes a row piece by piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowReader {
    pub(crate) at: usize,
    previous: u64,
    first: bool,
    done: bool,
}

/// An entry of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Class(u64),
    Target(u64),
}

impl RowReader {
    /// The words of a reader that has read its row.
    pub(crate) const DONE: [u64; 2] = [1, 0];

    #[inline(always)]
    pub(crate) fn new(at: usize, source: u64) -> RowReader {
        RowReader {
            at,
            previous: source,
            first: true,
            done: false,
        }
    }

    /// As plain words, for a stack that goes to a file.
    #[inline(always)]
    pub(crate) fn words(self) -> [u64; 2] {
        let flags = u64::from(self.first) << 1 | u64::from(self.done);
        [(self.at as u64) << 2 | flags, self.previous]
    }

    /// From [`words`](Self::words).
    #[inline(always)]
    pub(crate) fn of_words([state, previous]: [u64; 2]) -> RowReader {
        RowReader {
            at: (state >> 2) as usize,
            previous,
            first: state & 2 != 0,
            done: state & 1 != 0,
        }
    }

    #[inline(always)]
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    #[inline(always)]
    pub(crate) fn next(&mut self, rows: &[u8]) -> Entry {
        let (raw, at) = take(rows, self.at);
        self.at = at;
        self.done = raw & 1 == 1;
        let mut code = raw >> 1;
        if self.first {
            self.first = false;
            if code & 1 == 1 {
                return Entry::Class(code >> 1);
            }
            code >>= 1;
        }
        self.previous = self.previous.wrapping_add(unzigzag(code) as u64);
        Entry::Target(self.previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_without_self_and_repeated_references() {
        for (class, targets, want) in [
            (
                None,
                vec![7u64, 7, 9, 1, 1 << 40, 0],
                vec![7, 9, 1, 1 << 40, 0],
            ),
            (Some(3u64), vec![5, 6], vec![6]),
            (Some(0), vec![], vec![]),
            (None, vec![5], vec![]),
        ] {
            let mut out = vec![0u8; 200];
            let mut row = RowWriter::new(5);
            if let Some(c) = class {
                row.class(c);
            }
            let mut at = 0;
            for t in &targets {
                at = row.target(&mut out, at, *t);
            }
            let end = row.finish(&mut out, at);
            assert_eq!(end.is_none(), class.is_none() && want.is_empty());
            if end.is_none() {
                continue;
            }
            let mut reader = RowReader::new(0, 5);
            let mut got = Vec::new();
            while !reader.is_done() {
                reader = RowReader::of_words(reader.words());
                match reader.next(&out) {
                    Entry::Class(c) => assert_eq!(Some(c), class),
                    Entry::Target(t) => got.push(t),
                }
            }
            assert_eq!(got, want);
            assert_eq!(Some(reader.at), end);
        }
    }
}
