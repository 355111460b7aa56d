//! Ranges and steps of time.

use heap_analysis::objects::readable::utc;
use serde::Serialize;

/// A range of time in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    /// Its begin.
    pub from: u64,
    /// Its end; in an answer, at most the time of the answer.
    pub to: u64,
}

impl Range {
    /// All time.
    pub const ALL: Range = Range {
        from: 0,
        to: u64::MAX,
    };

    /// The part of it that an answer at this time covers.
    #[must_use]
    pub fn until(self, now_ms: u64) -> Range {
        Range {
            from: self.from,
            to: self.to.min(now_ms).max(self.from),
        }
    }
}

/// Steps of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// As exact as the data: about two seconds for the counts of a recording.
    Snapshot,
    /// Seconds.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
}

impl Step {
    /// The beginning of the step that contains a time, in milliseconds since 1970.
    pub(crate) fn begin(self, time_ms: u64) -> u64 {
        let length = match self {
            Step::Snapshot => 1,
            Step::Second => 1000,
            Step::Minute => 60_000,
            Step::Hour => 3_600_000,
        };
        time_ms / length * length
    }
}

/// The step that contains a time, as text.
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
    fn an_answer_covers_no_time_after_it() {
        let range = |from, to| Range { from, to };
        assert_eq!(Range::ALL.until(7), range(0, 7));
        assert_eq!(range(2, 5).until(7), range(2, 5));
        assert_eq!(range(9, u64::MAX).until(7), range(9, 9));
    }

    #[test]
    fn a_time_belongs_to_the_step_that_began_before_it() {
        let time = 3_600_000 * 7 + 60_000 * 5 + 1000 * 3 + 250;
        for (step, begin) in [
            (Step::Snapshot, time),
            (Step::Second, time - 250),
            (Step::Minute, time - 3250),
            (Step::Hour, 3_600_000 * 7),
        ] {
            assert_eq!(step.begin(time), begin);
        }
    }
}
