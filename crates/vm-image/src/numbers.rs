//! The numbers of HotSpot's compressed streams.

/// Numbers of UNSIGNED5 (`utilities/unsigned5.hpp`): up to five bytes; a byte of 192 or more is followed by another
/// one, which counts 64 times as much. From JDK 20 on a number contains no zero byte, so each digit is one less than
/// its byte.
pub(crate) struct Numbers<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) excludes_zero: bool,
}

impl Numbers<'_> {
    pub(crate) fn next(&mut self) -> Option<u32> {
        let mut sum: u32 = 0;
        for i in 0..5 {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            let digit = u32::from(byte.checked_sub(u8::from(self.excludes_zero))?);
            sum = sum.wrapping_add(digit << (6 * i));
            if *byte < 192 || i == 4 {
                return Some(sum);
            }
        }
        None
    }

    /// A number whose lowest bit is its sign.
    pub(crate) fn next_signed(&mut self) -> Option<i32> {
        let number = self.next()?;
        Some((number >> 1) as i32 ^ -((number & 1) as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn numbers_are_those_of_the_description() {
        // From the comment of unsigned5.hpp: 0 is 01, 190 is BF, 191 is C0 01, and 192 is C1 01.
        for (bytes, value) in [
            (&[0x01][..], 0),
            (&[0xbf], 190),
            (&[0xc0, 0x01], 191),
            (&[0xc1, 0x01], 192),
            (&[0xc0, 0x02], 255),
        ] {
            let read = |excludes_zero| {
                Numbers {
                    bytes,
                    excludes_zero,
                }
                .next()
            };
            assert_eq!(read(true), Some(value), "{bytes:x?}");
        }
        let read = |bytes, excludes_zero| {
            Numbers {
                bytes,
                excludes_zero,
            }
            .next()
        };
        assert_eq!(read(&[0], true), None);
        assert_eq!(read(&[0xc0], true), None);
        // The encoding of compressedStream.hpp up to JDK 19.
        assert_eq!(read(&[0], false), Some(0));
        assert_eq!(read(&[191], false), Some(191));
        assert_eq!(read(&[192, 1], false), Some(256));
    }

    #[test]
    fn the_lowest_bit_is_the_sign() {
        let bytes = &[0, 1, 2, 3, 4][..];
        let mut numbers = Numbers {
            bytes,
            excludes_zero: false,
        };
        let read: Vec<_> = std::iter::from_fn(|| numbers.next_signed()).collect();
        assert_eq!(read, [0, -1, 1, -2, 2]);
    }
}
