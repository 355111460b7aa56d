//! A program that handles SIGPROF itself.

use std::process::Command;

use testkit::jvm::Jdk;

use crate::common::stage::*;
use crate::common::{Lab, kept_report};

/// Lines of the program while CPU samples are taken, and the number of signals that its handler has caught then, and
/// at the end.
const CASES: [(&str, &[&str], &str); 3] = [
    ("plain", &["raise", "spin", "raise"], "caught 15"),
    ("origin", &["raise", "spin", "raise"], "caught 15"),
    // Its handler is installed again and passes signals to the agent's, which passes them back once.
    ("passing", &["raise", "again", "raise"], "caught 25"),
];

#[test]
fn a_handler_of_the_program_goes_on_beside_samples() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for (jdk, case) in lab.jdks.iter().zip(CASES[..2].iter().cycle()) {
        profile(lab, jdk, *case);
    }
    let newest = lab.jdks.last().expect("a JDK");
    profile(lab, newest, CASES[2]);
}

fn profile(lab: &Lab, jdk: &Jdk, (kind, lines, caught): (&str, &[&str], &str)) {
    let stage = Stage {
        folder: tempfile::tempdir().expect("temporary folder"),
        classes: match lab.compile("Signals.java", 8) {
            Some(classes) => classes,
            None => return,
        },
        tenure: testkit::built::tenure(),
    };
    let Some(library) = lab.library("signals.c", stage.folder.path()) else {
        return;
    };
    let mut java = Command::new(jdk.tool("java"));
    java.current_dir(stage.folder.path())
        .env_remove("_JAVA_HPROF_OPTIONS")
        .arg(kept_report("Signals"))
        .arg("-cp")
        .arg(stage.classes.path())
        .arg("Signals")
        .args([&library, std::path::Path::new(kind)]);
    let mut program = Talk::start(java);
    program.expect("ready");
    let pid = program.child.id().to_string();
    let file = stage.attach(lab, &pid, "cpu=samples,interval=1,cutoff=0");
    let what = format!("{kind} on JDK {}", jdk.full_version);
    for line in lines {
        program.type_line(line);
        program.expect(&format!("done {line}"));
    }
    let library = lab.agent.to_string_lossy();
    let ended = stage.run(&["attach", &pid, "stop", "--agent", &library]);
    assert_eq!(ended.status.code(), Some(0), "{what}");
    program.type_line("raise");
    program.expect("done raise");
    // All that the program has raised, and none of the timers that sample it.
    program.type_line("caught");
    program.expect(caught);
    program.expect("done caught");
    program.type_line("end");
    assert_eq!(program.code(), Some(3), "{what}");
    let text = std::fs::read_to_string(&file).expect("a profile");
    let samples = samples_under(&text, "Signals.spin(");
    assert!(samples > 0 || !lines.contains(&"spin"), "{what}: {text}");
}
