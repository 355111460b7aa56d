//! Every way into a VM that is not `-agentpath`, and a disk that is full.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::Lab;
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
            assert!(printed.contains("No space left"), "{options} {printed}");
        }
    }
}
