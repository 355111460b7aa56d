//! Every pair of recorders, on every way out, in a program of all that agents have died of: it prints and
//! ends as without the agent, and in time.

use std::collections::HashMap;
use std::io::Read;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use testkit::jvm::{Jdk, is_matrix};
use testkit::run::run_command;

/// What is recorded, each by a part of the agent of its own.
const RECORDERS: [&str; 9] = [
    "heap=sites",
    "heap=dump",
    "cpu=samples",
    "cpu=times",
    "monitor=y",
    "alloc=64k",
    "native=64k",
    "jni=y",
    "cpu=samples,wall=1ms",
];
/// Where to, and in which form.
const SINKS: [&str; 3] = [
    "format=a,file=out",
    "format=b,modern=y,file=out",
    "format=b,modern=y,net",
];
const ENDS: [&str; 4] = ["return", "exit", "halt", "throw"];

/// One that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(150);

#[test]
fn a_stack_that_overflows_again_and_again_breaks_no_counter() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("StackOverflows.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        for options in ["heap=dump,format=b", "heap=sites", "cpu=times"] {
            let ran = lab.run_as(jdk, classes.path(), Some(options), |java| {
                java.args(["-Xmx128m", "-Xss400k"]).arg("StackOverflows");
            });
            let what = format!("{options} on {}: {}", jdk.full_version, ran.stderr());
            assert_eq!(ran.stdout(), "1000 overflows, 0 other errors\n", "{what}");
        }
    }
}

/// What a run left: its output and its exit code.
fn run(
    lab: &crate::common::Lab,
    classes: &std::path::Path,
    jdk: &Jdk,
    options: Option<&str>,
    end: &str,
) -> (String, Option<i32>, String) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut java = Command::new(jdk.tool("java"));
    java.current_dir(folder.path())
        .env_remove("_JAVA_HPROF_OPTIONS")
        .arg(crate::common::kept_report("Torture"))
        .args(["-Xmx64m", "-Xss512k"]);
    if let Some(options) = options {
        let mut options = options.to_owned();
        if let Some(rest) = options.strip_suffix("net") {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("bound").port();
            options = format!("{rest}net=127.0.0.1:{port}");
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("the agent");
                let mut buffer = vec![0; 1 << 16];
                while let Ok(1..) = stream.read(&mut buffer) {}
            });
        }
        java.arg(format!("-agentpath:{}={options}", lab.agent.display()));
    }
    java.arg("-cp").arg(classes).args(["Torture", end]);
    let ran = run_command(java, DEADLINE);
    let (what, version) = (options.unwrap_or("plain"), &jdk.full_version);
    assert!(
        !ran.timed_out,
        "{what} {end} on {version} hangs: {}",
        ran.stderr
    );
    // Newer VMs log, to standard output, that they have informed an agent of a full heap.
    let of_the_vm = |line: &&str| line.contains("[jvmti] Posting Resource Exhausted event");
    let lines = ran.stdout.lines().filter(|line| !of_the_vm(line));
    (lines.collect::<Vec<_>>().join("\n"), ran.code, ran.stderr)
}

/// What is tried: each pair once, the sinks and ends in turn; all of each in the matrix.
fn cases() -> Vec<(String, &'static str)> {
    let mut cases = Vec::new();
    let mut turn = 0;
    for (at, one) in RECORDERS.iter().enumerate() {
        for other in &RECORDERS[at + 1..] {
            for (sink, name) in SINKS.iter().enumerate() {
                for (end, how) in ENDS.iter().enumerate() {
                    if is_matrix() || (sink == turn % SINKS.len() && end == turn % ENDS.len()) {
                        cases.push((format!("{one},{other},{name}"), *how));
                    }
                }
            }
            turn += 1;
        }
    }
    cases
}

#[test]
fn every_pair_of_recorders_leaves_a_tortured_program_as_it_was() {
    /// In the usual run one pair in so many is tried on each JDK, others on the next.
    const EVERY: usize = 12;
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Torture.java", 8) else {
        return;
    };
    for (number, jdk) in lab.jdks.iter().enumerate() {
        let mut plain = HashMap::new();
        let cases = cases();
        let chosen = cases.iter().enumerate();
        let chosen = chosen.filter(|(at, _)| is_matrix() || at % EVERY == number % EVERY);
        for (_, (options, end)) in chosen {
            let ran = run(lab, classes.path(), jdk, Some(options), end);
            let run_plain = || run(lab, classes.path(), jdk, None, end);
            let (out, code, _) = plain.entry(end).or_insert_with(run_plain);
            let what = format!("{options} {end} on {}: {}", jdk.full_version, ran.2);
            assert_eq!((&ran.0, ran.1), (&*out, *code), "{what}");
            assert!(!ran.2.contains("internal fault"), "{what}");
        }
    }
}
