//! Counting that a collector stops and starts again: the code in the classes goes and comes back.

use std::process::Command;

use crate::common::stage::*;
use testkit::jvm::Jdk;

/// Where a [`Subject`] runs, and the library that asks the VM for its code.
pub(crate) fn stage_of(lab: &crate::common::Lab) -> Option<(Stage, String)> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let library = lab.library("code.c", folder.path())?;
    let stage = Stage {
        classes: lab.compile("Stopped.java", 8)?,
        tenure: testkit::built::tenure(),
        folder,
    };
    Some((stage, library.to_string_lossy().into_owned()))
}

/// The program, which prints how much bytecode its classes have, as reported by the VM, not by the agent.
pub(crate) struct Subject(Talk);

impl Subject {
    pub(crate) fn start(
        lab: &crate::common::Lab,
        stage: &Stage,
        jdk: &Jdk,
        library: &str,
        agent: Option<&str>,
    ) -> Self {
        let mut java = Command::new(jdk.tool("java"));
        java.current_dir(stage.folder.path())
            .env_remove("_JAVA_HPROF_OPTIONS")
            .arg(crate::common::kept_report("Stopped"))
            .arg("-XX:+IgnoreUnrecognizedVMOptions");
        if let Some(options) = agent {
            java.arg(format!("-agentpath:{}={options}", lab.agent.display()));
        }
        java.arg("-cp").arg(stage.classes.path());
        let mut program = Talk::start({
            java.args(["Stopped", library]);
            java
        });
        program.expect("ready");
        Self(program)
    }

    pub(crate) fn pid(&self) -> String {
        self.0.child.id().to_string()
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.0.type_line(line);
        self.0.expect(&format!("done {line}"));
    }

    pub(crate) fn code(&mut self) -> i64 {
        self.0.type_line("code");
        let printed = self.0.line();
        self.0.expect("done code");
        let bytes = printed.strip_prefix("code ").and_then(|n| n.parse().ok());
        bytes.unwrap_or_else(|| panic!("{printed}"))
    }

    pub(crate) fn await_code(&mut self, bytes: i64, what: &str) {
        testkit::until(|| match self.code() {
            now if now == bytes => Ok(()),
            now => Err(format!("{what}: {now} bytes, not {bytes}")),
        });
    }

    pub(crate) fn await_other_code(&mut self, bytes: i64, what: &str) {
        testkit::until(|| match self.code() {
            now if now == bytes => Err(format!("{what}: no other code")),
            _ => Ok(()),
        });
    }
}

#[test]
fn a_stop_takes_the_code_out_and_a_start_counts_exactly_again() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some((stage, library)) = stage_of(lab) else {
            return;
        };
        let what = format!("JDK {}", jdk.full_version);
        let plain = Subject::start(lab, &stage, jdk, &library, None).code();
        let (mut listener, port) = stage.listen();
        let options = format!("heap=sites,depth=2,cutoff=0,net=127.0.0.1:{port}");
        let mut program = Subject::start(lab, &stage, jdk, &library, Some(&options));
        let got = stage.got();
        let mut tables = 0;
        let mut ask = |orders: &[&str]| {
            for order in orders.iter().chain(&["sites 0"]) {
                listener.type_line(order);
            }
            tables += 1;
            let is_done = |text: &str| text.matches("SITES END").count() == tables;
            wait_for(&got, "sites", is_done)
        };
        let nodes = |text: &str| objects_of(text, " Stopped$Node");
        let later = |text: &str| objects_of(text, " Stopped$Later");
        let counting = program.code();
        assert!(counting > plain, "{what}: {counting} and {plain}");
        program.send("keep 100");
        assert_eq!(nodes(&ask(&[])), Some((100, 100)), "{what}");

        // Nothing is counted, in classes that are loaded now, too, and in frames that run old code.
        ask(&["alloc off"]);
        program.await_code(plain, &what);
        for line in ["keep 50", "later 5", "work 7"] {
            program.send(line);
        }
        let text = ask(&[]);
        assert_eq!(
            (nodes(&text), later(&text)),
            (Some((100, 100)), None),
            "{what}"
        );

        ask(&["alloc on"]);
        assert_eq!(program.code(), counting, "{what}");
        for line in ["keep 30", "later 20", "work 9"] {
            program.send(line);
        }
        let text = ask(&["gc"]);
        assert_eq!(nodes(&text), Some((139, 139)), "{what}");
        assert_eq!(later(&text), Some((20, 20)), "{what}");
        // The same stack is the same as before, with its line.
        let source = include_str!("java/Stopped.java").lines();
        let keep = source.zip(1..).find(|(line, _)| {
            line.contains(
                "void keep(int count) { for (int i = 0; i < count; i++) KEEP.add(new Node())",
            )
        });
        let frame = format!("Stopped.keep(Stopped.java:{})", keep.expect("a line").1);
        let table = text.rsplit("SITES BEGIN").next().unwrap_or_default();
        let rows = table.lines().filter(|line| line.ends_with(" Stopped$Node"));
        let traces = rows.filter_map(|row| row.split_whitespace().nth(7));
        let at_keep =
            traces.filter(|trace| frames_of(&text, trace).last() == Some(&frame.as_str()));
        assert_eq!(at_keep.count(), 1, "{what}: {frame}\n{table}");

        // One after the other, at once.
        ask(&["alloc off", "alloc on"].repeat(3));
        assert_eq!(program.code(), counting, "{what}");
        program.send("keep 11");
        assert_eq!(nodes(&ask(&[])), Some((150, 150)), "{what}");

        // Freed objects are counted all the time.
        ask(&["alloc off"]);
        program.await_code(plain, &what);
        program.send("forget");
        let text = ask(&["gc"]);
        assert_eq!(nodes(&text), Some((0, 150)), "{what}");
        assert_eq!(later(&text), Some((0, 20)), "{what}");
        ask(&["alloc on", "alloc off"]);
        program.0.type_line("end");
        assert_eq!(program.0.code(), Some(3), "{what}");
    }
}

#[test]
fn calls_go_on_to_be_counted_while_allocations_are_not() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let Some((stage, library)) = stage_of(lab) else {
        return;
    };
    let (mut listener, port) = stage.listen();
    let options = format!("heap=sites,cpu=times,cutoff=0,net=127.0.0.1:{port}");
    let mut program = Subject::start(lab, &stage, jdk, &library, Some(&options));
    let counting = program.code();
    for order in ["alloc off", "sites 0"] {
        listener.type_line(order);
    }
    wait_for(&stage.got(), "sites", |text| text.contains("SITES END"));
    for _ in 0..40 {
        program.send("keep 1");
    }
    assert_eq!(program.code(), counting);
    program.0.type_line("end");
    assert_eq!(program.0.code(), Some(3));
    let text = wait_for(&stage.got(), "times", |text| {
        text.contains("CPU TIME (ms) END")
    });
    let rows = text.lines().filter(|line| line.ends_with(" Stopped.keep"));
    let calls = rows.filter_map(|row| row.split_whitespace().nth(3)?.parse::<u64>().ok());
    assert_eq!(calls.sum::<u64>(), 40);
}

#[test]
fn events_of_objects_that_are_disabled_leave_no_code() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    // Later VMs sample without inserted code.
    for jdk in lab.some_jdks().iter().filter(|jdk| jdk.version < 11) {
        let Some((stage, library)) = stage_of(lab) else {
            return;
        };
        let what = format!("JDK {}", jdk.full_version);
        let plain = Subject::start(lab, &stage, jdk, &library, None).code();
        let (mut listener, port) = stage.listen();
        let options = format!("events=512,net=127.0.0.1:{port}");
        let mut program = Subject::start(lab, &stage, jdk, &library, Some(&options));
        let sending = program.code();
        assert!(sending > plain, "{what}: {sending} and {plain}");
        for _ in 0..2 {
            listener.type_line("disable object-alloc");
            program.await_code(plain, &what);
            program.send("keep 1000");
            listener.type_line("enable object-alloc");
            program.await_code(sending, &what);
            program.send("keep 1000");
        }
        program.0.type_line("end");
        assert_eq!(program.0.code(), Some(3), "{what}");
    }
}
