//! Counts the objects of a dump that may be cut: a walk so plain that it can serve as an oracle
//! for "everything before the cut is still answered".

use std::collections::HashSet;

/// Distinct object ids by kind, as `tenure summary --json` names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Class dumps.
    pub classes: u64,
    /// Instances.
    pub instances: u64,
    /// Arrays of references.
    pub object_arrays: u64,
    /// Arrays of primitives.
    pub primitive_arrays: u64,
}

/// Counts every object whose sub-record is whole, up to the first byte that is missing. Lengths
/// and tags must be right up to there; this is no reader for damaged files.
pub fn census(file: &[u8]) -> Census {
    let mut c = Counter {
        b: file,
        width: 0,
        seen: HashSet::new(),
        census: Census::default(),
    };
    // A missing byte ends the walk, and what was counted stands.
    let _: Option<()> = c.file();
    c.census
}

struct Counter<'a> {
    b: &'a [u8],
    width: usize,
    seen: HashSet<u64>,
    census: Census,
}

impl Counter<'_> {
    fn number(&self, at: usize, width: usize) -> Option<u64> {
        let bytes = self.b.get(at..at.checked_add(width)?)?;
        Some(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn size(&self, at: usize, width: usize) -> Option<usize> {
        usize::try_from(self.number(at, width)?).ok()
    }

    fn file(&mut self) -> Option<()> {
        let mut at = self.b.iter().position(|b| *b == 0)? + 1;
        self.width = self.size(at, 4)?;
        at += 12;
        loop {
            let (tag, length) = (self.number(at, 1)?, self.size(at + 5, 4)?);
            at += 9;
            if tag == 0x0c || tag == 0x1c {
                self.segment(at, at + length)?;
            }
            at += length;
        }
    }

    fn segment(&mut self, mut at: usize, end: usize) -> Option<()> {
        let w = self.width;
        while at < end {
            let tag = self.number(at, 1)?;
            let id = if tag == 0xfe {
                0
            } else {
                self.number(at + 1, w)?
            };
            let next = match tag {
                0x20 => self.class_end(at + 1)?,
                0x21 => at + 9 + 2 * w + self.size(at + 5 + 2 * w, 4)?,
                0x22 => at + 9 + 2 * w + w * self.size(at + 5 + w, 4)?,
                0x23 => {
                    let element = type_size(self.number(at + 9 + w, 1)?, w)?;
                    at + 10 + w + element * self.size(at + 5 + w, 4)?
                }
                0xc3 => at + 10 + w,
                0xfe => at + 5 + w,
                0x01 => at + 1 + 2 * w,
                0x02 | 0x03 | 0x08 | 0x8e => at + 9 + w,
                0x04 | 0x06 => at + 5 + w,
                _ => at + 1 + w,
            };
            if next > self.b.len() {
                return None;
            }
            let count = match tag {
                0x20 => &mut self.census.classes,
                0x21 => &mut self.census.instances,
                0x22 => &mut self.census.object_arrays,
                0x23 | 0xc3 => &mut self.census.primitive_arrays,
                _ => {
                    at = next;
                    continue;
                }
            };
            *count += u64::from(self.seen.insert(id));
            at = next;
        }
        Some(())
    }

    fn class_end(&self, body: usize) -> Option<usize> {
        let w = self.width;
        let mut at = body + 7 * w + 8;
        let constants = self.size(at, 2)?;
        at += 2;
        for _ in 0..constants {
            at += 3 + type_size(self.number(at + 2, 1)?, w)?;
        }
        let statics = self.size(at, 2)?;
        at += 2;
        for _ in 0..statics {
            at += w + 1 + type_size(self.number(at + w, 1)?, w)?;
        }
        Some(at + 2 + self.size(at, 2)? * (w + 1))
    }
}

fn type_size(ty: u64, width: usize) -> Option<usize> {
    match ty {
        2 => Some(width),
        4 | 8 => Some(1),
        5 | 9 => Some(2),
        6 | 10 => Some(4),
        7 | 11 => Some(8),
        _ => None,
    }
}
