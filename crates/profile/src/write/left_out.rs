//! Metrics and events of a profile that a form cannot hold.

use super::{Form, jfr, main_metric};
use crate::{Metric, Profile};

impl Form {
    /// A sentence that names the metrics that are not in the file, if there are any.
    pub fn left_out(self, profile: &Profile, metric: Option<Metric>) -> Option<String> {
        let metrics = metric.map_or_else(|| profile.metrics(), |one| vec![one]);
        let main = main_metric(profile);
        let is_held = |one: Metric| match self {
            Form::Jfr => is_in_recording(one, &metrics),
            Form::Collapsed => metric.or(main) == Some(one),
            Form::Pprof => true,
        };
        let has_any = |one: Metric| profile.stacks(one).next().is_some();
        let missing = metrics
            .iter()
            .filter(|one| !is_held(**one) && has_any(**one));
        let names: Vec<_> = missing.map(|one| one.name()).collect();
        let reason = match (self, main) {
            (Form::Collapsed, Some(main)) => {
                format!("collapsed stacks hold one metric, here {}", main.name())
            }
            _ => "a recording of JFR has no events for all metrics".to_owned(),
        };
        (!names.is_empty()).then(|| format!("{reason}; left out: {}", names.join(", ")))
    }

    /// A sentence about the events that a recording lacks because their stacks have too many, if there are any.
    pub fn left_out_events(self, profile: &Profile, metric: Option<Metric>) -> Option<String> {
        if self != Form::Jfr {
            return None;
        }
        let metrics = metric.map_or_else(|| profile.metrics(), |one| vec![one]);
        let count = jfr::left_out(profile, &metrics);
        (count > 0).then(|| {
            format!(
                "a recording of JFR has at most {} samples or waits of one stack; left out: {count}",
                jfr::MOST_OF_STACK
            )
        })
    }
}

/// Whether a recording of JFR with these metrics shows this one.
fn is_in_recording(metric: Metric, all: &[Metric]) -> bool {
    match metric {
        Metric::Samples
        | Metric::WallRunning
        | Metric::WallWaiting
        | Metric::AllocatedBytes
        | Metric::LiveBytes
        | Metric::NativeAllocatedBytes
        | Metric::Blocked
        | Metric::Parked => true,
        // Both would be the same events.
        Metric::CpuTime => !all.contains(&Metric::Samples),
        // In the events of the other metric, or as their number.
        Metric::LiveObjects => all.contains(&Metric::LiveBytes),
        Metric::NativeLiveBytes => all.contains(&Metric::NativeAllocatedBytes),
        Metric::Contentions => all.contains(&Metric::Blocked),
        Metric::Parks => all.contains(&Metric::Parked),
        Metric::Calls
        | Metric::AllocatedObjects
        | Metric::SampledAllocatedBytes
        | Metric::SampledAllocatedObjects
        | Metric::NativeAllocations
        | Metric::NativeLiveBlocks
        | Metric::References
        | Metric::RetainedBytes
        | Metric::ShallowBytes => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"TRACE 300001:\n\tdemo.Cpu.hot(Cpu.java:3)\n\
MONITOR TIME BEGIN (total = 40 ms) Sat Nov 21 04:57:27 2026\nrank   self  accum   count trace monitor\n   \
1 100.00% 100.00%       4 300001 Ljava/lang/Object; (Java)\nMONITOR TIME END\n\
SITES BEGIN (ordered by live bytes) Sat Nov 21 04:57:27 2026\n    \
1 80.00% 80.00%      800   10      1600    20 300001 byte[]\nSITES END\n\
CPU SAMPLES BEGIN (total = 9) Sat Nov 21 04:57:27 2026\n   \
1 75.00% 75.00%       9 300001 demo.Cpu.hot\nCPU SAMPLES END\n\
CPU TIME (ms) BEGIN (total = 100) Sat Nov 21 04:57:27 2026\n   \
1 70.00% 70.00%     900 300001 demo.Cpu.hot\nCPU TIME (ms) END\n";

    #[test]
    fn metrics_that_a_form_cannot_hold_are_named() {
        let (profile, _) = crate::read(TEXT).expect("a profile");
        let check = |form: Form, metric, expected: Option<&str>| {
            assert_eq!(form.left_out(&profile, metric).as_deref(), expected);
        };
        check(Form::Pprof, None, None);
        check(
            Form::Jfr,
            None,
            Some(
                "a recording of JFR has no events for all metrics; left out: cpu, calls, alloc_objects",
            ),
        );
        check(Form::Jfr, Some(Metric::CpuTime), None);
        check(
            Form::Collapsed,
            None,
            Some(
                "collapsed stacks hold one metric, here samples; left out: cpu, calls, alloc_space, alloc_objects, \
                 inuse_space, inuse_objects, delay, contentions",
            ),
        );
        check(Form::Collapsed, Some(Metric::Calls), None);
    }

    #[test]
    fn events_beyond_the_most_of_a_stack_are_counted() {
        let text = String::from_utf8_lossy(TEXT);
        let many = text.replace("      9 300001", "1000009 300001");
        let many = many.replace("      4 300001", "1000004 300001");
        let check = |text: &str, form: Form, metric, expected: Option<u64>| {
            let (profile, _) = crate::read(text.as_bytes()).expect("a profile");
            let expected = expected.map(|count| {
                format!(
                    "a recording of JFR has at most 1000000 samples or waits of one stack; left out: {count}"
                )
            });
            assert_eq!(form.left_out_events(&profile, metric), expected);
        };
        check(&text, Form::Jfr, None, None);
        check(&many, Form::Jfr, None, Some(13));
        check(&many, Form::Jfr, Some(Metric::Samples), Some(9));
        check(&many, Form::Jfr, Some(Metric::Blocked), Some(4));
        check(&many, Form::Jfr, Some(Metric::CpuTime), None);
        check(&many, Form::Pprof, None, None);
    }

    /// As a reader of the recording finds them.
    #[test]
    fn a_recording_shows_what_is_not_left_out() {
        let (profile, _) = crate::read(TEXT).expect("a profile");
        let all = profile.metrics();
        let bytes = super::super::write(&profile, Form::Jfr, None);
        let (recording, _) = crate::read(&bytes).expect("a recording");
        let found = recording.metrics();
        for metric in all.iter().filter(|one| !is_in_recording(**one, &all)) {
            assert!(!found.contains(metric), "{metric:?} in {found:?}");
        }
        for metric in [Metric::Samples, Metric::AllocatedBytes, Metric::Blocked] {
            assert!(found.contains(&metric), "{metric:?} in {found:?}");
        }
    }
}
