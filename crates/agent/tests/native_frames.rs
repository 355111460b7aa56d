//! Samples with the frames of native code and of the kernel (`frames=`).

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::common::Ran;
use crate::common::stage::{frames_of, samples_under};

/// The samples of a profile: how many there are of each stack, and its frames, innermost first.
fn stacks(profile: &str) -> Vec<(u64, Vec<&str>)> {
    let table = profile.rsplit("CPU SAMPLES BEGIN").next();
    let table = table.and_then(|table| table.split("CPU SAMPLES END").next());
    let rows = table.unwrap_or_default().lines();
    let row = |row: &str| {
        let words: Vec<&str> = row.split_whitespace().collect();
        let count = words.get(3)?.parse().ok()?;
        Some((count, frames_of(profile, words.get(4)?)))
    };
    rows.filter_map(row).collect()
}

/// Samples whose stacks satisfy `is_so`.
fn count(profile: &str, is_so: impl Fn(&[&str]) -> bool) -> u64 {
    let stacks = stacks(profile);
    let such = stacks.iter().filter(|(_, frames)| is_so(frames));
    such.map(|(count, _)| count).sum()
}

/// Whether the stack continues, from its frame that begins so, with frames that begin with the others.
fn has(frames: &[&str], row: &[&str]) -> bool {
    let fits = |part: &[&str]| {
        part.iter()
            .zip(row)
            .all(|(frame, begin)| frame.starts_with(begin))
    };
    frames.windows(row.len()).any(fits)
}

/// Requests every sample and whole stacks.
const ALL: &str = "cpu=samples,interval=1,cutoff=0,depth=64";

fn checked(ran: &Ran, what: &str) -> String {
    assert_eq!(ran.stdout(), "done\n", "{what}: {}", ran.stderr());
    assert_eq!(ran.output.status.code(), Some(0), "{what}");
    ran.profile()
}

#[test]
fn native_frames_stand_above_the_java_method_that_called_them() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(library) = lab.library("spun.c", folder.path()) else {
        return;
    };
    let Some(classes) = lab.compile("InNative.java", 8) else {
        return;
    };
    let library = library.to_string_lossy();
    for jdk in &lab.jdks {
        let options = format!("{ALL},frames=native");
        // The rules of the library are read while the program does something else.
        let program = ["InNative", "deflate", &*library];
        let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &program);
        let what = &jdk.full_version;
        let profile = checked(&ran, what);
        // All that is between the innermost function and the program's method.
        let row = [
            "libspun.so.inner(",
            "libspun.so.spun_outer(",
            "libspun.so.Java_InNative_spin(",
            "InNative.spin(",
            "InNative.main(",
        ];
        let whole = count(&profile, |frames| {
            has(frames, &row) && frames.len() == row.len()
        });
        // All samples there, with or without Java frames.
        let all = count(&profile, |frames| has(frames, &row[..1]));
        assert!(
            whole > 20 && whole * 10 > all * 8,
            "{whole} of {all} on {what}\n{profile}"
        );
        let is_zip = |frame: &str| frame.starts_with("libz");
        let zip = count(&profile, |frames| {
            frames.first().is_some_and(|frame| is_zip(frame))
                && frames
                    .iter()
                    .any(|frame| frame.starts_with("InNative.compress("))
        });
        let all = count(&profile, |frames| {
            frames.first().is_some_and(|frame| is_zip(frame))
        });
        assert!(
            zip > 10 && zip * 10 > all * 8,
            "{zip} of {all} on {what}\n{profile}"
        );
        // Java stands below, in one piece.
        for (_, frames) in stacks(&profile) {
            let is_native = |frame: &&&str| frame.contains(".so.");
            let native = frames.iter().take_while(is_native).count();
            let behind = frames[native..].iter().filter(is_native).count();
            assert_eq!(behind, 0, "{frames:?} on {what}");
        }
        assert!(!profile.contains("NOTE: CPU samples have no"), "{what}");
    }
}

#[test]
fn samples_have_java_frames_only_unless_others_are_requested() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("InNative.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        for options in [ALL.to_owned(), format!("{ALL},frames=java")] {
            let program = ["InNative", "deflate", "gc"];
            let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &program);
            let profile = checked(&ran, &options);
            assert!(
                samples_under(&profile, "InNative.compress(") > 20,
                "{profile}"
            );
            assert!(!profile.contains(".so."), "{options}\n{profile}");
        }
    }
}

#[test]
fn threads_of_the_vm_have_their_native_frames_above_their_names() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Collected.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let options = format!("{ALL},frames=native");
        let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &["Collected"]);
        assert_eq!(ran.stdout(), "collected\n", "{}", ran.stderr());
        let profile = ran.profile();
        let is_collector = |frames: &[&str]| {
            let last = frames.last().copied().unwrap_or_default();
            ["GC", "G1", "VM_Thread"]
                .iter()
                .any(|kind| last.starts_with("NativeThread.") && last.contains(kind))
        };
        let all = count(&profile, is_collector);
        let in_vm = count(&profile, |frames| {
            is_collector(frames) && frames.iter().any(|frame| frame.starts_with("libjvm.so."))
        });
        let what = &jdk.full_version;
        assert!(
            in_vm > 5 && in_vm * 2 > all,
            "{in_vm} of {all} on {what}\n{profile}"
        );
        let deep = count(&profile, |frames| is_collector(frames) && frames.len() > 4);
        assert!(deep * 2 > all, "{deep} of {all} on {what}\n{profile}");
    }
}

#[test]
fn java_stands_below_native_frames_in_a_pause_too() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Paused.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let options = format!("{ALL},frames=native");
        let ran = lab.run_as(jdk, classes.path(), Some(&options), |java| {
            java.args(["-XX:+UseG1GC", "-Xmx200m", "Paused"]);
        });
        let profile = ran.profile();
        let what = format!("{}: {}\n{profile}", jdk.full_version, ran.stderr());
        let is_zip = |frames: &[&str]| frames[0].starts_with("libz");
        let whole = count(&profile, |frames| {
            is_zip(frames)
                && frames
                    .iter()
                    .any(|frame| frame.starts_with("Paused.compresses("))
        });
        let all = count(&profile, is_zip);
        assert!(
            all > 5 && whole * 100 > all * 90,
            "{whole} of {all} on {what}"
        );
        // What is missing has a name and is counted.
        let missing = |name: &str| {
            count(&profile, |frames| {
                frames.last().is_some_and(|last| last.contains(name))
            })
        };
        for (name, why) in [
            ("(GC_pause)", "taken in a GC pause"),
            ("(unknown_stack)", "stack not walkable"),
        ] {
            let note = format!("{} lost: Java frames of samples: {why}", missing(name));
            let is_noted = profile.contains(&note);
            assert_eq!(is_noted, missing(name) > 0, "{note} on {what}");
        }
    }
}

/// Whether the system gives kernel frames to this user.
fn kernel_is_open() -> bool {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let level = level
        .ok()
        .and_then(|level| level.trim().parse::<i32>().ok());
    // SAFETY: takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    level.is_some_and(|level| is_root || level <= 1)
}

#[test]
fn kernel_frames_stand_above_those_of_the_library_that_called_the_system() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("InNative.java", 8) else {
        return;
    };
    if !kernel_is_open() {
        let why = "kernel.perf_event_paranoid is above 1";
        return testkit::skip("kernel frames", testkit::Need::Root, why);
    }
    for jdk in &lab.jdks {
        let options = format!("{ALL},frames=kernel");
        let program = ["InNative", "kernel", "gc"];
        let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &program);
        let what = &jdk.full_version;
        let profile = checked(&ran, what);
        if ran.stderr().contains("CPU samples have no kernel frames") {
            // A container may refuse it whatever the system's setting is.
            return testkit::skip("kernel frames", testkit::Need::Root, &ran.stderr());
        }
        let is_kernel = |frame: &&str| frame.starts_with("kernel.");
        let inside = count(&profile, |frames| {
            let kernel = frames.iter().take_while(|frame| is_kernel(frame)).count();
            kernel > 0 && frames[kernel].contains(".so") && has(frames, &["InNative.fromKernel("])
        });
        let all = samples_under(&profile, "InNative.fromKernel(");
        assert!(
            inside > 20 && inside * 3 > all,
            "{inside} of {all} on {what}\n{profile}"
        );
        assert!(!profile.contains("NOTE: CPU samples have no"), "{what}");
    }
}

/// Lets the system refuse `perf_event_open`, as containers do.
fn without_events(java: &mut Command) {
    let forbid = || {
        const LOAD_NUMBER: u16 = 0x20;
        const IS_EQUAL: u16 = 0x15;
        const RETURN: u16 = 0x06;
        const REFUSE: u32 = 0x0005_0000 | libc::EPERM as u32;
        const ALLOW: u32 = 0x7fff_0000;
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let mut steps = [
            step(LOAD_NUMBER, 0, 0, 0),
            step(IS_EQUAL, 0, 1, libc::SYS_perf_event_open as u32),
            step(RETURN, 0, 0, REFUSE),
            step(RETURN, 0, 0, ALLOW),
        ];
        let program = libc::sock_fprog {
            len: steps.len() as u16,
            filter: steps.as_mut_ptr(),
        };
        // SAFETY: the two calls take numbers and a pointer to a live local.
        let results = unsafe {
            [
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
                libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                ),
            ]
        };
        match results {
            [0, 0] => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: `prctl` may be called between fork and exec, and nothing else is.
    unsafe { java.pre_exec(forbid) };
}

#[test]
fn where_kernel_frames_are_refused_it_is_reported_once_and_native_frames_remain() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("InNative.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        let options = format!("{ALL},frames=kernel");
        let ran = lab.run_as(jdk, classes.path(), Some(&options), |java| {
            without_events(java);
            java.args(["InNative", "deflate", "kernel"]);
        });
        let what = &jdk.full_version;
        let profile = checked(&ran, what);
        let words = "CPU samples have no kernel frames: the system refuses perf_event_open";
        assert_eq!(ran.stderr().matches(words).count(), 1, "{}", ran.stderr());
        assert_eq!(
            profile.matches(&format!("NOTE: {words}")).count(),
            1,
            "{profile}"
        );
        assert!(!profile.contains("\tkernel."), "{profile}");
        let zip = count(&profile, |frames| frames[0].starts_with("libz"));
        assert!(zip > 20, "{zip}\n{profile}");
    }
}

#[test]
fn threads_that_wait_show_where_in_the_c_library() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Sleepy.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        let options = Some("wall=5ms,frames=native,depth=16,cutoff=0");
        let ran = lab.run_in(jdk, classes.path(), options, &[], &["Sleepy"]);
        assert_eq!(ran.stdout(), "slept\n", "{}", ran.stderr());
        let profile = ran.profile();
        let asleep = profile.split("TRACE ").filter(|trace| {
            let frames: Vec<&str> = trace.lines().skip(1).map(str::trim).collect();
            has(&frames, &["Sleepy.asleep("]) && frames[0].starts_with("libc.")
        });
        assert!(asleep.count() > 0, "{profile}");
    }
}
