//! The written forms before the programs that read them. A program that is not installed is reported
//! and skipped.

use ::profile::write;
use ::profile::write::jfr::{self, Allocation, Timed};
use ::profile::{Metric, Profile};
use report::profile::{Form, render};
use std::path::Path;
use std::process::Command;

/// What a program prints; `None` with a line when it is not installed.
fn output(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    match Command::new(program).args(arguments).output() {
        Ok(done) => {
            let text = [done.stdout, done.stderr].concat();
            Some((
                done.status.success(),
                String::from_utf8_lossy(&text).into_owned(),
            ))
        }
        Err(error) => {
            testkit::skip(program, testkit::Need::Program, &error.to_string());
            None
        }
    }
}

const TEXT: &str = "\
THREAD START (obj=50000001, id = 200001, name=\"main\", group=\"main\")
TRACE 300001:
\tdemo.Cpu.hot(Cpu.java:3)
\tdemo.Cpu.main(Cpu.java:14)
TRACE 300002: (thread=200001)
\tdemo.Cpu.<init>(Cpu.java:9)
\tdemo.Cpu.main(Cpu.java:15)
MONITOR TIME BEGIN (total = 40 ms) Sat Nov 21 04:57:27 2026
   1 100.00% 100.00%       4 300002 Ljava/lang/Object; (Java)
MONITOR TIME END
SITES BEGIN (ordered by live bytes) Sat Nov 21 04:57:27 2026
    1 80.00% 80.00%      800   10      1600    20 300002 byte[]
SITES END
CPU SAMPLES BEGIN (total = 12) Sat Nov 21 04:57:27 2026
   1 75.00% 75.00%       9 300001 demo.Cpu.hot
   2 25.00% 100.00%       3 300002 demo.Cpu.<init>
CPU SAMPLES END
NOTE: 3 lost: samples
";

fn profile() -> Profile {
    let (mut profile, _) = ::profile::read(TEXT.as_bytes()).expect("a profile");
    profile.samples.as_mut().expect("samples").interval_ns = 20_000_000;
    profile
}

fn file(folder: &Path, name: &str, form: Form) -> String {
    let path = folder.join(name);
    std::fs::write(&path, render(&profile(), form, None, "demo")).expect("written");
    path.display().to_string()
}

#[test]
fn the_jdk_prints_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), "demo.jfr", Form::Plain(write::Form::Jfr));
    let Some((ok, summary)) = output("jfr", &["summary", &path]) else {
        return;
    };
    assert!(ok, "{summary}");
    let count = |name: &str| {
        let line = summary
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1))
            .and_then(|count| count.parse().ok())
    };
    assert_eq!(count("jdk.ExecutionSample"), Some(12), "{summary}");
    assert_eq!(count("jdk.ObjectAllocationSample"), Some(1), "{summary}");
    assert_eq!(count("jdk.JavaMonitorEnter"), Some(4), "{summary}");
    assert_eq!(count("jdk.OldObjectSample"), Some(1), "{summary}");
    assert_eq!(count("tenure.NativeAllocation"), Some(0), "{summary}");
    let (ok, print) = output("jfr", &["print", "--stack-depth", "5", &path]).expect("jfr");
    assert!(ok, "{print}");
    assert_eq!(
        print.matches("demo.Cpu.hot() line: 3").count(),
        9,
        "{print}"
    );
    assert!(print.contains("demo.Cpu.main() line: 14"), "{print}");
    assert!(print.contains("objectClass = byte[]"), "{print}");
    assert!(
        print.contains("weight = 1.6 kB") || print.contains("weight = 1600 bytes"),
        "{print}"
    );
    assert!(print.contains("duration = 10.0 ms"), "{print}");
    assert!(print.contains("\"main\""), "{print}");
    assert!(print.contains("value = \"20 ms\""), "{print}");
    assert!(print.contains("text = \"3 lost: samples\""), "{print}");
    // Live objects: ten arrays of eighty bytes.
    assert!(print.contains("objectSize = 800 bytes"), "{print}");
    assert!(print.contains("objects = 10"), "{print}");
    assert!(print.contains("10 objects"), "{print}");
}

const WALL: &str = "\
TRACE 300001:
\tdemo.Cpu.hot(Cpu.java:3)
TRACE 300002:
\tdemo.Cpu.rest(Cpu.java:9)
WALL RUNNING (ms) BEGIN (total = 40) Sat Nov 21 04:57:27 2026
   1 100.00% 100.00%       4 300001 demo.Cpu.hot
WALL RUNNING (ms) END
WALL WAITING (ms) BEGIN (total = 500) Sat Nov 21 04:57:27 2026
   1 80.00% 80.00%      39 300002 demo.Cpu.rest
   2 20.00% 100.00%      11 300001 demo.Cpu.hot
WALL WAITING (ms) END
";

#[test]
fn elapsed_time_comes_back_from_a_recording() {
    let (profile, _) = ::profile::read(WALL.as_bytes()).expect("a profile");
    let metrics = [Metric::WallRunning, Metric::WallWaiting];
    let sums = |profile: &Profile| {
        metrics.map(|metric| {
            let stacks = profile.stacks(metric);
            let mut rows: Vec<_> = stacks
                .map(|stack| (profile.path(&stack), stack.value))
                .collect();
            rows.sort();
            rows
        })
    };
    let expected = sums(&profile);
    assert_eq!([expected[0].len(), expected[1].len()], [1, 2]);
    let recording = render(&profile, Form::Plain(write::Form::Jfr), None, "demo");
    let (again, _) = ::profile::read(&recording).expect("a recording");
    assert_eq!(again.metrics(), metrics);
    assert_eq!(sums(&again), expected);
    let waiting = render(
        &profile,
        Form::Plain(write::Form::Collapsed),
        Some(Metric::WallWaiting),
        "demo",
    );
    assert_eq!(
        waiting,
        b"demo.Cpu.hot 100000000\ndemo.Cpu.rest 400000000\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wall.jfr");
    std::fs::write(&path, recording).expect("written");
    let path = path.display().to_string();
    if let Some((ok, print)) = output("jfr", &["print", "--events", "WallClockSample", &path]) {
        assert!(ok, "{print}");
        assert!(print.contains("state = \"STATE_SLEEPING\""), "{print}");
        assert!(print.contains("weight = 400 ms"), "{print}");
    }
}

#[test]
fn the_jdk_prints_allocations_at_their_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("timed.jfr");
    let profile = profile();
    let stacks: Vec<_> = profile.stacks(Metric::AllocatedBytes).collect();
    let begin_ms = 1_763_700_000_000;
    let allocation = |time_ms, bytes| Allocation {
        time_ms,
        class: stacks[0].class.expect("a class"),
        trace: stacks[0].trace,
        bytes,
    };
    let timed = Timed {
        begin_ms,
        end_ms: begin_ms + 9000,
        allocations: vec![allocation(begin_ms, 24), allocation(begin_ms + 2500, 48)],
    };
    let metrics = [Metric::AllocatedBytes, Metric::LiveBytes];
    std::fs::write(&path, jfr::write_timed(&profile, &metrics, &timed)).expect("written");
    let path = path.display().to_string();
    let Some((ok, print)) = output(
        "jfr",
        &[
            "print",
            "--events",
            "ObjectAllocationSample,OldObjectSample",
            &path,
        ],
    ) else {
        return;
    };
    assert!(ok, "{print}");
    // Minutes and seconds: hours are those of the time zone. Older tools say no date.
    let starts = print.split("startTime = ").skip(1);
    let seconds: Vec<f64> = starts
        .map(|rest| {
            let clock = rest.split([' ', '\n']).next().unwrap_or_default();
            let mut parts = clock.rsplit(':');
            let seconds: f64 = parts.next().and_then(|s| s.parse().ok()).expect(rest);
            seconds
                + 60.0
                    * parts
                        .next()
                        .and_then(|m| m.parse::<f64>().ok())
                        .expect(rest)
        })
        .collect();
    let after: Vec<f64> = seconds.iter().map(|one| one - seconds[0]).collect();
    assert_eq!(after, [0.0, 2.5, 9.0], "{print}");
    for weight in [
        "weight = 24 bytes",
        "weight = 48 bytes",
        "objectSize = 800 bytes",
    ] {
        assert!(print.contains(weight), "{weight}: {print}");
    }
}

#[test]
fn gprof2dot_reads_collapsed_stacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(
        folder.path(),
        "demo.collapsed",
        Form::Plain(write::Form::Collapsed),
    );
    let program = std::env::var("GPROF2DOT").unwrap_or_else(|_| "gprof2dot".to_owned());
    let Some((ok, dot)) = output(&program, &["-f", "collapse", &path]) else {
        return;
    };
    assert!(ok, "{dot}");
    assert!(dot.contains("demo.Cpu.hot"), "{dot}");
}

#[test]
fn pprof_reads_the_protobuf() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), "demo.pb.gz", Form::Plain(write::Form::Pprof));
    let Some((ok, top)) = output("go", &["tool", "pprof", "-top", &path]) else {
        return;
    };
    assert!(ok, "{top}");
    assert!(top.contains("demo.Cpu.hot"), "{top}");
}
