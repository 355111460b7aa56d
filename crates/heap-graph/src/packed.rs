//! Integer columns of the index: fixed-width packed integers, and block-wise packed columns with
//! exceptions for values that are mostly small.

use crate::build::tape::Tape;
use crate::raw::{Budget, bytes_of, view};
use std::io::{self, Write};

/// Bits needed to store `max`.
pub(crate) fn width_for(max: u64) -> u32 {
    (64 - max.leading_zeros()).max(1)
}

/// Appends values of up to 56 bits each to a byte stream.
#[derive(Debug)]
pub(crate) struct BitWriter<W> {
    out: W,
    /// The bits that do not fill a word yet, fewer than 64.
    word: u64,
    bits: u32,
    buffer: Vec<u8>,
}

impl<W: Write> BitWriter<W> {
    /// Writes to `out`.
    pub(crate) fn new(out: W) -> BitWriter<W> {
        BitWriter {
            out,
            word: 0,
            bits: 0,
            buffer: Vec::with_capacity(1 << 16),
        }
    }

    /// Appends a value, which has at most `width` bits.
    #[inline]
    pub(crate) fn push(&mut self, value: u64, width: u32) -> io::Result<()> {
        self.word |= value << self.bits;
        self.bits += width;
        if self.bits < 64 {
            return Ok(());
        }
        self.buffer.extend_from_slice(&self.word.to_le_bytes());
        self.bits -= 64;
        self.word = value.checked_shr(width - self.bits).unwrap_or(0);
        if self.buffer.len() >= 1 << 16 {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes the remaining bits, and spare bytes so that every value can be read as one word.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.buffer.extend_from_slice(&self.word.to_le_bytes());
        self.buffer.extend_from_slice(&[0u8; 16]);
        self.out.write_all(&self.buffer)
    }
}

/// Reads the value at a bit position; 0 out of range.
#[inline(always)]
fn read_bits(bytes: &[u8], bit: u64, width: u32) -> u64 {
    let at = (bit >> 3) as usize;
    let Some(word) = bytes.get(at..).and_then(|b| b.first_chunk::<8>()) else {
        return 0;
    };
    let mask = if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    };
    (u64::from_le_bytes(*word) >> (bit & 7)) & mask
}

/// Integers of one width, packed without gaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    bytes: &'a [u8],
    width: u32,
    len: u64,
}

impl<'a> Packed<'a> {
    /// Views at most `len` values of `width` bits (at most 56).
    pub(crate) fn new(bytes: &'a [u8], width: u32, len: u64) -> Packed<'a> {
        let (bits, width_bits) = (bytes.len() as u64 * 8, u64::from(width.max(1)));
        // A division only if it is needed: single values are read from a view made for each.
        let len = match len.checked_mul(width_bits) {
            Some(needed) if needed <= bits => len,
            _ => bits / width_bits,
        };
        Packed { bytes, width, len }
    }

    /// Number of values.
    #[inline(always)]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The value at `at`; 0 out of range.
    #[inline(always)]
    pub(crate) fn get(&self, at: u64) -> u64 {
        if at >= self.len {
            0
        } else {
            read_bits(self.bytes, at * u64::from(self.width), self.width)
        }
    }
}

/// Values per block of a [`Column`].
const BLOCK: usize = 64;

/// Collects a column: blocks of 64 values, each block with the width that makes it smallest;
/// values that do not fit are exceptions in a sorted list.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    /// Per block: bit offset shifted left by 6, and the width.
    heads: Vec<u64>,
    bits: BitBuffer,
    exceptions: Vec<[u64; 2]>,
    block: Vec<u64>,
    len: u64,
}

/// A sequence of bits: the full words, and the one that is being filled.
#[derive(Debug)]
struct BitBuffer {
    words: Tape<u64>,
    word: u64,
    bits: u64,
}

impl BitBuffer {
    /// Appends values of `width` bits each, fewer than 64.
    fn extend(&mut self, values: impl Iterator<Item = u64>, width: u32) -> io::Result<()> {
        let (mut word, mut shift) = (self.word, (self.bits & 63) as u32);
        for value in values {
            word |= value << shift;
            shift += width;
            self.bits += u64::from(width);
            if shift >= 64 {
                self.words.push(word)?;
                shift -= 64;
                word = value >> (width - shift);
            }
        }
        self.word = word;
        Ok(())
    }
}

impl ColumnBuilder {
    /// A column of about this many values; for a large heap its bits are in a temporary file until they are written.
    pub(crate) fn new(values: u64, budget: &Budget) -> io::Result<ColumnBuilder> {
        Ok(ColumnBuilder {
            heads: Vec::new(),
            bits: BitBuffer {
                // A value has 56 bits at most, and the column ends with four words.
                words: Tape::new(values + 4, budget)?,
                word: 0,
                bits: 0,
            },
            exceptions: Vec::new(),
            block: Vec::new(),
            len: 0,
        })
    }

    /// Appends a value.
    #[inline]
    pub(crate) fn push(&mut self, value: u64) -> io::Result<()> {
        self.block.push(value);
        if self.block.len() == BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        // counts[w]: values that need exactly w bits.
        let (mut counts, mut widest) = ([0u32; 65], 1);
        for value in &self.block {
            // An all-ones value is the mark of an exception, so a value needs value+1 to fit.
            let width = width_for(value.saturating_add(1));
            counts[width as usize] += 1;
            widest = widest.max(width);
        }
        let mut best = (u64::MAX, 56);
        let mut above = 0u64;
        for width in (1..=widest).rev() {
            if width <= 56 {
                let cost = u64::from(width) * self.block.len() as u64 + above * 128;
                if cost <= best.0 {
                    best = (cost, width);
                }
            }
            above += u64::from(counts[width as usize]);
        }
        let width = best.1;
        let escape = (1u64 << width) - 1;
        self.heads.push(self.bits.bits << 6 | u64::from(width));
        let values = self.block.iter().map(|value| *value.min(&escape));
        self.bits.extend(values, width)?;
        if widest > width {
            let all = (self.len..).zip(&self.block);
            let exceptions = all.filter(|(_, value)| **value >= escape);
            self.exceptions
                .extend(exceptions.map(|(at, value)| [at, *value]));
        }
        self.len += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Writes the column: three counts, heads, exceptions, bits.
    pub(crate) fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        let words = &mut self.bits.words;
        // Readers take a whole word from any bit on.
        for word in [self.bits.word, 0, 0, 0] {
            words.push(word)?;
        }
        words.finish()?;
        let counts = [
            self.len,
            self.heads.len() as u64,
            self.exceptions.len() as u64,
            words.len,
        ];
        out.write_all(bytes_of(&counts))?;
        out.write_all(bytes_of(&self.heads))?;
        out.write_all(bytes_of(&self.exceptions))?;
        let mut buffer = Vec::new();
        for number in 0..words.blocks() {
            out.write_all(bytes_of(words.get(number, &mut buffer)?))?;
        }
        Ok(())
    }
}

/// A column as written by [`ColumnBuilder`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<'a> {
    len: u64,
    heads: &'a [u64],
    exceptions: &'a [[u64; 2]],
    bytes: &'a [u8],
}

/// Where the parts of a column are in its section, for reading single values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnPlace {
    len: u64,
    /// Offset of the packed values.
    values: usize,
}

impl ColumnPlace {
    /// Where a section that is a column has its parts.
    pub(crate) fn of(section: &[u8]) -> Option<ColumnPlace> {
        let column = Column::new(section)?;
        let before = 32 + size_of_val(column.heads) + size_of_val(column.exceptions);
        Some(ColumnPlace {
            len: column.len,
            values: before,
        })
    }

    /// The value at `at` of the column in this section; 0 out of range.
    #[inline]
    pub(crate) fn get(&self, section: &[u8], at: u64) -> u64 {
        if at >= self.len {
            return 0;
        }
        let head = read_bits(section, (4 + at / BLOCK as u64) * 64, 64);
        let width = (head & 63) as u32;
        let values = section.get(self.values..).unwrap_or_default();
        let bit = (head >> 6) + (at % BLOCK as u64) * u64::from(width);
        let value = read_bits(values, bit, width);
        if value == (1u64 << width) - 1 {
            return Column::new(section).map_or(0, |column| column.get(at));
        }
        value
    }
}

impl<'a> Column<'a> {
    /// Views a section; `None` if it is not a column.
    pub(crate) fn new(section: &'a [u8]) -> Option<Column<'a>> {
        let [len, heads, exceptions, words]: [u64; 4] =
            view::<u64>(section.get(..32)?)?.try_into().ok()?;
        let (heads, exceptions) = (
            usize::try_from(heads).ok()?,
            usize::try_from(exceptions).ok()?,
        );
        let h = 32usize.checked_add(heads.checked_mul(8)?)?;
        let e = h.checked_add(exceptions.checked_mul(16)?)?;
        let w = e.checked_add(usize::try_from(words).ok()?.checked_mul(8)?)?;
        (heads as u64 >= len.div_ceil(BLOCK as u64)).then_some(())?;
        Some(Column {
            len,
            heads: view(section.get(32..h)?)?,
            exceptions: view(section.get(h..e)?)?,
            bytes: section.get(e..w)?,
        })
    }

    /// The value at `at`; 0 out of range.
    #[inline]
    pub(crate) fn get(&self, at: u64) -> u64 {
        if at >= self.len {
            return 0;
        }
        let head = self.heads[at as usize / BLOCK];
        let width = (head & 63) as u32;
        let value = read_bits(
            self.bytes,
            (head >> 6) + (at % BLOCK as u64) * u64::from(width),
            width,
        );
        if value == (1u64 << width) - 1 {
            let found = self.exceptions.binary_search_by_key(&at, |e| e[0]);
            return found.map_or(value, |i| self.exceptions[i][1]);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_values_come_back() {
        for width in [1u32, 3, 7, 8, 26, 33, 56] {
            let mask = (1u64 << width) - 1;
            let values: Vec<u64> = (0..1000u64)
                .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask)
                .collect();
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            values.iter().for_each(|v| writer.push(*v, width).unwrap());
            writer.finish().unwrap();
            let packed = Packed::new(&bytes, width, 1000);
            assert!(
                (0..1000).all(|i| packed.get(i) == values[i as usize]),
                "width {width}"
            );
            assert_eq!(packed.get(1000), 0);
        }
    }

    #[test]
    fn columns_keep_small_large_and_extreme_values() {
        let values: Vec<u64> = (0..5000u64)
            .map(|i| match i % 97 {
                0 => u64::MAX,
                1 => i << 40,
                2 => u64::MAX - 1,
                _ => i % 11,
            })
            .collect();
        let dir = std::env::temp_dir();
        let budget = Budget::for_test(&dir, 5000);
        let mut builder = ColumnBuilder::new(5000, &budget).unwrap();
        values.iter().for_each(|v| builder.push(*v).unwrap());
        let mut bytes = Vec::new();
        builder.write(&mut bytes).unwrap();
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|c| u64::from_le_bytes(c.try_into().unwrap()))
            .collect();
        let column = Column::new(bytes_of(&words)).unwrap();
        let place = ColumnPlace::of(bytes_of(&words)).unwrap();
        for (i, value) in values.iter().enumerate() {
            assert_eq!(column.get(i as u64), *value, "at {i}");
            assert_eq!(place.get(bytes_of(&words), i as u64), *value, "at {i}");
        }
        assert_eq!(column.get(5000), 0);
        assert_eq!(place.get(bytes_of(&words), 5000), 0);
        assert!(Column::new(&bytes_of(&words)[..40]).is_none());
    }
}
