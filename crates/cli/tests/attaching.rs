//! `tenure attach` when something goes wrong: the program is left as it was.

use crate::watched::{Lab, Program, java, lab};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program with the agent's library, and `tenure attach` of it.
struct Target<'a> {
    lab: &'a Lab,
    folder: &'a Path,
    program: Program,
}

impl Target<'_> {
    fn pid(&self) -> String {
        self.program.child.id().to_string()
    }

    fn attach(&self, arguments: &[&str]) -> Command {
        let mut tenure = Command::new(env!("CARGO_BIN_EXE_tenure"));
        tenure
            .args(["attach", &self.pid()])
            .args(arguments)
            .env("TENURE_AGENT", &self.lab.agent)
            .current_dir(self.folder)
            .stdin(Stdio::null());
        tenure
    }

    /// The exit code, and what is printed.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let ran = self.attach(arguments).output().expect("running tenure");
        let printed = [ran.stdout, ran.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        (ran.status.code(), printed)
    }
}

fn with_target(test: &str, body: impl FnOnce(Target<'_>)) {
    let Some(lab) = lab(test) else { return };
    let Some(jdk) = lab.jdks.last() else { return };
    let mut java = java(lab, jdk);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let program = Program::of(java.spawn().expect("started"));
    let folder = tempfile::tempdir().expect("a folder");
    body(Target {
        lab,
        folder: folder.path(),
        program,
    });
}

#[test]
fn a_recording_that_cannot_be_stored_is_ended_in_the_program() {
    with_target("attach to a full disk", |target| {
        for arguments in [
            &["--force", "--events", "/dev/full", "--duration", "3600"][..],
            &["--force", "-o", "/dev/full", "--profile", "heap=sites"],
        ] {
            let (code, printed) = target.run(arguments);
            assert_eq!(code, Some(3), "{arguments:?}: {printed}");
            assert!(printed.contains("No space left"), "{printed}");
            let (code, printed) = target.run(&["status"]);
            assert_eq!(code, Some(1), "{arguments:?}: {printed}");
            assert!(printed.contains("nothing is recorded"), "{printed}");
        }
    });
}

#[test]
fn a_second_signal_ends_the_command_while_the_program_is_stopped() {
    with_target("attach to a stopped program", |target| {
        let mut attached = target
            .attach(&["-o", "flames.html"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut printed = BufReader::new(attached.stderr.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("is recorded until Ctrl-C") {
            line.clear();
            assert!(printed.read_line(&mut line).expect("text") > 0, "it ended");
        }
        let signal = |signal: &str, pid: &str| {
            let sent = Command::new("kill").args(["-s", signal, pid]).status();
            assert!(sent.expect("kill").success());
        };
        signal("STOP", &target.pid());
        let pid = attached.id().to_string();
        // Signals that follow at once are one with the first.
        let status = testkit::until(|| {
            let ended = attached.try_wait().expect("a child");
            if ended.is_none() {
                signal("INT", &pid);
            }
            ended.ok_or("it waits")
        });
        signal("CONT", &target.pid());
        assert_eq!(status.signal(), Some(2));
        let mut rest = String::new();
        printed.read_to_string(&mut rest).expect("text");
        assert!(rest.contains("may still be recorded"), "{rest}");
        let left = std::fs::read_dir(target.folder).expect("a folder").count();
        assert_eq!(left, 0, "{rest}");
        let (_, printed) = target.run(&["stop"]);
        let (code, status) = target.run(&["status"]);
        assert_eq!(code, Some(1), "{printed}: {status}");
    });
}
