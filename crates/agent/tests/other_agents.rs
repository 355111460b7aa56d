//! Together with agents of others, which change the same classes: a program prints and ends as it does with
//! them alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::jvm::{Jdk, is_matrix};
use testkit::run::run_command;
use testkit::{Need, built, skip};

use crate::common::Lab;

const OTHERS: [&str; 3] = ["jacoco", "opentelemetry", "byte-buddy"];
const RECORDERS: [&str; 3] = ["heap=sites", "cpu=times", "cpu=samples"];
/// One that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(240);

/// One that `./x setup agents` has put into the target folder.
fn other_agent(name: &str) -> Option<PathBuf> {
    let library = built::agent();
    let target = library.parent()?.parent()?;
    Some(target.join("agents").join(format!("{name}.jar"))).filter(|jar| jar.is_file())
}

fn run(
    lab: &Lab,
    (jdk, classes): (&Jdk, &Path),
    other: &Path,
    options: Option<&str>,
) -> (String, Option<i32>, String) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut java = Command::new(jdk.tool("java"));
    java.current_dir(folder.path())
        .env_remove("_JAVA_HPROF_OPTIONS")
        // What it records goes nowhere.
        .env("OTEL_TRACES_EXPORTER", "none")
        .env("OTEL_METRICS_EXPORTER", "none")
        .env("OTEL_LOGS_EXPORTER", "none")
        .arg(crate::common::kept_report("others"))
        .arg("-Xmx256m")
        .arg(format!("-javaagent:{}", other.display()));
    if let Some(options) = options {
        java.arg(format!("-agentpath:{}={options}", lab.agent.display()));
    }
    java.arg("-cp").arg(classes).args(["Torture", "exit"]);
    let ran = run_command(java, DEADLINE);
    let what = options.unwrap_or("alone");
    assert!(
        !ran.timed_out,
        "{what} beside {} on {} hangs: {}",
        other.display(),
        jdk.full_version,
        ran.stderr
    );
    if options.is_some() {
        let profile = std::fs::metadata(folder.path().join("java.hprof.txt"));
        assert!(
            profile.is_ok_and(|file| file.len() > 0),
            "{what}: {}",
            ran.stderr
        );
    }
    (ran.stdout, ran.code, ran.stderr)
}

#[test]
fn a_program_is_the_same_beside_agents_of_others() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let found = OTHERS.map(other_agent);
    let [Some(jacoco), Some(opentelemetry), Some(byte_buddy)] = found else {
        let what = "a program beside agents of others";
        return skip(what, Need::Network, "./x setup agents gets them");
    };
    let Some(classes) = lab.compile("Torture.java", 8) else {
        return;
    };
    for (turn, jdk) in lab
        .jdks
        .iter()
        .filter(|jdk| matches!(jdk.version, 8 | 17 | 25))
        .enumerate()
    {
        for (at, other) in [&jacoco, &opentelemetry, &byte_buddy]
            .into_iter()
            .enumerate()
        {
            let here = (jdk, classes.path());
            let (out, code, printed) = run(lab, here, other, None);
            let alone = format!("{} alone on {}", other.display(), jdk.full_version);
            assert_eq!(code, Some(3), "{alone}: {out}{printed}");
            for (number, options) in RECORDERS.iter().enumerate() {
                // In the usual run each of them is beside one of the others on each JDK.
                if !is_matrix() && number != (at + turn) % RECORDERS.len() {
                    continue;
                }
                let ran = run(lab, here, other, Some(options));
                let what = format!(
                    "{options} beside {} on {}",
                    other.display(),
                    jdk.full_version
                );
                assert_eq!((&ran.0, ran.1), (&out, code), "{what}: {}", ran.2);
                assert!(!ran.2.contains("internal fault"), "{what}: {}", ran.2);
            }
        }
    }
}
