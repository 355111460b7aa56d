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
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let tenure = Command::new(testkit::built::tenure())
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("tenure runs");
    let errors = String::from_utf8_lossy(&tenure.stderr);
    assert!(tenure.status.success(), "{arguments:?}: {errors}");
    String::from_utf8_lossy(&tenure.stdout).into_owned()
}

/// Bytes of all `byte[]` in a dump.
fn bytes_of_arrays(folder: &Path, dump: &str) -> u64 {
    let histogram = printed(folder, &["histogram", dump, "--json", "--no-retained"]);
    let histogram: serde_json::Value = serde_json::from_str(&histogram).expect("JSON");
    let rows = histogram["rows"].as_array().expect("rows");
    let arrays = rows.iter().find(|row| row["class"] == "byte[]");
    let bytes = arrays.expect("arrays of bytes")["shallow"].as_u64();
    bytes.expect("a number")
}

#[test]
fn what_was_recorded_is_written_when_the_vm_reports_no_end() {
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
        let threads = printed(folder, &["threads", "out.hprof"]);
        assert!(threads.contains("Exhausted.fill"), "{threads}");
        let threads = printed(folder, &["threads", "out.hprof#2"]);
        assert!(!threads.contains("Exhausted.fill"), "{threads}");
        for dump in ["out.hprof", "out.hprof#2"] {
            let bytes = bytes_of_arrays(folder, dump);
            assert!(bytes > 2_000_000, "{dump}: {bytes}");
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

/// A run of `Overflow` in the folder of another program's files, and what is in that folder afterwards.
fn overflow(
    (lab, classes, jdk): (&Lab, &Path, &Jdk),
    options: Option<&str>,
    flags: &[&str],
    prepare: impl FnOnce(&mut Command),
) -> (Ran, Vec<String>) {
    let ran = lab.run_as(jdk, classes, options, |java| {
        // The VM's own line about the event goes to standard output.
        let quiet = (jdk.version > 8).then_some("-Xlog:jvmti=off");
        java.arg("-Xmx40m").args(quiet).args(flags).arg("Overflow");
        prepare(java);
    });
    let entries = std::fs::read_dir(ran.folder.path()).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    let what = format!("{options:?} on {}: {}", jdk.full_version, ran.stderr());
    assert_eq!(ran.output.status.code(), Some(7), "{what}");
    assert_eq!(
        ran.stdout(),
        "array refused\nfull 0\nfull 1\nfull 2\n",
        "{what}"
    );
    (ran, names)
}

/// The map is held by its class, and by the frame that puts something into it.
fn names_the_leak(leaks: &str) {
    let holders = ["Overflow.CACHE", "Overflow.fill"];
    let is_named = holders.iter().any(|holder| leaks.contains(holder));
    assert!(is_named && leaks.contains("java.util.HashMap"), "{leaks}");
}

/// The lines of the agent.
fn notes(ran: &Ran) -> Vec<String> {
    let stderr = ran.stderr();
    let lines = stderr.lines().filter(|line| line.starts_with("HPROF"));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_first_error_makes_a_snapshot_and_the_program_goes_on() {
    let Some(lab) = lab() else { return };
    let Some(classes) = lab.compile("Overflow.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let run = |options| overflow((lab, classes.path(), jdk), options, &[], |_| ());
        let (plain, names) = run(None);
        assert_eq!(names, [""; 0]);
        let (ran, names) = run(Some("oom=snapshot"));
        let [name] = &names[..] else {
            panic!("{}: {names:?} {}", jdk.full_version, ran.stderr());
        };
        assert!(
            name.starts_with("oom-") && name.ends_with(".hprof"),
            "{name}"
        );
        let notes = notes(&ran);
        let [note] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(note.contains(name.as_str()), "{note}");
        assert!(note.contains("the program was stopped for "), "{note}");
        assert_eq!(
            ran.stderr().replace(&format!("{note}\n"), ""),
            plain.stderr()
        );
        names_the_leak(&printed(ran.folder.path(), &["leaks", name]));
        // The error of an array that no heap can hold came before, when the map was empty.
        assert!(bytes_of_arrays(ran.folder.path(), name) > 30_000_000);
        let threads = printed(ran.folder.path(), &["threads", name]);
        assert!(threads.contains("Overflow.fill"), "{threads}");
    }
}

#[test]
fn a_snapshot_is_beside_the_output_and_beside_what_the_vm_dumps_itself() {
    let Some(lab) = lab() else { return };
    let Some(classes) = lab.compile("Overflow.java", 8) else {
        return;
    };
    let recorded = ["heap=sites,oom=snapshot", "oom=snapshot"];
    for (jdk, what) in lab
        .jdks
        .iter()
        .flat_map(|jdk| recorded.map(|what| (jdk, what)))
    {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("out.txt");
        let options = format!("{what},file={}", file.display());
        let flags = [
            "-XX:+HeapDumpOnOutOfMemoryError",
            "-XX:HeapDumpPath=own.hprof",
        ];
        let ran = lab.run_as(jdk, classes.path(), Some(&options), |java| {
            java.arg("-Xmx40m").args(flags).arg("Overflow");
        });
        assert_eq!(ran.output.status.code(), Some(7), "{}", ran.stderr());
        let profile = std::fs::read_to_string(&file).unwrap_or_default();
        let has_sites = what.starts_with("heap=sites");
        assert_eq!(profile.contains("SITES END"), has_sites, "{profile}");
        let entries = std::fs::read_dir(folder.path()).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").path());
        let snapshots: Vec<_> = names.filter(|path| *path != file).collect();
        let [snapshot] = &snapshots[..] else {
            panic!("{snapshots:?} {}", ran.stderr());
        };
        let snapshot = snapshot.to_str().expect("a name");
        names_the_leak(&printed(ran.folder.path(), &["leaks", snapshot]));
        // The VM dumps at the error of the array.
        for dump in [snapshot, "own.hprof"] {
            let checked = printed(ran.folder.path(), &["validate", dump]);
            assert!(checked.contains("The file is whole."), "{dump}: {checked}");
        }
    }
}

#[test]
fn a_program_goes_on_when_there_can_be_no_snapshot() {
    let Some(lab) = lab() else { return };
    let Some(classes) = lab.compile("Overflow.java", 8) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(refusing) = lab.library("refuse_fork.c", folder.path()) else {
        return;
    };
    for jdk in lab.some_jdks() {
        let setup = (lab, classes.path(), jdk);
        let check = |(ran, names): (Ran, Vec<String>), reason: &str| {
            assert_eq!(names, [""; 0], "{reason}");
            let notes = notes(&ran);
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(notes[0].contains("there is no snapshot of it"), "{notes:?}");
            assert!(notes[0].contains(reason), "{notes:?}");
        };
        let snapshot = Some("oom=snapshot");
        let refused = |java: &mut Command| {
            java.env("LD_PRELOAD", &refusing);
        };
        check(
            overflow(setup, snapshot, &[], refused),
            "could not be copied: Cannot allocate memory",
        );
        let limited = Some("oom=snapshot,cow-limit=0");
        check(
            overflow(setup, limited, &[], |_| ()),
            "more than the limit of 0 KiB allows",
        );
        let zgc = ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"];
        if jdk.version > 11 {
            check(overflow(setup, snapshot, &zgc, |_| ()), "uses ZGC");
        }
        // Files of more than so many blocks of 512 bytes cannot be written.
        let full = |java: &mut Command| {
            let mut limited = Command::new("sh");
            limited.args(["-c", "ulimit -f 2000; exec \"$@\"", "sh"]);
            limited.arg(java.get_program()).args(java.get_args());
            for (name, value) in java.get_envs() {
                match value {
                    Some(value) => limited.env(name, value),
                    None => limited.env_remove(name),
                };
            }
            if let Some(folder) = java.get_current_dir() {
                limited.current_dir(folder);
            }
            *java = limited;
        };
        check(
            overflow(setup, snapshot, &[], full),
            "cannot write the dump: File too large",
        );
    }
}

#[test]
fn a_program_whose_main_method_ends_waits_for_its_snapshot() {
    let Some(lab) = lab() else { return };
    let Some(classes) = lab.compile("Caught.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let flags = ["-Xmx64m", "-XX:+UseSerialGC"];
        let ran = lab.run_in(
            jdk,
            classes.path(),
            Some("oom=snapshot"),
            &flags,
            &["Caught"],
        );
        let what = format!("{}: {}", jdk.full_version, ran.stderr());
        assert_eq!(ran.output.status.code(), Some(0), "{what}");
        let folder = ran.folder.path();
        let entries = std::fs::read_dir(folder).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let dumps: Vec<String> = names.filter(|name| name.starts_with("oom-")).collect();
        let [dump] = dumps.as_slice() else {
            panic!("{dumps:?} {what}");
        };
        assert!(dump.ends_with(".hprof"), "{dump} {what}");
        assert!(bytes_of_arrays(folder, dump) > 40_000_000, "{what}");
    }
}
