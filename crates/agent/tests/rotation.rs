//! Recordings that continue in file after file, and recordings that end after a time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::Lab;
use crate::common::stage::*;

/// Files with this ending, in order of their names.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(ending));
    found.sort();
    found
}

/// Waits until so many different files with this ending have been seen; the most that were there at once.
fn until_seen(folder: &Path, ending: &str, count: usize) -> usize {
    let (mut seen, mut most) = (BTreeSet::new(), 0);
    testkit::until(|| {
        let now = files(folder, ending);
        most = most.max(now.len());
        seen.extend(now);
        match seen.len() >= count {
            true => Ok(most),
            false => Err(format!("{} files", seen.len())),
        }
    })
}

/// Allocated objects of a class in a profile.
fn allocated(file: &Path, class: &str) -> u64 {
    let bytes = std::fs::read(file).expect("a file");
    let (profile, diagnostics) = profile::read(&bytes).expect("a profile");
    assert!(!diagnostics.any_damage(), "{}", file.display());
    let stacks = profile.stacks(profile::Metric::AllocatedObjects);
    let of_class = stacks.filter(|stack| {
        stack
            .class
            .is_some_and(|name| profile.names.get(name) == class)
    });
    of_class.map(|stack| stack.value).sum()
}

#[test]
fn each_file_is_whole_and_has_what_was_allocated_in_its_time() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        let Some(stage) = stage(lab) else { continue };
        let folder = stage.folder.path();
        let options = "heap=sites,cutoff=0,loop=50ms,keep=100000,file=sites-%t-%p.hprof";
        let mut program = stage.patient(jdk, Some((&lab.agent, options)));
        program.make(&["counting"]);
        for round in 1..=4 {
            program.make(&["late"]);
            let there = files(folder, ".hprof").len();
            testkit::until(|| match files(folder, ".hprof").len() > there + 1 {
                true => Ok(()),
                false => Err(format!("no further file in round {round}")),
            });
        }
        program.type_line("end");
        while program.line() != "kept 3000" {}
        assert_eq!(program.code(), Some(3));
        let all = files(folder, ".hprof");
        let pid = format!("-{}.hprof", program.child.id());
        assert!(
            all.iter()
                .all(|path| path.to_string_lossy().ends_with(&pid))
        );
        let counts: Vec<u64> = all
            .iter()
            .map(|path| allocated(path, "Patient$Late"))
            .collect();
        let what = format!("{counts:?} on {}", jdk.full_version);
        assert_eq!(counts.iter().sum::<u64>(), 2000, "{what}");
        assert!(
            counts.iter().filter(|count| **count > 0).count() >= 4,
            "{what}"
        );
        assert_eq!(files(folder, ".part"), <[PathBuf; 0]>::default());
    }
}

#[test]
fn no_more_files_stay_than_were_asked_for_and_a_killed_program_leaves_no_half_file() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let folder = stage.folder.path();
        let options = "cpu=samples,interval=1,loop=20ms,keep=3,file=cpu.txt";
        let mut program = stage.patient(jdk, Some((&lab.agent, options)));
        program.type_line("spin");
        // One more is there for a moment, until the oldest is removed.
        let most = until_seen(folder, ".txt", 9);
        assert!(most <= 4, "{most} files");
        program.child.kill().expect("killed");
        program.child.wait().expect("ended");
        for file in files(folder, ".txt") {
            let text = std::fs::read_to_string(&file).expect("text");
            assert!(text.contains("CPU SAMPLES END"), "{text}");
        }
    }
}

#[test]
fn a_recording_ends_after_its_duration() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        let Some(stage) = stage(lab) else { continue };
        let options = "cpu=samples,interval=1,duration=300ms,file=short.txt";
        let mut program = stage.patient(jdk, Some((&lab.agent, options)));
        let pid = program.child.id().to_string();
        let file = stage.folder.path().join("short.txt");
        wait_for(&file, "table", |text| text.contains("CPU SAMPLES END"));
        testkit::until(|| {
            let printed = stage.run(&["attach", &pid, "status"]).stdout;
            let printed = String::from_utf8_lossy(&printed).into_owned();
            match printed.contains("nothing is recorded") {
                true => Ok(()),
                false => Err(printed),
            }
        });
        program.finish("kept 1000");
    }
}

/// Until all classes have their code, nothing is counted; for a program that runs already, that takes longer than this recording.
#[test]
fn the_duration_of_a_recording_begins_when_it_counts() {
    for (here, mut program, pid) in running(|lab| &lab.jdks) {
        let Here { lab, jdk, stage } = &here;
        let file = stage.attach(lab, &pid, "cpu=times,duration=200ms,cutoff=0");
        let profile = testkit::until(|| {
            program.make(&["late"]);
            let profile = std::fs::read_to_string(&file).unwrap_or_default();
            match profile.contains("CPU TIME (ms) END") {
                true => Ok(profile),
                false => Err(profile),
            }
        });
        let what = format!("{}\n{profile}", jdk.full_version);
        assert!(profile.contains("Patient.late("), "{what}");
        program.type_line("end");
    }
}

/// Samples under `Patient.spin` in files of any form, as `tenure profile` or the form itself says them.
fn spun(stage: &Stage, file: &Path) -> u64 {
    if file.to_string_lossy().ends_with(".collapsed") {
        let text = std::fs::read_to_string(file).expect("text");
        let rows = text.lines().filter(|row| row.contains("Patient.spin"));
        let counts = rows.filter_map(|row| row.rsplit(' ').next()?.parse::<u64>().ok());
        return counts.sum();
    }
    let ran = stage.run(&["profile", &file.to_string_lossy(), "--json"]);
    let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
    if printed.contains("the profile has no counts") {
        // On a busy machine, the program may not have run in that second.
        return 0;
    }
    assert_eq!(ran.status.code(), Some(0), "{}: {printed}", file.display());
    let answer: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let rows = answer["methods"].as_array().expect("methods");
    let row = rows.iter().find(|row| row["method"] == "Patient.spin");
    row.map_or(0, |row| row["total"].as_u64().expect("a number"))
}

#[test]
fn tenure_writes_a_series_of_any_form() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for ending in [".jfr", ".collapsed", ".hprof"] {
            let Some(stage) = stage(lab) else { continue };
            series_of(lab, &stage, jdk, ending);
        }
    }
}

fn series_of(lab: &Lab, stage: &Stage, jdk: &testkit::jvm::Jdk, ending: &str) {
    let folder = stage.folder.path();
    let mut tenure = Command::new(&stage.tenure);
    tenure
        .current_dir(folder)
        .args(["run", "--agent"])
        .arg(&lab.agent)
        .args(["--profile", "cpu=samples,interval=1,depth=8,cutoff=0"])
        .args(["--loop", "1", "-o", &format!("cpu-%p-%t{ending}"), "--"])
        .arg(jdk.tool("java"))
        .arg("-cp")
        .arg(stage.classes.path())
        .arg("Patient");
    let mut program = Talk::start(tenure);
    program.expect("ready");
    let spins = 3;
    for round in 0..spins {
        program.make(&["spin"]);
        testkit::until(|| match files(folder, ending).len() > round {
            true => Ok(()),
            false => Err(format!("no file {round} {ending}")),
        });
    }
    program.finish("kept 1000");
    let all = files(folder, ending);
    assert!(all.len() > spins);
    let samples: u64 = all.iter().map(|file| spun(stage, file)).sum();
    assert!(samples > 0, "{all:?}");
    assert_eq!(files(folder, ".part"), <[PathBuf; 0]>::default());
}

#[test]
fn a_program_is_attached_to_for_a_series_of_files() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, stage, .. } = &here;
        let library = lab.agent.to_string_lossy();
        let arguments = ["attach", &pid, "--agent", &library, "--loop", "1"];
        let more = ["--duration", "3", "-o", "all-%t.pb.gz"];
        let ran = stage.run(&[&arguments[..], &more].concat());
        let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(0), "{printed}");
        let all = files(stage.folder.path(), ".pb.gz");
        assert!(all.len() >= 2, "{all:?}: {printed}");
        assert_eq!(all.len(), printed.matches("wrote ").count(), "{printed}");
        let status = stage.run(&["attach", &pid, "status"]);
        let status = String::from_utf8_lossy(&status.stdout).into_owned();
        assert!(status.contains("nothing is recorded"), "{status}");
        continue_series(lab, stage, &pid);
        let nowhere = ["--duration", "2", "-o", "no/such/folder/%t.pb.gz"];
        let ran = stage.run(&[&arguments[..], &nowhere].concat());
        let printed = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success(), "{printed}");
        program.type_line("end");
        program.expect("kept 1000");
    }
}

/// The command that takes the files is killed, and the same command takes the next ones.
fn continue_series(lab: &Lab, stage: &Stage, pid: &str) {
    let folder = stage.folder.path();
    let record = |output: &str| {
        let mut command = Command::new(&stage.tenure);
        command.current_dir(folder).args(["attach", pid, "--agent"]);
        command.arg(&lab.agent).args(["--loop", "1", "-o", output]);
        Talk::start(command)
    };
    let mut killed = record("first-%t.json");
    until_seen(folder, ".json", 1);
    killed.child.kill().expect("killed");
    killed.child.wait().expect("ended");
    testkit::until(|| {
        let status = stage.ordered(lab, &[pid, "status"]);
        match status.contains("which has disconnected") {
            true => Ok(()),
            false => Err(status),
        }
    });
    let mut next = record("all-%t.next.pb.gz");
    until_seen(folder, ".next.pb.gz", 2);
    stage.ordered(lab, &[pid, "stop"]);
    assert_eq!(next.code(), Some(0));
}
