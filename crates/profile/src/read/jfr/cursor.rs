//! Reads the bytes of a chunk in order and never past its end.

/// A position in bytes. At the end, all functions return `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    data: &'a [u8],
    pub(super) at: usize,
    /// Whether integers are compressed; otherwise they have their fixed width.
    compressed: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(data: &'a [u8], at: usize, compressed: bool) -> Cursor<'a> {
        Cursor {
            data,
            at,
            compressed,
        }
    }

    pub(super) fn left(&self) -> usize {
        self.data.len().saturating_sub(self.at)
    }

    /// The same bytes, limited to an end.
    pub(super) fn until(&self, end: usize) -> Cursor<'a> {
        Cursor {
            data: &self.data[..end.min(self.data.len())],
            ..*self
        }
    }

    pub(super) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.data.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    /// A number of this width, big-endian.
    pub(super) fn fixed(&mut self, width: usize) -> Option<u64> {
        let bytes = self.bytes(width)?;
        Some(
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        )
    }

    /// An integer: seven bits per byte, eight in the ninth byte; or of this width if integers are not compressed.
    pub(super) fn integer(&mut self, width: usize) -> Option<u64> {
        if !self.compressed {
            return self.fixed(width);
        }
        let mut value = 0;
        for shift in 0..8 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * shift);
            if byte < 0x80 {
                return Some(value);
            }
        }
        Some(value | u64::from(self.byte()?) << 56)
    }

    /// The number of items that follow, which is at most the number of remaining bytes.
    pub(super) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.integer(4)?).ok()?;
        (count <= self.left()).then_some(count)
    }
}
