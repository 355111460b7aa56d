//! Other people's readers before what the agent writes on a real JVM. They are installed from PyPI
//! into the target folder; without a network each is skipped with a line.

use private_records::PrivateTag;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the installed programs; `None`, having said why, when they cannot be had.
fn installed() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(install).as_deref()
}

fn install() -> Option<PathBuf> {
    let target = testkit::corpus::workspace().join("target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(target, PathBuf::from);
    let venv = target.join("consumers");
    let bin = venv.join("bin");
    let is_there = |name: &str| bin.join(name).is_file();
    if is_there("gprof2dot") && is_there("stackcollapse-hprof") {
        return Some(bin);
    }
    let steps: [(&str, &[&str]); 2] = [
        ("python3", &["-m", "venv"]),
        (
            "",
            &[
                "-m",
                "pip",
                "install",
                "-q",
                "gprof2dot",
                "hprof2flamegraph",
            ],
        ),
    ];
    for (program, arguments) in steps {
        let mut command = match program {
            "" => Command::new(bin.join("python")),
            program => Command::new(program),
        };
        command.args(arguments);
        if !program.is_empty() {
            command.arg(&venv);
        }
        let failure = match command.output() {
            Ok(done) if done.status.success() => continue,
            Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        let line = failure.trim().lines().last().unwrap_or_default();
        testkit::skip(
            "gprof2dot and hprof2flamegraph",
            testkit::Need::Network,
            line,
        );
        return None;
    }
    Some(bin)
}

fn output(program: &Path, arguments: &[&str], what: &str) -> String {
    let done = Command::new(program)
        .args(arguments)
        .output()
        .expect("starts");
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{} {what}: {error}",
        program.display()
    );
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn live_text_is_read_by_gprof2dot_and_stackcollapse() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(bin) = installed() else { return };
    let Some(classes) = lab.compile("Busy.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        for mode in [
            "cpu=samples,interval=2",
            "cpu=samples,interval=2,heap=sites",
            "cpu=times",
        ] {
            let what = format!("{mode} on {}", jdk.full_version);
            let ran = lab.run_in(jdk, classes.path(), Some(mode), &[], &["Busy"]);
            assert_eq!(ran.stdout(), "busy\n", "{what}: {}", ran.stderr());
            let file = ran.folder.path().join("java.hprof.txt");
            let file = file.to_string_lossy();
            let graph = output(&bin.join("gprof2dot"), &["-f", "hprof", &file], &what);
            assert!(graph.contains("digraph"), "{what}");
            assert!(graph.contains("Busy"), "{what}: {graph}");
            if mode.contains("samples") {
                let stacks = output(&bin.join("stackcollapse-hprof"), &[&file], &what);
                let hot = stacks.lines().filter(|line| line.contains("hot"));
                let hot: u64 = hot
                    .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
                    .sum();
                assert!(hot > 0, "{what}: {stacks}");
            }
        }
    }
}

#[test]
fn a_live_binary_dump_is_read_by_hprof_slurp() {
    if !crate::common::is_matrix() {
        return testkit::skip("hprof-slurp", testkit::Need::Matrix, "only in ./x matrix");
    }
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let root = testkit::corpus::workspace().join("target/consumers");
    let slurp = root.join("bin/hprof-slurp");
    if !slurp.is_file() {
        let mut install = Command::new(env!("CARGO"));
        install
            .args(["install", "--quiet", "hprof-slurp", "--root"])
            .arg(&root);
        if !install.status().is_ok_and(|status| status.success()) {
            return testkit::skip(
                "hprof-slurp",
                testkit::Need::Network,
                "cargo cannot install it",
            );
        }
    }
    for jdk in lab.some_jdks() {
        for mode in ["heap=dump,format=b", "heap=all,format=b,modern=y"] {
            let ran = lab.run(jdk, Some(mode), &[], &["Known"]);
            let names = std::fs::read_dir(ran.folder.path())
                .expect("folder")
                .flatten();
            let file = names.map(|entry| entry.path()).next().expect("a dump");
            let file = file.to_string_lossy();
            let printed = output(&slurp, &["-t", "1000", &file], mode);
            assert!(printed.contains("Known$Node"), "{mode}: {printed}");
        }
    }
}

#[test]
fn jhat_skips_the_records_that_the_original_did_not_have() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let jhats = testkit::jvm::jdks().into_iter().map(|jdk| jdk.tool("jhat"));
    let Some(jhat) = jhats.into_iter().find(|jhat| jhat.is_file()) else {
        return testkit::skip("jhat", testkit::Need::Jdk8, "no JDK 8 with it");
    };
    for jdk in lab.some_jdks() {
        let mode = "heap=all,cpu=times,monitor=y,format=b,modern=y,file=out";
        let ran = lab.run(jdk, Some(mode), &[], &["Known"]);
        let file = ran.folder.path().join("out");
        let bytes = std::fs::read(&file).expect("a profile");
        let map = hprof::map_file(&bytes, |_| {}).expect("a profile");
        for tag in [PrivateTag::CpuTimes, PrivateTag::MonitorDump] {
            let count = map.records.iter().find(|row| row.0 == tag as u8);
            assert!(count.is_some_and(|row| row.1 > 0), "{tag:?}");
        }
        let words = ["-J-Xmx512m", "-parseonly", "true", &*file.to_string_lossy()];
        let printed = output(&jhat, &words, &jdk.full_version);
        assert!(printed.contains("Snapshot resolved."), "{printed}");
    }
}
