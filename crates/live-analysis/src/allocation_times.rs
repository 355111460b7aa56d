//! Allocation times of the objects of a class, in steps of time, as the recording has counted them; freed objects are
//! included.

use crate::history::History;
use crate::instances::Group;
use crate::range::{Range, Step, time_text};
use profile::Profile;
use std::collections::BTreeMap;

/// Objects of a class by their allocation time within the range; and their total number.
pub fn groups(
    (profile, history): (&Profile, &History),
    class: &str,
    (step, range): (Step, Range),
) -> (u64, Vec<Group>) {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let is_it = |name| profile.names.get(name) == class;
    let in_range = |at: &(u64, _)| range.from < at.0 && at.0 <= range.to;
    let allocations = history.allocated_at(is_it).into_iter();
    for (time, allocated) in allocations.filter(in_range) {
        *counts.entry(step.begin(time)).or_default() += allocated.objects;
    }
    let all = counts.values().sum();
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let group = |(time, count): (u64, u64)| Group {
        value: time_text(step, time),
        sampled: count,
        estimated: count,
        stack: Vec::new(),
    };
    (all, counts.map(group).collect())
}
