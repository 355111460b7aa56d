//! Samples where something that they need is missing, which is reported; and samples of threads that wait.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::common::Ran;
use crate::common::stage::{frames_of, ms_under, samples_under};

/// Samples below a method, and the words that say how they were taken.
fn check(ran: &Ran, why: &str, what: &str) {
    let words = format!("CPU samples are taken at safepoints: {why}");
    let profile = ran.profile();
    assert_eq!(ran.stdout(), "busy\n", "{what}: {}", ran.stderr());
    assert_eq!(ran.output.status.code(), Some(0), "{what}");
    let lines: Vec<String> = ran.stderr().lines().map(str::to_owned).collect();
    let received = format!("HPROF: {words}");
    let count = lines.iter().filter(|line| **line == received).count();
    assert_eq!(count, 1, "{what}: {lines:?}");
    assert!(profile.contains(&format!("NOTE: {words}\n")), "{what}");
    let table = profile.split("CPU SAMPLES BEGIN").nth(1);
    let rows = table.unwrap_or_default().lines();
    let rows = rows.filter(|row| row.contains(" Busy."));
    let samples = rows.filter_map(|row| row.split_whitespace().nth(3)?.parse::<u64>().ok());
    assert!(samples.sum::<u64>() > 0, "{what}\n{profile}");
}

#[test]
fn a_vm_without_the_symbol_is_sampled_at_safepoints() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(library) = lab.library("symbols.c", folder.path()) else {
        return;
    };
    let Some(classes) = lab.compile("Busy.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        let options = Some("cpu=samples,interval=2");
        let ran = lab.run_as(jdk, classes.path(), options, |java| {
            java.env("LD_PRELOAD", &library).arg("Busy");
        });
        check(&ran, "this VM has no AsyncGetCallTrace", &jdk.full_version);
    }
}

/// Lets the process have no signal in a queue, so that the system refuses it timers.
fn without_timers(java: &mut Command) {
    let forbid = || {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the structure is a live local.
        match unsafe { libc::setrlimit(libc::RLIMIT_SIGPENDING, &raw const none) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: `setrlimit` may be called between fork and exec, and nothing else is.
    unsafe { java.pre_exec(forbid) };
}

#[test]
fn a_program_that_may_have_no_timers_is_sampled_at_safepoints() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Busy.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        let options = Some("cpu=samples,interval=2");
        let ran = lab.run_as(jdk, classes.path(), options, |java| {
            without_timers(java);
            java.arg("Busy");
        });
        let why = "the system gives no timers on CPU time";
        check(&ran, why, &jdk.full_version);
    }
}

#[test]
fn safepoints_that_were_asked_for_are_not_remarked() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Busy.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        for options in [
            "cpu=samples,interval=2",
            "cpu=samples,interval=2,safepoint=y",
        ] {
            let ran = lab.run_in(jdk, classes.path(), Some(options), &[], &["Busy"]);
            assert!(!ran.stderr().contains("safepoint"), "{}", ran.stderr());
            let profile = ran.profile();
            assert!(!profile.contains("safepoint"), "{options}");
            assert!(profile.contains(" Busy."), "{options}\n{profile}");
        }
    }
}

#[test]
fn a_thread_that_sleeps_is_sampled_only_when_asked_for() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Sleepy.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        for options in [
            "cpu=samples,interval=10,depth=8",
            "cpu=samples,interval=10,depth=8,safepoint=y",
            "cpu=samples,interval=10,depth=8,wall=10ms",
        ] {
            let options = format!("{options},cutoff=0");
            let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &["Sleepy"]);
            let what = format!("{options} on {}: {}", jdk.full_version, ran.stderr());
            assert_eq!(ran.stdout(), "slept\n", "{what}");
            let profile = ran.profile();
            let asleep = samples_under(&profile, "Sleepy.asleep(");
            assert!(samples_under(&profile, "Sleepy.awake(") > 0, "{what}");
            // It sleeps for 1.5 seconds, in which there are up to 150 samples. That it is met on its way into that or out of
            // it is chance.
            assert!(asleep < 10, "{asleep} samples, {what}");
        }
    }
}

#[test]
fn elapsed_time_of_running_and_of_waiting_threads_is_kept_apart() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Sleepy.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        for options in ["wall=5ms", "wall=5ms,safepoint=y", "cpu=samples,wall=y"] {
            let options = format!("{options},depth=8,cutoff=0");
            let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &["Sleepy"]);
            let what = format!("{options} on {}: {}", jdk.full_version, ran.stderr());
            assert_eq!(ran.stdout(), "slept\n", "{what}");
            let profile = ran.profile();
            let [running, waiting] = ["RUNNING", "WAITING"].map(|state| {
                let title = format!("WALL {state} (ms)");
                ["asleep", "awake"]
                    .map(|method| ms_under(&profile, &title, &format!("Sleepy.{method}(")))
            });
            // It sleeps for 1.5 seconds, or longer on a busy machine; the other works for half a second or more.
            assert!(waiting[0] > 1200.0, "{waiting:?} {what}\n{profile}");
            // A late sample as it wakes up may count as running.
            assert!(running[0] < waiting[0] / 3.0, "{running:?} {what}");
            assert!(running[1] > 300.0, "{running:?} {what}");
            assert!(waiting[1] < running[1] / 2.0, "{waiting:?} {what}");
            assert!(
                profile.contains("NOTE: wall-clock samples: "),
                "{what}\n{profile}"
            );
            let has_samples = profile.contains("CPU SAMPLES END");
            assert_eq!(has_samples, options.contains("cpu=samples"), "{what}");
        }
    }
}

#[test]
fn the_elapsed_time_of_a_thread_is_counted_in_full_though_the_vm_pauses() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Paused.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        for options in ["wall=10ms", "wall=10ms,frames=native"] {
            let all = format!("{options},depth=16,cutoff=0");
            let ran = lab.run_as(jdk, classes.path(), Some(&all), |java| {
                java.args(["-XX:+UseG1GC", "-Xmx200m", "Paused"]);
            });
            let profile = ran.profile();
            let what = format!(
                "{options} on {}: {}\n{profile}",
                jdk.full_version,
                ran.stderr()
            );
            let passed = ran.stdout();
            assert_eq!(passed.lines().count(), 4, "{passed}{what}");
            for line in passed.lines() {
                let (method, passed) = line.split_once(' ').expect("a method and milliseconds");
                let passed: f64 = passed.parse().expect("milliseconds");
                let frame = format!("Paused.{method}(");
                let counted = ["WALL RUNNING (ms)", "WALL WAITING (ms)"]
                    .map(|title| ms_under(&profile, title, &frame));
                let sum: f64 = counted.iter().sum();
                let is_all = sum > passed * 0.8 && sum < passed * 1.1;
                assert!(is_all, "{method}: {counted:?} of {passed} ms, {what}");
            }
        }
    }
}

#[test]
fn the_elapsed_time_after_the_last_sample_of_a_thread_is_counted() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Crowd.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        // Each of 160 threads has its turn every 0.4 s.
        let options = Some("wall=20ms,depth=16,cutoff=0");
        let ran = lab.run_in(jdk, classes.path(), options, &[], &["Crowd"]);
        let profile = ran.profile();
        let what = format!("{}: {}\n{profile}", jdk.full_version, ran.stderr());
        let passed = ran.stdout();
        assert_eq!(passed.lines().count(), 2, "{passed}{what}");
        for line in passed.lines() {
            let (method, passed) = line.split_once(' ').expect("a method and milliseconds");
            let passed: f64 = passed.parse().expect("milliseconds");
            let frame = format!("Crowd.{method}(");
            let counted = ["WALL RUNNING (ms)", "WALL WAITING (ms)"]
                .map(|title| ms_under(&profile, title, &frame));
            let sum: f64 = counted.iter().sum();
            let is_all = sum > passed * 0.93 && sum < passed * 1.07;
            assert!(is_all, "{method}: {counted:?} of {passed} ms, {what}");
        }
    }
}

#[test]
fn threads_that_wait_for_a_monitor_in_compiled_code_are_in_wall_clock_samples() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Waits.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        for flag in ["-XX:+TieredCompilation", "-XX:TieredStopAtLevel=1"] {
            let ran = lab.run_as(
                jdk,
                classes.path(),
                Some("wall=5ms,depth=8,cutoff=0"),
                |java| {
                    java.args([flag, "Waits"]);
                },
            );
            let profile = ran.profile();
            let what = format!(
                "{flag} on {}: {}\n{profile}",
                jdk.full_version,
                ran.stderr()
            );
            let elapsed: f64 = ran.stdout().trim().parse().expect(&what);
            // Of up to three times as long: on a busy machine threads also wait for a processor.
            let waited = ms_under(&profile, "WALL WAITING (ms)", "Waits.locked(");
            assert!(waited > elapsed / 2.0, "{waited} of {elapsed} ms: {what}");
        }
    }
}

#[test]
fn elapsed_time_until_threads_have_stopped_is_that_of_the_method_that_has_not_stopped() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Stalls.java", 8) else {
        return;
    };
    // With both, the threads may stop for a CPU sample as well as for a wall-clock sample.
    let both = "cpu=samples,interval=7,wall=20ms,safepoint=y,depth=8,cutoff=0";
    let all = ["wall=5ms,safepoint=y,depth=8,cutoff=0", both];
    for (jdk, options) in lab.jdks.iter().flat_map(|jdk| all.map(|one| (jdk, one))) {
        let ran = lab.run_in(jdk, classes.path(), Some(options), &[], &["Stalls"]);
        let computed: f64 = ran.stdout().trim().parse().expect("milliseconds");
        let profile = ran.profile();
        let running = ms_under(&profile, "WALL RUNNING (ms)", "Stalls.computes(");
        let waiting = ms_under(&profile, "WALL WAITING (ms)", "Stalls.");
        let what = format!(
            "{computed} ms: {running} running, {waiting} waiting, {options} on {}",
            jdk.full_version
        );
        assert!(running > computed / 2.0, "{what}\n{profile}");
        // It waits for 0.3 seconds by itself.
        assert!(waiting < 300.0 + computed / 2.0, "{what}\n{profile}");
    }
}

#[test]
fn what_a_vm_cannot_sample_is_reported_there_and_in_the_profile() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    // None but JDK 8 lacks it, which other machines may not have.
    let Some(jdk) = lab.jdks.iter().find(|jdk| jdk.version == 8) else {
        return testkit::skip(
            "sampled allocations on JDK 8",
            testkit::Need::Jdk8,
            "no JDK 8",
        );
    };
    let ran = lab.run(jdk, Some("alloc=4k"), &[], &["Known"]);
    assert_eq!(ran.stdout(), "kept 1532\n", "{}", ran.stderr());
    let words = "allocations are not sampled: that needs a JVM from JDK 11 on\n";
    assert!(ran.stderr().contains(&format!("HPROF: {words}")));
    assert!(ran.profile().contains(&format!("NOTE: {words}")));
}

#[test]
fn samples_fall_where_the_time_is_spent() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Busy.java", 8) else {
        return;
    };
    let options = [
        "cpu=samples,interval=1,cutoff=0,depth=4",
        "cpu=samples,interval=1,cutoff=0,depth=4,safepoint=y",
    ];
    for (jdk, options) in lab
        .jdks
        .iter()
        .flat_map(|jdk| options.map(|options| (jdk, options)))
    {
        // The agent asks the VM to record the method of each instruction. Otherwise a part of a method that the compiler
        // has put into its caller counts for the caller: a fifth of the samples, more or less.
        let ran = lab.run_in(jdk, classes.path(), Some(options), &[], &["Busy"]);
        let profile = ran.profile();
        let table = profile
            .split("CPU SAMPLES BEGIN")
            .nth(1)
            .unwrap_or_default();
        let count = |end: &str| -> u64 {
            let rows = table.lines().filter(|row| row.ends_with(end));
            rows.filter_map(|row| row.split_whitespace().nth(3)?.parse::<u64>().ok())
                .sum()
        };
        // The original gave most of it to the caller, which only waits for it.
        let (hot, others) = (
            count(" Busy.hot"),
            count(" Busy.middle") + count(" Busy.main"),
        );
        // A thread that waits in native code, and which the VM calls runnable.
        let waiting = count(".waitForReferencePendingList");
        let what = format!(
            "{options}: hot {hot}, others {others}, waiting {waiting} on {}",
            jdk.full_version
        );
        // A safepoint comes when the loop of the method has ended, and then its caller runs.
        let is_right = match options.contains("safepoint") {
            true => hot + others > 10 && waiting * 5 < hot + others,
            false => hot > 10 && (others + waiting) * 5 < hot,
        };
        assert!(is_right, "{what}\n{profile}");
    }
}

#[test]
fn stacks_of_programs_that_do_little_but_call_are_whole() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Calls.java", 8) else {
        return;
    };
    let more: [&[&str]; 3] = [
        &[],
        &["-XX:TieredStopAtLevel=1"],
        &["-XX:+PreserveFramePointer"],
    ];
    for (jdk, more) in lab.jdks.iter().flat_map(|jdk| more.map(|more| (jdk, more))) {
        // Most systems interrupt a thread every 4 ms or more often. A sample that came late counts for each missed interval.
        let options = Some("cpu=samples,interval=4,cutoff=0,depth=16");
        // Each method has a frame of its own, so that one that is missing is noticed.
        let ran = lab.run_as(jdk, classes.path(), options, |java| {
            java.arg("-XX:-Inline").args(more).arg("Calls");
        });
        let profile = ran.profile();
        let table = profile.split("CPU SAMPLES BEGIN").nth(1);
        let (mut whole, mut others) = (0, Vec::new());
        for row in table.unwrap_or_default().lines() {
            let words: Vec<&str> = row.split_whitespace().collect();
            let [_, _, _, count, trace, method] = words[..] else {
                continue;
            };
            let Ok(count) = count.parse::<u64>() else {
                continue;
            };
            let frames = frames_of(&profile, trace);
            let names = frames.iter().filter_map(|frame| frame.split('(').next());
            let stack: Vec<&str> = names.map(str::trim).collect();
            match is_known_stack(&stack) {
                true => whole += count,
                // Threads of the VM, and single samples of what is not compiled yet, which may have come late.
                false if count < 6 || method.starts_with("NativeThread.C") => {}
                false => others.push((count, stack)),
            }
        }
        let lost: u64 = others.iter().map(|(count, _)| count).sum();
        let what = format!("{more:?}, JDK {}: {others:?}", jdk.full_version);
        assert!(whole > 100 && lost * 50 < whole, "{whole} whole; {what}");
    }
}

/// Whether a stack of `Calls` has each caller of its innermost frame.
fn is_known_stack(stack: &[&str]) -> bool {
    let [calls @ .., main] = stack else {
        return false;
    };
    let outermost = ["Calls.walk", "Calls.areas"];
    let is_called = |(at, call): (usize, &&str)| match call.rsplit_once(".step") {
        Some((_, number)) => number == at.to_string(),
        None => call.ends_with(".area") && at == 1,
    };
    let Some((first, steps)) = calls.split_last() else {
        return *main == "Calls.main";
    };
    *main == "Calls.main"
        && outermost.contains(first)
        && steps
            .iter()
            .rev()
            .enumerate()
            .map(|(at, call)| (at + 1, call))
            .all(is_called)
}

#[test]
fn threads_of_the_vm_are_sampled_by_their_names() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Collected.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let options = Some("cpu=samples,interval=1,cutoff=0");
        let ran = lab.run_in(jdk, classes.path(), options, &[], &["Collected"]);
        assert_eq!(ran.stdout(), "collected\n", "{}", ran.stderr());
        let profile = ran.profile();
        let table = profile
            .split("CPU SAMPLES BEGIN")
            .nth(1)
            .unwrap_or_default();
        let rows = table.lines().filter_map(|row| {
            let (counts, name) = row.split_once(" NativeThread.")?;
            let count = counts.split_whitespace().nth(3)?;
            Some((name, count.parse::<u64>().ok()?))
        });
        let rows: Vec<(&str, u64)> = rows.collect();
        let what = format!("{rows:?} on {}\n{profile}", jdk.full_version);
        let kinds = ["GC", "G1", "VM_Thread"];
        let is_collector = |name: &str| kinds.iter().any(|kind| name.contains(kind));
        let collected = rows.iter().filter(|(name, _)| is_collector(name));
        assert!(collected.map(|row| row.1).sum::<u64>() > 5, "{what}");
        assert!(
            !rows.iter().any(|(name, _)| name.starts_with("HPROF")),
            "{what}"
        );
    }
}

#[test]
fn samples_times_the_interval_are_the_cpu_time() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Burn.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        for requested in [1.0, 10.0] {
            let options = format!("cpu=samples,interval={requested},depth=8,cutoff=0,modern=y");
            let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &["Burn"]);
            let what = format!("{options} on {}: {}", jdk.full_version, ran.stderr());
            let spent: f64 = ran.stdout().trim().parse().expect(&what);
            let profile = ran.profile();
            // A sample counts for all of the time since the last one, also on systems that interrupt a thread only every 4 ms.
            let sampled = samples_under(&profile, "Burn.burn(") as f64 * requested;
            assert!(
                (sampled / spent - 1.0).abs() < 0.2,
                "{sampled} ms of {spent}, {what}"
            );
        }
    }
}
