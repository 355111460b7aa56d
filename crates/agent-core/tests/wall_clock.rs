//! Samples of CPU time that came less often than requested, and wall-clock samples, in both forms.

use crate::recorder::run;
use profile::Metric;
use vmpi::{TraceId, WallRow};

/// Samples of two stacks.
pub(crate) fn rows(one: TraceId, other: TraceId) -> Vec<WallRow> {
    vec![
        WallRow {
            trace: one,
            running: 4,
            running_ns: 45_000_000,
            waiting: 1,
            waiting_ns: 15_000_000,
        },
        WallRow {
            trace: other,
            waiting: 5,
            waiting_ns: 140_000_000,
            ..WallRow::default()
        },
    ]
}

#[test]
fn running_and_waiting_stay_apart_in_both_forms_and_the_note_says_how_often_threads_were_sampled() {
    for options in ["wall=10ms,cutoff=0", "wall=10ms,cutoff=0,format=b"] {
        let bytes = run(options);
        let (profile, _) = profile::read(&bytes).expect("a profile");
        let metrics = [Metric::WallRunning, Metric::WallWaiting];
        assert_eq!(profile.metrics(), metrics, "{options}");
        let sums = metrics.map(|metric| {
            let stacks = profile.stacks(metric).map(|stack| stack.value);
            stacks.sum::<u64>().div_ceil(1_000_000)
        });
        assert_eq!(sums, [45, 155], "{options}");
        let text = String::from_utf8_lossy(&bytes);
        let note = "wall-clock samples: 10, one of each thread every 20.0 ms on average (10.0 ms requested); 2 dropped (buffer full 0, \
                    stack not walkable 2, signal not delivered 0)";
        assert!(text.contains(note), "{options}: {text}");
    }
    let text = String::from_utf8(run("wall=10ms,cutoff=0")).expect("text");
    assert!(text.contains("WALL RUNNING (ms) BEGIN (total = 45) "));
    assert!(
        text.contains("   1 90.32% 90.32%       5 300002 demo.Node.hot\n"),
        "{text}"
    );
    assert!(!text.contains("CPU SAMPLES BEGIN"));
}

#[test]
fn a_note_says_how_much_cpu_time_is_between_two_samples_if_it_is_not_what_was_requested() {
    for options in ["cpu=samples,interval=4", "cpu=samples,interval=4,format=b"] {
        let bytes = run(options);
        let text = String::from_utf8_lossy(&bytes);
        let note = "CPU samples: one stack for 10.00 ms of CPU time on average, which counts for all of it (4.00 ms requested)";
        assert!(text.contains(note), "{options}: {text}");
    }
    let without = run("wall=10ms");
    assert!(!String::from_utf8_lossy(&without).contains("CPU samples: one"));
}
