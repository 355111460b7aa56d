//! The width of object numbers in a build: 32 bits if they fit, otherwise 40; 64 bits for sizes that fit into neither.
//! The same code is compiled for each width; nothing outside the build depends on it.

use crate::raw::Shareable;

/// One word per object. It has the row offset until the search visits the object, and its pre-order number afterwards.
pub(crate) trait Cell: Shareable + Eq + std::fmt::Debug + Default {
    /// Values below this limit fit.
    const LIMIT: u64;
    /// The longest entry of a row in bytes (see `varint`).
    const ENTRY: usize;
    /// No row.
    const NONE: Self;
    fn new(value: u64) -> Self;
    fn get(self) -> u64;
    /// A pre-order number, marked as visited.
    fn visited(pre: u64) -> Self;
    /// The pre-order number, if visited.
    fn pre(self) -> Option<u64>;
}

macro_rules! cell {
    ($int:ty, $bits:literal, $entry:literal) => {
        impl Cell for $int {
            const LIMIT: u64 = (1 << ($bits - 1)) - 1;
            const ENTRY: usize = $entry;
            const NONE: $int = (1 << ($bits - 1)) - 1;
            #[inline(always)]
            fn new(value: u64) -> $int {
                value as $int
            }
            #[inline(always)]
            fn get(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn visited(pre: u64) -> $int {
                pre as $int | 1 << ($bits - 1)
            }
            #[inline(always)]
            fn pre(self) -> Option<u64> {
                (self >> ($bits - 1) != 0).then(|| u64::from(self & !(1 << ($bits - 1))))
            }
        }
    };
}

cell!(u32, 32, 5);
cell!(u64, 64, 10);

/// A number of 40 bits, the lowest byte first. It is read in the same two pieces in which it is written, four bytes and
/// one, because a processor waits when it reads other pieces of what it has just written.
pub(crate) type Wide = [u8; 5];

impl Cell for Wide {
    const LIMIT: u64 = (1 << 39) - 1;
    const ENTRY: usize = 6;
    const NONE: Wide = [0xff, 0xff, 0xff, 0xff, 0x7f];
    #[inline(always)]
    fn new(value: u64) -> Wide {
        let [a, b, c, d] = (value as u32).to_le_bytes();
        [a, b, c, d, (value >> 32) as u8]
    }
    #[inline(always)]
    fn get(self) -> u64 {
        let [a, b, c, d, e] = self;
        u64::from(u32::from_le_bytes([a, b, c, d])) | u64::from(e) << 32
    }
    #[inline(always)]
    fn visited(pre: u64) -> Wide {
        Wide::new(pre | 1 << 39)
    }
    #[inline(always)]
    fn pre(self) -> Option<u64> {
        (self[4] >> 7 != 0).then(|| self.get() & !(1 << 39))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Wide};

    fn keeps_numbers<C: Cell>() {
        let numbers = [0, 1, 0x1234_5678, C::LIMIT - 1];
        for number in numbers {
            assert_eq!(C::new(number).get(), number);
            assert_eq!(C::new(number).pre(), None);
            assert_eq!(C::visited(number).pre(), Some(number));
        }
        assert_eq!((C::NONE.get(), C::NONE.pre()), (C::LIMIT, None));
    }

    #[test]
    fn each_width_keeps_numbers_below_its_limit_with_and_without_the_mark() {
        keeps_numbers::<u32>();
        keeps_numbers::<Wide>();
        keeps_numbers::<u64>();
    }
}
