//! The width of a build: 32-bit numbers while they fit, else 64-bit ones. One code, compiled for
//! both; nothing outside the build knows which was used.

use crate::raw::Shareable;

/// One word per object. Before the object is visited it says where its row begins; afterwards it
/// holds the object's pre-order number.
pub(crate) trait Cell: Shareable + Ord + Eq + std::fmt::Debug + Default {
    /// Values below this fit.
    const LIMIT: u64;
    /// Longest entry of a row in bytes (see `varint`).
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
