//! A set of numbers, for instance of objects: one bit for each.

use std::ops::Range;

/// A set of numbers below a length. Numbers beyond it are not members and cannot be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// The empty set of numbers below `len`, rounded up to a multiple of 64.
    #[must_use]
    pub fn new(len: u64) -> Bits {
        Bits {
            words: vec![0; len.div_ceil(64) as usize],
        }
    }

    /// The set with these words; the lowest bit of the first stands for number 0.
    #[must_use]
    pub fn of_words(words: Vec<u64>) -> Bits {
        Bits { words }
    }

    /// Its words, 64 numbers in each.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Adds a number; false if it was there, or is beyond the length.
    #[inline]
    pub fn insert(&mut self, n: u64) -> bool {
        let Some(word) = self.words.get_mut((n >> 6) as usize) else {
            return false;
        };
        let new = *word >> (n & 63) & 1 == 0;
        *word |= 1 << (n & 63);
        new
    }

    /// True for a member.
    #[inline(always)]
    #[must_use]
    pub fn contains(&self, n: u64) -> bool {
        self.words
            .get((n >> 6) as usize)
            .is_some_and(|w| w >> (n & 63) & 1 == 1)
    }

    /// Keeps the members that are also in the other set.
    pub fn keep(&mut self, other: &Bits) {
        let both = self.words.iter_mut().zip(&other.words);
        both.for_each(|(word, other)| *word &= other);
    }

    /// Number of members.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// The members in a range of words, in order.
    pub fn members(&self, words: Range<usize>) -> impl Iterator<Item = u64> + '_ {
        words
            .clone()
            .zip(&self.words[words])
            .flat_map(|(at, word)| {
                let mut rest = *word;
                std::iter::from_fn(move || {
                    let bit = u64::from(rest.trailing_zeros());
                    rest &= rest.checked_sub(1)?;
                    Some(at as u64 * 64 + bit)
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_that_were_added() {
        let mut bits = Bits::new(200);
        let numbers = [0, 63, 64, 128, 199];
        assert!(numbers.iter().all(|n| bits.insert(*n)));
        assert!(numbers.iter().all(|n| !bits.insert(*n)), "they are there");
        assert!(!bits.insert(256), "beyond the length");
        assert!(!bits.contains(1) && !bits.contains(1 << 40));
        assert_eq!(bits.count(), 5);
        assert_eq!(bits.members(0..4).collect::<Vec<_>>(), numbers);
        assert_eq!(bits.members(1..2).collect::<Vec<_>>(), [64]);
        let mut some = Bits::of_words(vec![1, 2]);
        some.keep(&bits);
        assert_eq!(some.words(), [1, 0]);
    }
}
