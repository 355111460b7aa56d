//! Programs that end because their heap is full: the launcher cannot even attach the thread that
//! would end the VM, and leaves. Nothing that was recorded may be lost.

use std::path::Path;
use std::process::Command;

use crate::common::{Lab, Ran, lab};
use testkit::jvm::Jdk;

fn exhausted(lab: &Lab, classes: &Path, jdk: &Jdk, options: &str) -> Ran {
    let ran = lab.run_in(jdk, classes, Some(options), &["-Xmx24m"], &["Exhausted"]);
    // These VMs may take themselves down while other threads run on (17 with Serial), without an
    // agent, too.
    let code = ran.output.status.code();
    let may_fall = matches!(jdk.version, 8 | 17);
    let fell = may_fall && ran.stderr().contains("pure virtual method called");
    assert!(
        code == Some(1) || fell,
        "{} {options}: {code:?} {}",
        jdk.full_version,
        ran.stderr()
    );
    ran
}

/// What `tenure` says of a file, in lines.
fn said(folder: &Path, arguments: &[&str]) -> String {
    let tenure = Command::new(testkit::built::tenure())
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("tenure runs");
    let errors = String::from_utf8_lossy(&tenure.stderr);
    assert!(tenure.status.success(), "{arguments:?}: {errors}");
    String::from_utf8_lossy(&tenure.stdout).into_owned()
}

#[test]
fn what_was_recorded_is_written_when_the_vm_cannot_tell_its_end() {
    let Some(lab) = lab() else { return };
    let Some(classes) = lab.compile("Exhausted.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let ends = [
            ("heap=dump", "HEAP DUMP END"),
            ("heap=sites", "SITES END"),
            ("cpu=samples", "CPU SAMPLES END"),
            ("cpu=times", "CPU TIME (ms) END"),
        ];
        for (options, end) in ends {
            let profile = exhausted(lab, classes.path(), jdk, options).profile();
            assert!(
                profile.lines().any(|line| line == end),
                "{} {options}: {} bytes",
                jdk.full_version,
                profile.len()
            );
        }
    }
}

#[test]
fn the_first_error_is_dumped_with_what_its_thread_holds() {
    let Some(lab) = lab() else { return };
    let Some(classes) = lab.compile("Exhausted.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let options = "heap=dump,format=b,modern=y,file=out.hprof";
        let ran = exhausted(lab, classes.path(), jdk, options);
        let folder = ran.folder.path();
        let threads = said(folder, &["threads", "out.hprof"]);
        assert!(threads.contains("Exhausted.fill"), "{threads}");
        let threads = said(folder, &["threads", "out.hprof#2"]);
        assert!(!threads.contains("Exhausted.fill"), "{threads}");
        for dump in ["out.hprof", "out.hprof#2"] {
            let histogram = said(folder, &["histogram", dump, "--json", "--no-retained"]);
            let histogram: serde_json::Value = serde_json::from_str(&histogram).expect("JSON");
            let rows = histogram["rows"].as_array().expect("rows");
            let arrays = rows.iter().find(|row| row["class"] == "byte[]");
            let bytes = arrays.expect("arrays of bytes")["shallow"].as_u64();
            assert!(bytes > Some(2_000_000), "{dump}: {arrays:?}");
        }
    }
}

#[test]
fn the_original_mode_is_asked_for_a_dump_at_the_first_error() {
    let Some(lab) = lab() else { return };
    let Some(classes) = lab.compile("Exhausted.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        for (options, dumps) in [("heap=dump", 1), ("heap=dump,oom=y", 2)] {
            let profile = exhausted(lab, classes.path(), jdk, options).profile();
            let ends = profile.lines().filter(|line| *line == "HEAP DUMP END");
            assert_eq!(ends.count(), dumps, "{} {options}", jdk.full_version);
        }
    }
}

#[test]
fn calls_deeper_than_memory_allows_throw_nothing() {
    let Some(lab) = lab() else { return };
    let Some(classes) = lab.compile("Full.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let flags = ["-Xmx16m", "-XX:+UseSerialGC"];
        for options in [None, Some("cpu=times"), Some("heap=sites")] {
            let ran = lab.run_in(jdk, classes.path(), options, &flags, &["Full"]);
            let what = format!("{options:?} on {}: {}", jdk.full_version, ran.stderr());
            assert_eq!(ran.stdout(), "depth 3000\n", "{what}");
        }
    }
}
