//! A set of object numbers.

#[derive(Clone, Debug, Default)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    pub(crate) fn new(len: u64) -> Bitmap {
        Bitmap {
            words: vec![0; len.div_ceil(64) as usize],
        }
    }

    /// Adds a number; false if it was there.
    #[inline]
    pub(crate) fn insert(&mut self, n: u64) -> bool {
        let Some(word) = self.words.get_mut((n >> 6) as usize) else {
            return false;
        };
        let new = *word >> (n & 63) & 1 == 0;
        *word |= 1 << (n & 63);
        new
    }

    #[inline(always)]
    pub(crate) fn contains(&self, n: u64) -> bool {
        self.words
            .get((n >> 6) as usize)
            .is_some_and(|w| w >> (n & 63) & 1 == 1)
    }
}
