//! Estimates of totals from samples, with their accuracy.
//!
//! The VM samples an allocation when a Poisson process over allocated bytes fires inside it: with a mean interval of
//! `T` bytes, an object of `s` bytes is sampled with `p = 1 - exp(-s / T)`. So each sample represents `1 / p` objects
//! (Horvitz and Thompson), which is unbiased for any mix of sizes, and the variance of a sum is estimated without bias
//! by the sum of `(1 - p) / p²`.

use crate::sites::Volume;
use serde::{Deserialize, Serialize};

/// How objects were chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// All of them: counts are exact.
    #[default]
    All,
    /// One per so many bytes on average.
    Interval(u64),
}

/// A value with the range that holds the true one in 95 of 100 profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

impl Estimate {
    /// A value that was counted, not sampled.
    pub fn exact(value: u64) -> Estimate {
        let value = value as f64;
        Estimate {
            value,
            low: value,
            high: value,
        }
    }

    /// A sum of sampled weights and its estimated variance. The interval is that of a Poisson count of the same
    /// relative width (Wilson and Hilferty's cube), so it never reaches below zero and is accurate also for a few
    /// samples.
    pub fn of_sum(value: f64, variance: f64) -> Estimate {
        if variance <= 0.0 || value <= 0.0 {
            let value = value.max(0.0);
            return Estimate {
                value,
                low: value,
                high: value,
            };
        }
        let count = value * value / variance;
        let scale = variance / value;
        let cube = |n: f64, z: f64| {
            let root = 1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt());
            n * root.max(0.0).powi(3)
        };
        Estimate {
            value,
            low: scale * cube(count, -Z).min(count),
            high: scale * cube(count + 1.0, Z),
        }
    }

    /// The interval for a number without any samples, if each sample represents `weight` objects.
    pub fn of_none(weight: f64) -> Estimate {
        // The upper bound of `of_sum` for a count of 0.
        let root = 1.0 - 1.0 / 9.0 + Z / 3.0;
        Estimate {
            value: 0.0,
            low: 0.0,
            high: weight * root.powi(3),
        }
    }

    /// The share of `hits` among `all` samples (Wilson's score interval).
    pub fn of_share(hits: u64, all: u64) -> Estimate {
        if all == 0 {
            return Estimate {
                value: 0.0,
                low: 0.0,
                high: 1.0,
            };
        }
        let n = all as f64;
        Estimate::score(hits.min(all) as f64 / n, n)
    }

    /// The share of a part of samples that represent different numbers. `unseen` is the sum over all samples of the
    /// represented number times that number minus one; it is 0 if everything was counted instead of sampled.
    pub fn of_weighted_share(part: f64, all: f64, unseen: f64) -> Estimate {
        let value = if all > 0.0 { part / all } else { 0.0 };
        if unseen > 0.0 {
            // The same accuracy as that of this many equal samples (Kish).
            return Estimate::score(value, all * all / unseen);
        }
        Estimate {
            value,
            low: value,
            high: value,
        }
    }

    fn score(p: f64, n: f64) -> Estimate {
        let middle = p + Z * Z / (2.0 * n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let norm = 1.0 + Z * Z / n;
        // At the ends the formula is exact except for rounding errors: this keeps the value inside the interval.
        let low = ((middle - half) / norm).clamp(0.0, p);
        Estimate {
            value: p,
            low,
            high: ((middle + half) / norm).clamp(p, 1.0),
        }
    }

    /// This value per second, over a time in nanoseconds.
    pub fn per_second(self, nanoseconds: u64) -> Estimate {
        let seconds = nanoseconds as f64 / 1e9;
        let rate = |value: f64| if seconds > 0.0 { value / seconds } else { 0.0 };
        Estimate {
            value: rate(self.value),
            low: rate(self.low),
            high: rate(self.high),
        }
    }
}

/// Sums over samples: what they stand for and how unsure that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    objects: f64,
    bytes: f64,
    objects_variance: f64,
    bytes_variance: f64,
}

impl Weight {
    /// A volume that is itself an estimate, with the variance of its number of objects.
    pub(crate) fn of_estimate(volume: Volume, variance: f64) -> Weight {
        let objects = volume.objects as f64;
        let size = volume.bytes as f64 / objects.max(1.0);
        Weight {
            objects,
            bytes: volume.bytes as f64,
            objects_variance: variance,
            bytes_variance: size * size * variance,
        }
    }

    /// The variance of [`Weight::objects`].
    pub fn variance(&self) -> f64 {
        self.objects_variance
    }

    /// Adds the weight of other samples.
    pub fn add(&mut self, other: Weight) {
        self.objects += other.objects;
        self.bytes += other.bytes;
        self.objects_variance += other.objects_variance;
        self.bytes_variance += other.bytes_variance;
    }

    /// Subtracts the weight of samples that are no longer live.
    pub fn remove(&mut self, other: Weight) {
        let less = |value: &mut f64, other: f64| *value = (*value - other).max(0.0);
        less(&mut self.objects, other.objects);
        less(&mut self.bytes, other.bytes);
        less(&mut self.objects_variance, other.objects_variance);
        less(&mut self.bytes_variance, other.bytes_variance);
    }

    /// How many objects these samples represent.
    pub fn objects(&self) -> Estimate {
        Estimate::of_sum(self.objects, self.objects_variance)
    }

    /// How many bytes these samples represent.
    pub fn bytes(&self) -> Estimate {
        Estimate::of_sum(self.bytes, self.bytes_variance)
    }
}

impl Sampling {
    /// The weight of samples of about equal size.
    pub fn weight(self, samples: Volume) -> Weight {
        self.weight_of_part(samples, 1.0)
    }

    /// As [`Self::weight`], if only this share of the samples was kept, each with the same probability: the two
    /// probabilities are multiplied.
    pub fn weight_of_part(self, samples: Volume, share: f64) -> Weight {
        if samples.objects == 0 {
            return Weight::default();
        }
        let count = samples.objects as f64;
        let size = samples.bytes as f64 / count;
        let chance = match self {
            Sampling::All | Sampling::Interval(0) => 1.0,
            Sampling::Interval(interval) => -(-size.max(1.0) / interval as f64).exp_m1(),
        };
        let chance = chance * share;
        let objects_variance = count * (1.0 - chance) / (chance * chance);
        Weight {
            objects: count / chance,
            bytes: count * size / chance,
            objects_variance,
            bytes_variance: size * size * objects_variance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simple generator: the test needs many random numbers, not good ones.
    struct Draws(u64);
    impl Draws {
        fn uniform(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn intervals_hold_the_truth_in_about_95_of_100_profiles() {
        // Realistic distributions: many small objects, arrays about as large as the interval, a mix.
        for (sizes, count) in [
            (&[24u64][..], 60_000u64),
            (&[40_000, 64], 2_000),
            (&[900_000], 40),
        ] {
            let interval = 32_768;
            let truth: u64 = (0..count).map(|i| sizes[i as usize % sizes.len()]).sum();
            let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
            let (mut inside, mut mean) = (0, 0.0);
            let profiles = 400;
            for _ in 0..profiles {
                let mut weight = Weight::default();
                for i in 0..count {
                    let bytes = sizes[i as usize % sizes.len()];
                    if draws.uniform() < -(-(bytes as f64) / interval as f64).exp_m1() {
                        let sample = Volume { objects: 1, bytes };
                        weight.add(Sampling::Interval(interval).weight(sample));
                    }
                }
                let estimate = weight.bytes();
                mean += estimate.value / profiles as f64;
                let truth = truth as f64;
                inside += u32::from(estimate.low <= truth && truth <= estimate.high);
            }
            let bias = mean / truth as f64 - 1.0;
            assert!(bias.abs() < 0.02, "{sizes:?}: bias {bias}");
            assert!(
                inside >= profiles * 92 / 100,
                "{sizes:?}: {inside} of {profiles}"
            );
        }
    }

    #[test]
    fn sampled_sites_rank_by_what_they_stand_for() {
        use crate::{NameId, SiteOrder, SiteTable, TraceId};
        let mut table = SiteTable::new(Sampling::Interval(1 << 20));
        // One sample of a large array, ten of small objects that represent 10 MiB.
        table.allocate(
            NameId(1),
            TraceId(1),
            Volume {
                objects: 1,
                bytes: 2 << 20,
            },
        );
        for _ in 0..10 {
            table.allocate(
                NameId(2),
                TraceId(1),
                Volume {
                    objects: 1,
                    bytes: 24,
                },
            );
        }
        let ranked = table.rank(SiteOrder::LiveBytes, 0.0);
        assert_eq!(table.sites()[ranked[0].row].class, NameId(2));
        assert!(ranked[0].share > 0.75, "{ranked:?}");
    }

    #[test]
    fn everything_sampled_is_exact() {
        let weight = Sampling::All.weight(Volume {
            objects: 7,
            bytes: 700,
        });
        assert_eq!(weight.bytes(), Estimate::exact(700));
        assert_eq!(weight.objects(), Estimate::exact(7));
    }

    #[test]
    fn shares_stay_between_zero_and_one() {
        for (hits, all) in [(0, 10), (10, 10), (3, 7), (145, 176), (0, 0)] {
            let share = Estimate::of_share(hits, all);
            assert!(0.0 <= share.low && share.low <= share.value, "{share:?}");
            assert!(share.value <= share.high && share.high <= 1.0, "{share:?}");
        }
        let wide = Estimate::of_share(1, 2);
        let narrow = Estimate::of_share(1000, 2000);
        assert!(narrow.high - narrow.low < (wide.high - wide.low) / 5.0);
    }

    #[test]
    fn freeing_what_was_allocated_leaves_nothing() {
        let sampling = Sampling::Interval(4096);
        let mut weight = sampling.weight(Volume {
            objects: 3,
            bytes: 72,
        });
        weight.remove(sampling.weight(Volume {
            objects: 3,
            bytes: 72,
        }));
        assert_eq!(weight.bytes().value, 0.0);
    }
}
