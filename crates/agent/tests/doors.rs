//! Every way into a VM that is not `-agentpath`, and a disk that is full.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::Lab;
use crate::common::stage::*;
use testkit::jvm::Jdk;

/// What the program prints, whatever watches it.
const PRINTED: &str = "kept 1532\n";

fn java(lab: &Lab, jdk: &Jdk, folder: &Path) -> Command {
    let mut java = Command::new(jdk.tool("java"));
    java.current_dir(folder)
        .env_remove("_JAVA_HPROF_OPTIONS")
        .env_remove("JAVA_TOOL_OPTIONS")
        .stdin(Stdio::null())
        .env("CLASSPATH", lab.classes());
    java
}

fn output(mut command: Command) -> Output {
    command.output().expect("java runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn sites(folder: &Path, name: &str) -> bool {
    let profile = std::fs::read(folder.join(name)).expect("a profile");
    text(&profile).contains("SITES END")
}

#[test]
fn the_installed_agent_answers_to_the_name_it_always_had() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let place = folder.path().join("agents");
    let installed = Command::new(testkit::built::tenure())
        .args(["install-agent", "--dir"])
        .arg(&place)
        .arg("--agent")
        .arg(&lab.agent)
        .output()
        .expect("tenure runs");
    assert!(installed.status.success(), "{}", text(&installed.stderr));
    for jdk in lab.some_jdks() {
        let mut known = java(lab, jdk, folder.path());
        known
            .env("LD_LIBRARY_PATH", &place)
            .args(["-agentlib:hprof=heap=sites,file=by-name.txt", "Known"]);
        let ran = output(known);
        assert_eq!(text(&ran.stdout), PRINTED, "{}", text(&ran.stderr));
        assert!(sites(folder.path(), "by-name.txt"), "{}", jdk.full_version);
        std::fs::remove_file(folder.path().join("by-name.txt")).expect("removed");
    }
}

#[test]
fn a_vm_takes_the_agent_from_its_environment() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let agent = lab.agent.display();
        let mut known = java(lab, jdk, folder.path());
        known
            .env(
                "JAVA_TOOL_OPTIONS",
                format!("-agentpath:{agent}=heap=sites,file=environment.txt"),
            )
            .arg("Known");
        let ran = output(known);
        assert_eq!(text(&ran.stdout), PRINTED, "{}", text(&ran.stderr));
        assert!(
            sites(folder.path(), "environment.txt"),
            "{}",
            jdk.full_version
        );
    }
}

#[test]
fn a_full_disk_is_reported_and_ends_nothing() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for options in [
            "heap=sites",
            "heap=all,format=b",
            "cpu=times,heap=dump",
            "cpu=samples",
        ] {
            let folder = tempfile::tempdir().expect("temporary folder");
            let agent = lab.agent.display();
            let mut known = java(lab, jdk, folder.path());
            known.args([
                &format!("-agentpath:{agent}={options},force=y,file=/dev/full"),
                "Known",
            ]);
            let ran = output(known);
            let printed = text(&ran.stderr);
            assert_eq!(text(&ran.stdout), PRINTED, "{options} {printed}");
            assert_eq!(ran.status.code(), Some(0), "{options} {printed}");
            let lost = "HPROF ERROR: the output is lost: /dev/full: No space left";
            assert!(printed.contains(lost), "{options} {printed}");
            let fate = "; its first 0 bytes are kept, the rest is dropped";
            assert!(printed.contains(fate), "{options} {printed}");
        }
    }
}

#[test]
fn a_full_disk_ends_a_recording_with_an_error_and_a_stream_of_events_with_the_name_of_the_file() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let options = "heap=sites,file=/dev/full,events=1k,events-file=/dev/../dev/full";
        let mut program = stage.patient(jdk, Some((&lab.agent, options)));
        let pid = program.child.id().to_string();
        for order in ["dump", "stop"] {
            let (code, printed) = stage.order(lab, &[&pid, order]);
            assert_eq!(code, Some(1), "{order}: {printed}");
            let lost = "its output is lost: /dev/full: No space left";
            assert!(printed.contains(lost), "{order}: {printed}");
        }
        program.type_line("end");
        program.expect("kept 1000");
        assert_eq!(program.code(), Some(3));
        let mut printed = String::new();
        program.stderr().read_to_string(&mut printed).expect("text");
        let ends = "HPROF: the stream of events ends here: /dev/../dev/full: No space left";
        assert!(printed.contains(ends), "{printed}");
    }
}

#[test]
fn programs_with_one_output_file_at_the_same_time_write_two() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let options = "heap=sites,cutoff=0,file=same.txt";
        let start = || stage.patient(jdk, Some((&lab.agent, options)));
        let mut programs = [start(), start()];
        let others = format!("same.{}.txt", programs[1].child.id());
        for program in &mut programs {
            for line in ["counting", "late", "end"] {
                program.type_line(line);
            }
            while program.line() != "kept 1500" {}
            assert_eq!(program.code(), Some(3));
        }
        for name in ["same.txt", &others] {
            let profile = std::fs::read_to_string(stage.folder.path().join(name));
            let profile = profile.unwrap_or_else(|error| panic!("{name}: {error}"));
            let found = objects_of(&profile, " Patient$Late");
            assert_eq!(found, Some((500, 500)), "{name}: {profile}");
        }
        let mut printed = String::new();
        let mut stderr = programs[1].stderr();
        stderr.read_to_string(&mut printed).expect("text");
        let moved =
            format!("another recording is writing same.txt; this one is written to {others}");
        assert!(printed.contains(&moved), "{printed}");
    }
}
