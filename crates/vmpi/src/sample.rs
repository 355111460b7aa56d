//! Random numbers, and a random sample of objects whose number is not known in advance.

/// Random numbers (SplitMix64): similar seeds, too, give unrelated numbers. They are uniformly distributed, but not
/// unpredictable.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// Seeds whose difference is a small multiple of this give parts of the same sequence.
    pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The numbers of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The next number, at least 0 and below 1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Keeps a fixed number of the added objects, each with the same probability (Algorithm R of Vitter, 1985). The same
/// seed gives the same sample.
#[derive(Clone, Debug)]
pub struct FairSample<T> {
    most: usize,
    random: Random,
    seen: u64,
    chosen: Vec<T>,
}

impl<T> FairSample<T> {
    /// A sample of at most `most` objects.
    #[must_use]
    pub fn new(most: usize, seed: u32) -> Self {
        Self {
            most,
            random: Random::new(seed.into()),
            seen: 0,
            chosen: Vec::new(),
        }
    }

    /// Adds one object.
    pub fn add(&mut self, one: T) {
        self.seen += 1;
        if self.chosen.len() < self.most {
            self.chosen.push(one);
            return;
        }
        // The nth object replaces one of those kept with the probability most / n.
        let at = usize::try_from(self.random.bits() % self.seen).unwrap_or(usize::MAX);
        if let Some(slot) = self.chosen.get_mut(at) {
            *slot = one;
        }
    }

    /// The number of objects added, and those that were kept, in no particular order.
    #[must_use]
    pub fn done(self) -> (u64, Vec<T>) {
        (self.seen, self.chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_the_same_chance() {
        let (runs, all, most) = (4000, 50, 10);
        let mut kept = vec![0u32; all];
        for seed in 0..runs {
            let mut sample = FairSample::new(most, seed);
            (0..all).for_each(|one| sample.add(one));
            let (seen, chosen) = sample.done();
            assert_eq!((seen, chosen.len()), (all as u64, most));
            chosen.iter().for_each(|one| kept[*one] += 1);
        }
        // 800 each; one standard deviation is 25.
        for (one, times) in kept.iter().enumerate() {
            assert!((650..950).contains(times), "{one}: {times}");
        }
    }

    #[test]
    fn few_are_all_kept() {
        let mut sample = FairSample::new(5, 1);
        (0..3).for_each(|one| sample.add(one));
        assert_eq!(sample.done(), (3, vec![0, 1, 2]));
        let mut none = FairSample::new(0, 1);
        none.add(7);
        assert_eq!(none.done(), (1, vec![]));
    }
}
