//! How large and how full the live objects of each class are, as read by the agent in the program.

use crate::classes::{Apart, ClassRow, Measure};
use crate::names::{NO_CONTEXT, context, place};
use profile::{Estimate, NameId, Profile, TraceId};
use rustc_hash::FxHashMap;
use vmpi::fills::{Fills, SiteFill, Sum};

/// Class, loader and thread of a row of a table.
type Key<'a> = (&'a str, Option<String>, Option<String>);

/// The objects of one row of a table.
#[derive(Clone, Debug, Default)]
struct Sums {
    row: SiteFill,
    ever: [u64; 2],
}

/// One reading of the agent.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Its rows.
    pub fills: &'a Fills,
    /// The largest size and capacity in any reading, by class and stack.
    pub ever: &'a FxHashMap<Site, [u64; 2]>,
    /// Converts the agent's numbers to class and stack of the profile.
    pub site: &'a dyn Fn(Site) -> (NameId, Option<TraceId>),
}

/// Class and stack by the agent's numbers.
pub type Site = (u32, u32);

/// Adds the sizes and capacities of a reading to the rows of a recording.
pub fn add(profile: &Profile, reading: Reading<'_>, rows: &mut [ClassRow], apart: Apart) {
    let key = |site: Site| -> Key<'_> {
        let (class, trace) = (reading.site)(site);
        let made_by = || {
            let context = trace.and_then(|trace| context(profile, trace));
            context.unwrap_or_else(|| NO_CONTEXT.to_owned())
        };
        (
            profile.names.get(class),
            apart.loaders.then(|| place(profile, class).0),
            apart.contexts.then(made_by),
        )
    };
    let mut sums: FxHashMap<Key<'_>, Sums> = FxHashMap::default();
    for (site, ever) in reading.ever {
        let sum = sums.entry(key(*site)).or_default();
        sum.ever = [sum.ever[0].max(ever[0]), sum.ever[1].max(ever[1])];
    }
    for row in &reading.fills.rows {
        let sum = sums.entry(key((row.class.0, row.trace.0))).or_default();
        sum.row.size.merge(&row.size);
        sum.row.capacity.merge(&row.capacity);
        sum.row.capacity_bytes.merge(&row.capacity_bytes);
    }
    for row in rows {
        let key = (&*row.class, row.loader.clone(), row.context.clone());
        let Some(Sums { row: sum, ever }) = sums.get(&key) else {
            continue;
        };
        row.size = measure(&sum.size, ever[0]);
        row.capacity = measure(&sum.capacity, ever[1]);
        row.capacity_bytes = row.capacity.map(|_| whole(sum.capacity_bytes.sum));
        row.capacity_bytes_interval = interval(&sum.capacity_bytes);
    }
}

fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// The bounds of the 95 % interval of an estimated sum.
fn interval(sum: &Sum) -> Option<(u64, u64)> {
    (sum.variance > 0.0).then(|| {
        let range = Estimate::of_sum(sum.sum, sum.variance);
        (whole(range.low), whole(range.high))
    })
}

/// The columns of a sum. If there are no objects, it shows only the largest value so far.
fn measure(sum: &Sum, max_ever: u64) -> Option<Measure> {
    if sum.is_empty() && max_ever == 0 {
        return None;
    }
    Some(Measure {
        sum: whole(sum.sum),
        max: sum.max,
        max_ever,
        mean: sum.sum / sum.count.max(f64::MIN_POSITIVE),
        interval: interval(sum),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_no_objects_keeps_the_greatest_value() {
        let mut last = Sum::default();
        last.add(4, 1.0);
        let measured = measure(&last, 9).unwrap();
        assert_eq!((measured.sum, measured.max, measured.max_ever), (4, 4, 9));
        assert_eq!((measured.mean, measured.interval), (4.0, None));
        let none = measure(&Sum::default(), 9).unwrap();
        assert_eq!((none.sum, none.max_ever, none.mean), (0, 9, 0.0));
        assert_eq!(measure(&Sum::default(), 0), None);
    }

    #[test]
    fn what_stands_for_others_has_an_interval() {
        let mut sum = Sum::default();
        (0..100).for_each(|n| sum.add(n, 20.0));
        let measured = measure(&sum, 99).unwrap();
        assert_eq!(measured.sum, 99 * 50 * 20);
        assert_eq!(measured.mean, 49.5);
        let (low, high) = measured.interval.unwrap();
        assert!(low < measured.sum && measured.sum < high);
    }
}
