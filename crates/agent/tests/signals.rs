//! A program that handles SIGPROF itself.

use std::process::Command;

use crate::common::kept_report;
use crate::common::stage::*;

#[test]
fn a_handler_of_the_program_goes_on_beside_samples() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for (jdk, kind) in lab.jdks.iter().zip(["plain", "origin"].iter().cycle()) {
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
        for line in ["raise", "spin", "raise"] {
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
        program.expect("caught 15");
        program.expect("done caught");
        program.type_line("end");
        assert_eq!(program.code(), Some(3), "{what}");
        let text = std::fs::read_to_string(&file).expect("a profile");
        let samples = samples_under(&text, "Signals.spin(");
        assert!(samples > 0, "{what}: {text}");
    }
}
