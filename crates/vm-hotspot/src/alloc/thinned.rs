//! One sampler of the VM for two receivers with different intervals.

use std::sync::atomic::{AtomicU64, Ordering};

use vmpi::Random;

/// A uniformly distributed random number, at least 0 and below 1.
pub(crate) fn uniform() -> f64 {
    static SEED: AtomicU64 = AtomicU64::new(0);
    Random::new(SEED.fetch_add(Random::STEP, Ordering::Relaxed)).uniform()
}

/// The share of objects of `size` bytes that are sampled with an interval.
fn share(size: u64, interval: u64) -> f64 {
    match interval {
        0 => 1.0,
        _ => 1.0 - (-(size as f64) / interval as f64).exp(),
    }
}

/// Whether an object that was sampled with `interval` also belongs to the sample of the receiver with the interval
/// `wanted`, which is at least as large.
pub(crate) fn is_wanted(size: u64, interval: u64, wanted: u64) -> bool {
    interval == wanted || uniform() * share(size, interval) < share(size, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_as_if_sampled_with_the_larger_interval() {
        for (size, interval, wanted) in [(24, 64, 512), (1000, 0, 4096), (40, 100, 100)] {
            let of = 200_000;
            let is_sampled = |_: &u32| uniform() < share(size, interval);
            let sampled = (0..of).filter(is_sampled);
            let left = sampled
                .filter(|_| is_wanted(size, interval, wanted))
                .count() as f64;
            let expected = f64::from(of) * share(size, wanted);
            let error = (left - expected).abs() / expected.sqrt();
            assert!(error < 6.0, "{left} of {expected}");
        }
    }
}
