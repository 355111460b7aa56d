//! `tenure attach` and `tenure run` when something goes wrong: the program is left as it was, and recordings are kept.

use crate::profiles::port_of;
use crate::watched::{Lab, Program, java, lab};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

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
        Target::result(&mut self.attach(arguments))
    }

    /// The same for a dump.
    fn dump(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut tenure = Command::new(env!("CARGO_BIN_EXE_tenure"));
        tenure.args(["dump", &self.pid()]).args(arguments);
        Target::result(tenure.current_dir(self.folder))
    }

    fn result(tenure: &mut Command) -> (Option<i32>, String) {
        let ran = tenure.output().expect("running tenure");
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

fn send(signal: &str, pid: &str) {
    let sent = Command::new("kill").args(["-s", signal, pid]).status();
    assert!(sent.expect("kill").success());
}

/// Reads until a line contains this text; what follows is read by the caller.
fn until_printed(stderr: ChildStderr, text: &str) -> BufReader<ChildStderr> {
    let mut printed = BufReader::new(stderr);
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(printed.read_line(&mut line).expect("text") > 0, "it ended");
    }
    printed
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
fn a_file_that_exists_is_overwritten_only_on_request() {
    with_target("attach with a file that exists", |target| {
        let old = target.folder.join("old.txt");
        std::fs::write(&old, "old").expect("written");
        let profile = format!("heap=sites,file={}", old.display());
        let record = |arguments: &[&str]| {
            let (code, printed) = target.run(&[arguments, &["--profile", &profile]].concat());
            assert_eq!(code, Some(0), "{printed}");
            let (code, stopped) = target.run(&["stop"]);
            assert_eq!(code, Some(0), "{stopped}");
            (std::fs::read(&old).expect("a file"), printed)
        };
        let other = target.folder.join(format!("old.{}.txt", target.pid()));
        let (content, printed) = record(&[]);
        assert_eq!(content, b"old", "{printed}");
        assert!(printed.contains(&other.display().to_string()), "{printed}");
        assert!(other.is_file(), "{printed}");
        let (content, printed) = record(&["--force"]);
        assert_ne!(content, b"old", "{printed}");
    });
}

#[test]
fn of_recordings_that_begin_together_the_first_continues() {
    with_target("attach twice at once", |target| {
        let profiles = ["heap=sites", "cpu=samples"];
        let outputs = ["heap.txt", "cpu.txt"];
        let begin = |number: usize| {
            let arguments = ["--profile", profiles[number], "-o", outputs[number]];
            let begun = target.attach(&arguments).stderr(Stdio::piped()).spawn();
            begun.expect("started")
        };
        let mut both = [begin(0), begin(1)];
        let refused = testkit::until(|| {
            let ended = |number: &usize| {
                let ended = both[*number].try_wait().expect("a child");
                ended.is_some()
            };
            [0, 1].into_iter().find(ended).ok_or("both are recording")
        });
        let mut printed = String::new();
        let mut stderr = both[refused].stderr.take().expect("piped");
        stderr.read_to_string(&mut printed).expect("text");
        assert_eq!(both[refused].wait().expect("a child").code(), Some(2));
        let first = format!("records {}", profiles[1 - refused]);
        assert!(printed.contains(&first), "{printed}");
        let (_, stopped) = target.run(&["stop"]);
        let first = both[1 - refused].wait().expect("a child");
        assert_eq!(first.code(), Some(0), "{stopped}");
        let left = std::fs::read_dir(target.folder)
            .expect("a folder")
            .flatten();
        let names: Vec<_> = left.map(|file| file.file_name()).collect();
        assert_eq!(names, [outputs[1 - refused]]);
    });
}

#[test]
fn a_forced_recording_ends_one_with_the_same_options() {
    with_target("attach with force", |target| {
        let record = |arguments: &[&str]| {
            let begun = target.attach(arguments).stderr(Stdio::piped()).spawn();
            let mut recording = begun.expect("started");
            let stderr = recording.stderr.take().expect("piped");
            let printed = until_printed(stderr, "is recorded until Ctrl-C");
            (recording, printed)
        };
        let (mut first, _first_printed) = record(&["-o", "first.txt"]);
        let (mut second, _second_printed) = record(&["--force", "-o", "second.txt"]);
        assert_eq!(first.wait().expect("a child").code(), Some(0));
        let (code, printed) = target.run(&["stop"]);
        assert_eq!(code, Some(0), "{printed}");
        assert_eq!(second.wait().expect("a child").code(), Some(0));
    });
}

#[test]
fn a_recording_that_is_ended_early_is_reported() {
    with_target("attach that is ended early", |target| {
        let mut attach = target.attach(&["--duration", "3600", "-o", "first.txt"]);
        let mut recording = attach.stderr(Stdio::piped()).spawn().expect("started");
        let stderr = recording.stderr.take().expect("piped");
        let mut printed = until_printed(stderr, "is recorded for 3600 s");
        let (code, stopped) = target.run(&["stop"]);
        assert_eq!(code, Some(0), "{stopped}");
        let mut rest = String::new();
        printed.read_to_string(&mut rest).expect("text");
        assert!(rest.contains("the recording has ended after "), "{rest}");
        assert_eq!(recording.wait().expect("a child").code(), Some(0));
    });
}

#[test]
fn a_page_does_not_end_another_recording() {
    with_target("a page beside a recording", |target| {
        let profile = format!("heap=sites,file={}", target.folder.join("it.txt").display());
        let (code, printed) = target.run(&["--profile", &profile]);
        assert_eq!(code, Some(0), "{printed}");
        let page = ["--live", "--no-browser", "--record", "full"];
        let begun = target.attach(&page).stderr(Stdio::piped()).spawn();
        let mut page = begun.expect("started");
        let stderr = page.stderr.take().expect("piped");
        let mut printed = until_printed(stderr, "records heap=sites");
        send("INT", &page.id().to_string());
        printed.read_to_string(&mut String::new()).expect("text");
        page.wait().expect("a child");
        let (_, status) = target.run(&["status"]);
        assert!(status.contains("records heap=sites"), "{status}");
    });
}

#[test]
fn what_the_profile_of_a_killed_program_lacks_is_reported() {
    let Some(lab) = lab("run of a program that is killed") else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let java = java(lab, jdk);
    let mut tenure = Command::new(env!("CARGO_BIN_EXE_tenure"));
    tenure
        .args(["run", "-o", "killed.hprof", "--"])
        .arg(java.get_program())
        .args(java.get_args())
        .env("TENURE_AGENT", &lab.agent)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut program = Program::of(tenure.spawn().expect("started"));
    let parent = format!("PPid:\t{}\n", program.child.id());
    let is_child = |pid: &String| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        status.is_ok_and(|status| status.contains(&parent))
    };
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let mut pids = processes.filter_map(|one| one.file_name().into_string().ok());
    send("KILL", &pids.find(is_child).expect("the JVM"));
    let mut printed = String::new();
    let mut stderr = program.child.stderr.take().expect("piped");
    stderr.read_to_string(&mut printed).expect("text");
    assert!(printed.contains("the program was killed"), "{printed}");
    let status = program.child.wait().expect("a child");
    assert_eq!(status.code(), Some(137), "{printed}");
}

#[test]
fn a_recording_of_a_program_that_is_killed_is_an_error() {
    for output in ["killed.hprof", "killed.txt", "killed.collapsed"] {
        with_target("attach to a program that is killed", |target| {
            let mut attach = target.attach(&["-o", output]);
            let mut recording = attach.stderr(Stdio::piped()).spawn().expect("started");
            let stderr = recording.stderr.take().expect("piped");
            let mut printed = until_printed(stderr, "is recorded until Ctrl-C");
            send("KILL", &target.pid());
            let mut rest = String::new();
            printed.read_to_string(&mut rest).expect("text");
            assert!(rest.contains("the program was killed"), "{output}: {rest}");
            let status = recording.wait().expect("a child");
            assert_eq!(status.code(), Some(3), "{output}: {rest}");
        });
    }
}

#[test]
fn a_dump_whose_name_ends_with_gz_is_packed() {
    with_target("packed dumps", |target| {
        for how in [&[][..], &["--frozen"]] {
            let (code, printed) = target.dump(&[&["-o", "heap.hprof.gz", "--force"], how].concat());
            assert_eq!(code, Some(0), "{printed}");
            let bytes = std::fs::read(target.folder.join("heap.hprof.gz")).expect("a dump");
            assert!(bytes.starts_with(&[0x1f, 0x8b]), "{how:?}");
            crate::ran::run(target.folder, &["validate", "heap.hprof.gz"], 0);
        }
        let files = std::fs::read_dir(target.folder)
            .expect("a folder")
            .flatten();
        let names = files.map(|file| file.file_name().into_string().expect("text"));
        let parts: Vec<String> = names.filter(|name| name.ends_with(".part")).collect();
        assert_eq!(parts, <[&str; 0]>::default());
    });
}

#[test]
fn a_program_that_is_stopped_is_not_asked_for_a_dump() {
    with_target("a dump of a stopped program", |target| {
        send("STOP", &target.pid());
        let (code, printed) = target.dump(&[]);
        send("CONT", &target.pid());
        assert_eq!(code, Some(3), "{printed}");
        assert!(printed.contains("is stopped"), "{printed}");
        assert!(printed.contains("--frozen"), "{printed}");
    });
}

#[test]
fn ctrl_c_of_a_listener_ends_the_recordings_and_stores_them() {
    with_target("a listener until Ctrl-C", |target| {
        let mut listener = Command::new(env!("CARGO_BIN_EXE_tenure"));
        listener.args(["listen", "0", "--many"]);
        listener.current_dir(target.folder).stdin(Stdio::null());
        let mut listener = listener.stderr(Stdio::piped()).spawn().expect("started");
        let mut printed = BufReader::new(listener.stderr.take().expect("piped"));
        let port = port_of(&mut printed);
        let profile = format!("heap=sites,depth=2,net=127.0.0.1:{port}");
        let (code, recorded) = target.run(&["--profile", &profile]);
        assert_eq!(code, Some(0), "{recorded}");
        let files = || {
            std::fs::read_dir(target.folder)
                .expect("a folder")
                .flatten()
        };
        let file = testkit::until(|| files().next().ok_or("no file"));
        send("INT", &listener.id().to_string());
        let mut rest = String::new();
        printed.read_to_string(&mut rest).expect("text");
        assert!(rest.contains("the recording ends"), "{rest}");
        assert_eq!(listener.wait().expect("a child").code(), Some(0), "{rest}");
        let stored = std::fs::read_to_string(file.path()).expect("a profile");
        assert!(stored.ends_with("SITES END\n"), "{stored}");
        let (_, status) = target.run(&["status"]);
        assert!(status.contains("nothing is recorded"), "{status}");
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
        let stderr = attached.stderr.take().expect("piped");
        let mut printed = until_printed(stderr, "is recorded until Ctrl-C");
        send("STOP", &target.pid());
        let pid = attached.id().to_string();
        // Signals that follow at once are one with the first.
        let status = testkit::until(|| {
            let ended = attached.try_wait().expect("a child");
            if ended.is_none() {
                send("INT", &pid);
            }
            ended.ok_or("it waits")
        });
        send("CONT", &target.pid());
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
