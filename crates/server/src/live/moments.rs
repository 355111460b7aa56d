//! When the objects of a class were allocated, in steps of time, as the recording has counted them,
//! whether they live or not.

use super::ask::Range;
use super::instances::Group;
use super::session::Live;
use crate::reply::Fault;
use report::units::utc;
use std::collections::BTreeMap;

/// Steps of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// As it is known: of what the recording has counted, to about two seconds.
    Snapshot,
    /// Seconds.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
}

impl Step {
    /// By its name in the API.
    pub fn named(name: &str) -> Option<Step> {
        Some(match name {
            "time" => Step::Snapshot,
            "second" => Step::Second,
            "minute" => Step::Minute,
            "hour" => Step::Hour,
            _ => return None,
        })
    }

    /// The beginning of the step that a time is in, in milliseconds since 1970.
    fn begin(self, time_ms: u64) -> u64 {
        let length = match self {
            Step::Snapshot => 1,
            Step::Second => 1000,
            Step::Minute => 60_000,
            Step::Hour => 3_600_000,
        };
        time_ms / length * length
    }
}

/// Objects of a class by the time of the range that they were allocated at, most frequent first unless `up`; and
/// how many there are in all.
///
/// # Errors
/// When nothing has been recorded.
pub fn groups(
    live: &Live,
    class: &str,
    (step, range): (Step, Range),
    (up, limit): (bool, usize),
) -> Result<(u64, Vec<Group>), Fault> {
    let counts = live.recorded(|recorded| {
        let profile = recorded.profile()?;
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let is_it = |name| profile.names.get(name) == class;
        let in_range = |at: &(u64, _)| range.from < at.0 && at.0 <= range.to;
        let moments = recorded.history.allocated_at(is_it).into_iter();
        for (time, allocated) in moments.filter(in_range) {
            *counts.entry(step.begin(time)).or_default() += allocated.objects;
        }
        Some(counts)
    });
    let none = || Fault::not_found("nothing has been recorded; start a recording first");
    let counts = counts.ok_or_else(none)?;
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
    Ok((all, rows.into_iter().map(group).collect()))
}

/// The step that a time is in, in words.
pub fn time_text(step: Step, time_ms: u64) -> String {
    let begin = step.begin(time_ms);
    match step {
        Step::Snapshot => {
            let second = utc(begin);
            format!("{}.{:03}", second.trim_end_matches(" UTC"), begin % 1000)
        }
        _ => utc(begin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_belongs_to_the_step_that_began_before_it() {
        let time = 3_600_000 * 7 + 60_000 * 5 + 1000 * 3 + 250;
        for (name, begin) in [
            ("time", time),
            ("second", time - 250),
            ("minute", time - 3250),
            ("hour", 3_600_000 * 7),
        ] {
            assert_eq!(Step::named(name).map(|step| step.begin(time)), Some(begin));
        }
        assert_eq!(Step::named("day"), None);
    }
}
