//! Numbers of variable length: seven bits per byte, low bits first. Differences are encoded so that small negative ones
//! are short, too.

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends bytes preceded by their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A difference as an unsigned number, small for small differences.
pub(crate) fn fold(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The inverse of [`fold`].
pub(crate) fn unfold(folded: u64) -> i64 {
    (folded >> 1) as i64 ^ -((folded & 1) as i64)
}

/// Reads numbers from a slice and tracks its position.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Bytes left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// One byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A number; `None` if the bytes end or it has more than 64 bits.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let first = *self.bytes.get(self.at)?;
        if first < 0x80 {
            self.at += 1;
            return Some(u64::from(first));
        }
        self.long_number()
    }

    fn long_number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut at = self.at;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(at)?;
            at += 1;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                self.at = at;
                return Some(value);
            }
        }
        None
    }

    /// This many bytes.
    pub(crate) fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let len = usize::try_from(len).ok()?;
        let end = self.at.checked_add(len)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// Bytes preceded by their length.
    pub(crate) fn counted(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let len = ahead.number()?;
        let bytes = ahead.take(len)?;
        *self = ahead;
        Some(bytes)
    }

    /// Text preceded by its length; bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.counted()?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64) {
            let mut out = Vec::new();
            put(&mut out, value);
            let mut input = Input::new(&out);
            prop_assert_eq!(input.number(), Some(value));
            prop_assert_eq!(input.left(), 0);
            prop_assert_eq!(fold(unfold(value)), value);
            for cut in 0..out.len() {
                prop_assert_eq!(Input::new(&out[..cut]).number(), None);
            }
        }
    }

    #[test]
    fn more_than_64_bits_are_no_number() {
        assert_eq!(Input::new(&[0xff; 11]).number(), None);
        let mut ten = [0x80u8; 10];
        ten[9] = 2;
        assert_eq!(Input::new(&ten).number(), None);
    }
}
