//! How long objects live: frees by age, and the survival curve computed from them.
//!
//! An object that is still live has reached *at least* its age. The curve counts it as at risk below that age only (the
//! product-limit estimate of Kaplan and Meier): whether it survives its present age is not known yet. So objects that
//! were allocated a moment ago do not make the curve too high.

use serde::Serialize;

/// Ages in collections up to this have separate counts; higher ones share one.
pub(crate) const GC_AGES: usize = 32;
/// Ages in bytes are counted by powers of two.
pub(crate) const BYTE_AGES: usize = 48;

/// Frees by age.
#[derive(Clone, Debug)]
pub(crate) struct Ages {
    pub(crate) by_gc: [u64; GC_AGES],
    pub(crate) by_bytes: [u64; BYTE_AGES],
}

impl Default for Ages {
    fn default() -> Self {
        Self {
            by_gc: [0; GC_AGES],
            by_bytes: [0; BYTE_AGES],
        }
    }
}

impl Ages {
    /// The buckets of an age.
    #[inline]
    pub(crate) fn buckets(collections: u32, bytes: u64) -> (usize, usize) {
        ((collections as usize).min(GC_AGES - 1), bucket(bytes))
    }

    /// Adds the frees of another one.
    pub(crate) fn merge(&mut self, other: &Self) {
        let sums = self.by_gc.iter_mut().chain(&mut self.by_bytes);
        for (own, more) in sums.zip(other.by_gc.iter().chain(&other.by_bytes)) {
            *own += more;
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, (collections, bytes): (usize, usize)) {
        self.by_gc[collections] += 1;
        self.by_bytes[bytes] += 1;
    }
}

/// The bucket of an age in bytes: 0 for 0, otherwise the logarithm plus one.
#[inline]
pub(crate) fn bucket(bytes: u64) -> usize {
    (64 - bytes.leading_zeros() as usize).min(BYTE_AGES - 1)
}

/// A point of a survival curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Collections survived, or bytes allocated by all since birth.
    pub age: u64,
    /// Share of objects that live longer, 0 to 1.
    pub alive: f64,
    /// Objects seen to reach this age or more.
    pub at_risk: u64,
}

/// The curve of frees by bucket and of live objects by bucket. `age_after` returns the age at the end of a bucket. The
/// curve ends at the first bucket that no object is known to have left: neither freed in it nor live beyond it.
pub(crate) fn curve(deaths: &[u64], alive: &[u64], age_after: impl Fn(usize) -> u64) -> Vec<Point> {
    let mut reached: u64 = deaths.iter().sum::<u64>() + alive.iter().sum::<u64>();
    let mut share = 1.0;
    let mut points = vec![Point {
        age: 0,
        alive: 1.0,
        at_risk: reached,
    }];
    // The last bucket has no end: its objects have reached at least its age.
    for at in 0..deaths.len() - 1 {
        let at_risk = reached - alive[at];
        if at_risk == 0 {
            break;
        }
        share *= 1.0 - deaths[at] as f64 / at_risk as f64;
        reached = at_risk - deaths[at];
        points.push(Point {
            age: age_after(at),
            alive: share,
            at_risk: reached,
        });
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_object_is_at_risk_only_below_its_age() {
        // Ten are allocated: four are freed before the first collection, two after it; two are live at age 0 and two at
        // age 2. Eight have an outcome at age 0, four at age 1.
        let points = curve(&[4, 2, 0, 0], &[2, 0, 2, 0], |at| at as u64 + 1);
        let seen: Vec<_> = points.iter().map(|p| (p.age, p.alive, p.at_risk)).collect();
        assert_eq!(seen, [(0, 1.0, 10), (1, 0.5, 4), (2, 0.25, 2)]);
    }

    #[test]
    fn the_curve_ends_where_no_outcome_is_known() {
        let ages = |points: Vec<Point>| points.iter().map(|p| (p.age, p.alive)).collect::<Vec<_>>();
        let none_left = curve(&[1, 1, 0, 0], &[0, 0, 0, 0], |at| at as u64 + 1);
        assert_eq!(ages(none_left), [(0, 1.0), (1, 0.5), (2, 0.0)]);
        let all_new = curve(&[0; 4], &[5, 0, 0, 0], |at| at as u64 + 1);
        assert_eq!(ages(all_new), [(0, 1.0)]);
    }

    #[test]
    fn buckets_of_bytes_are_powers_of_two() {
        for (bytes, expected) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1 << 20, 21)] {
            assert_eq!(bucket(bytes), expected);
        }
        assert_eq!(bucket(u64::MAX), BYTE_AGES - 1);
    }
}
