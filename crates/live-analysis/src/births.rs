//! When the objects of a class were allocated, in steps of time, as the recording has counted them,
//! whether they live or not.

use crate::history::History;
use crate::instances::Group;
use crate::range::{Range, Step, time_text};
use profile::Profile;
use std::collections::BTreeMap;

/// Objects of a class by the time of the range that they were allocated at, most frequent first unless `up`; and
/// how many there are in all.
pub fn groups(
    (profile, history): (&Profile, &History),
    class: &str,
    (step, range): (Step, Range),
    (up, limit): (bool, usize),
) -> (u64, Vec<Group>) {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let is_it = |name| profile.names.get(name) == class;
    let in_range = |at: &(u64, _)| range.from < at.0 && at.0 <= range.to;
    let births = history.allocated_at(is_it).into_iter();
    for (time, allocated) in births.filter(in_range) {
        *counts.entry(step.begin(time)).or_default() += allocated.objects;
    }
    let all = counts.values().sum();
    let mut rows: Vec<(u64, u64)> = counts.into_iter().filter(|(_, n)| *n > 0).collect();
    rows.sort_by_key(|(time, count)| (std::cmp::Reverse(*count), *time));
    if up {
        rows.reverse();
    }
    rows.truncate(limit);
    let group = |(time, count): (u64, u64)| Group {
        sampled: count,
        estimated: count,
        value: time_text(step, time),
    };
    (all, rows.into_iter().map(group).collect())
}
