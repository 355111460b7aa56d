//! Recordings of a program that runs already: one after the other, ended, written and asked about from
//! outside.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::Lab;
use crate::common::stage::*;

/// Resident memory of a process.
fn resident_kb(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("resident memory")
}

fn read(folder: &Path, name: &str) -> String {
    let bytes = std::fs::read(folder.join(name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_second_attach_changes_what_is_recorded() {
    for (here, mut program, pid) in running(|lab| &lab.jdks) {
        let Here { lab, jdk, stage } = &here;
        let what = format!("JDK {}", jdk.full_version);
        let folder = stage.folder.path();
        let record = |options: &str| {
            let (code, printed) = stage.order(lab, &[&pid, "--profile", options]);
            assert_eq!(code, Some(0), "{what}: {options}: {printed}");
            printed
        };
        let mut make = |lines: &[&str]| {
            for line in lines {
                program.type_line(line);
                program.expect(&format!("done {line}"));
            }
        };
        let (code, printed) = stage.order(lab, &[&pid, "status"]);
        assert_eq!(
            (code, printed.contains("nothing is recorded")),
            (Some(1), true),
            "{printed}"
        );

        record("heap=sites,cutoff=0,depth=2,file=one.txt");
        make(&["counting", "late"]);
        let printed = record("cpu=samples,interval=1,cutoff=0,file=two.txt");
        let both = ["two.txt", "no longer heap=sites"];
        assert!(
            both.iter().all(|part| printed.contains(part)),
            "{what}: {printed}"
        );
        assert_eq!(
            objects_of(&read(folder, "one.txt"), " Patient$Late"),
            Some((500, 500)),
            "{what}"
        );
        make(&["spin", "spin"]);
        // Frames deeper than those of the code that ran before.
        let printed = record("heap=sites,cutoff=0,depth=24,file=three.txt");
        assert!(
            printed.contains("no longer cpu=samples"),
            "{what}: {printed}"
        );
        assert!(
            samples_under(&read(folder, "two.txt"), "Patient.spin(") > 0,
            "{what}"
        );
        make(&["counting", "late", "deep"]);
        let printed = stage.order(lab, &[&pid, "status"]).1;
        assert!(
            printed.contains("records heap=sites") && printed.contains("three.txt"),
            "{printed}"
        );
        let (code, printed) = stage.order(lab, &[&pid, "dump"]);
        assert_eq!(
            (code, printed.contains("three.txt")),
            (Some(0), true),
            "{printed}"
        );
        let text = read(folder, "three.txt");
        assert_eq!(
            objects_of(&text, " Patient$Late"),
            Some((500, 500)),
            "{what}"
        );
        record("cpu=times,cutoff=0,file=four.txt");
        make(&["counting", "late", "late"]);
        let (code, printed) = stage.order(lab, &[&pid, "stop"]);
        assert_eq!(
            (code, printed.contains("four.txt")),
            (Some(0), true),
            "{printed}"
        );
        let text = read(folder, "four.txt");
        let rows = text.lines().filter(|line| line.ends_with(" Patient.late"));
        let calls = rows.filter_map(|row| row.split_whitespace().nth(3)?.parse::<u64>().ok());
        assert_eq!(calls.sum::<u64>(), 2, "{what}: {text}");
        let (code, printed) = stage.order(lab, &[&pid, "stop"]);
        assert_eq!(
            (code, printed.contains("nothing is recorded")),
            (Some(1), true),
            "{printed}"
        );

        // One sentence reports what cannot be recorded, and the present recording continues.
        record("heap=sites,cutoff=0,file=five.txt");
        let (code, printed) = stage.order(lab, &[&pid, "--profile", "heap=nonsense"]);
        let sentence = "heap option value must be dump|sites|all";
        assert_eq!(
            (code, printed.contains(sentence)),
            (Some(2), true),
            "{printed}"
        );
        std::fs::write(folder.join("old.html"), "earlier").expect("written");
        let mut arguments = vec![&*pid, "--profile", "heap=nonsense", "--duration", "1"];
        arguments.extend(["-o", "old.html", "--force"]);
        let (code, printed) = stage.order(lab, &arguments);
        assert_eq!(read(folder, "old.html"), "earlier", "{printed}");
        assert_eq!(
            (code, printed.contains(sentence)),
            (Some(2), true),
            "{printed}"
        );
        make(&["counting", "late"]);
        program.finish("kept 3501");
        let text = read(folder, "five.txt");
        assert_eq!(
            objects_of(&text, " Patient$Late"),
            Some((500, 500)),
            "{what}"
        );
    }
}

#[test]
fn a_recording_for_a_while_is_written_here_and_leaves_the_program_clean() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, stage, .. } = &here;
        for output in ["flames.html", "samples.hprof.txt", "samples.hprof"] {
            let (code, printed) = stage.order(lab, &[&pid, "--duration", "1", "-o", output]);
            assert_eq!(code, Some(0), "{output}: {printed}");
            let text = read(stage.folder.path(), output);
            let begins = match output {
                "flames.html" => text.starts_with("<!"),
                _ => text.starts_with("JAVA PROFILE"),
            };
            assert!(begins, "{output}: {text}");
            let printed = stage.order(lab, &[&pid, "status"]).1;
            assert!(printed.contains("nothing is recorded"), "{printed}");
        }
        for command in ["attach", "watch"] {
            let listed = stage.run(&[command]);
            let rows = String::from_utf8_lossy(&listed.stdout).into_owned();
            assert!(
                rows.contains(&format!("{pid} Patient\n")),
                "{command}: {rows}"
            );
        }
        program.finish("kept 1000");
    }
}

#[test]
fn a_profile_of_a_started_program_has_the_form_of_its_file_name() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let library = lab.agent.to_string_lossy();
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let java = jdk.tool("java");
        let classes = lab.classes().to_string_lossy();
        let run = |profile: &str, output: &str| {
            let arguments = [
                "run",
                "--agent",
                &library,
                "--profile",
                profile,
                "-o",
                output,
            ];
            let program = ["--", java.to_str().unwrap(), "-cp", &classes, "Known"];
            let ran = stage.run(&[&arguments[..], &program].concat());
            let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
            (ran.status.code(), printed)
        };
        let begins: [(&str, &[u8]); 7] = [
            ("a.jfr", b"FLR\0"),
            ("a.pb.gz", b"\x1f\x8b"),
            ("a.html", b"<!"),
            ("a.json", b"{"),
            ("a.collapsed", b""),
            ("a.hprof", b"JAVA PROFILE 1.0.2"),
            ("a", b"JAVA PROFILE 1.0.1, "),
        ];
        for (output, begin) in begins {
            let (code, printed) = run("heap=sites", output);
            assert!(printed.contains(&format!("wrote {output} (")), "{printed}");
            let bytes = std::fs::read(stage.folder.path().join(output)).expect(output);
            assert!(bytes.starts_with(begin) && code.is_some(), "{output}");
            let is_own = ["a", "a.hprof"].contains(&output);
            assert_eq!(bytes.starts_with(b"JAVA PROFILE"), is_own, "{output}");
        }
        let (code, printed) = run("heap=sites", "a.unknown");
        assert_eq!(code, Some(2), "{printed}");
        assert!(
            printed.contains("a.unknown: the ending is none of .jfr"),
            "{printed}"
        );
        let (code, printed) = run("heap=sites", "a.jfr");
        assert_eq!(code, Some(2), "{printed}");
        // A heap dump has no stacks; it is not lost.
        let (_, printed) = run("heap=dump", "b.jfr");
        assert!(
            printed.contains("b.jfr is not written; b.jfr.hprof is"),
            "{printed}"
        );
        assert!(stage.folder.path().join("b.jfr.hprof").is_file());
        for command in ["attach", "listen"] {
            let more = ["1", "--duration", "1", "-o", "a.unknown"];
            let more: &[&str] = if command == "attach" {
                &more
            } else {
                &["0", "-o", "c.jfr"]
            };
            let ran = stage.run(&[&[command], more].concat());
            assert_eq!(ran.status.code(), Some(2), "{command}");
        }
    }
}

#[test]
fn a_signal_to_tenure_run_ends_the_program_and_writes_its_profile() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        // The program itself, and a JVM that another program has started and waits for.
        for (is_child, signal, code) in [
            (true, "TERM", 143),
            (true, "INT", 130),
            // The terminal is closed.
            (true, "HUP", 129),
            (false, "TERM", 143),
        ] {
            let Some(stage) = stage(lab) else { continue };
            // A test run in the background of a script ignores SIGINT and SIGQUIT, and so would everything that it starts.
            let mut tenure = Command::new("env");
            tenure
                .arg("--default-signal=INT,QUIT,HUP")
                .arg(&stage.tenure);
            tenure.current_dir(stage.folder.path());
            tenure.args([
                "run",
                "--profile",
                "heap=sites",
                "-o",
                "end.hprof.txt",
                "--agent",
            ]);
            tenure.arg(&lab.agent).arg("--");
            if !is_child {
                tenure.args(["sh", "-c", "\"$@\"; exit 1", "sh"]);
            }
            tenure
                .arg(jdk.tool("java"))
                .arg("-cp")
                .arg(stage.classes.path())
                .arg("Patient");
            let mut program = Talk::start(tenure);
            program.expect("ready");
            let folder = socket_folder(program.child.id());
            assert!(folder.is_dir(), "{}", folder.display());
            let pid = program.child.id().to_string();
            let send = |signal: &str| {
                let sent = Command::new("kill").args(["-s", signal, &pid]).status();
                assert!(sent.expect("kill").success());
            };
            // The JVM prints its threads, and the shell that has started it continues.
            send("QUIT");
            while !program.line().starts_with("Full thread dump") {}
            send(signal);
            assert_eq!(program.code(), Some(code), "{signal} {is_child}");
            let text = read(stage.folder.path(), "end.hprof.txt");
            assert!(text.contains("SITES END"), "{text}");
            assert!(!folder.exists(), "{}", folder.display());
        }
    }
}

/// The folder of the socket that the program, which this process has started, gets as the agent's option.
fn socket_folder(pid: u32) -> PathBuf {
    let read = |path: String| std::fs::read(path).expect("it runs");
    let children = read(format!("/proc/{pid}/task/{pid}/children"));
    let child = String::from_utf8_lossy(&children).trim().to_owned();
    let given = ["cmdline", "environ"].map(|what| read(format!("/proc/{child}/{what}")));
    let given = String::from_utf8_lossy(&given.concat()).into_owned();
    let (_, address) = given.split_once("net=unix:").expect("an address");
    let (folder, _) = address.split_once("/agent").expect("a socket");
    PathBuf::from(folder)
}

#[test]
fn a_refused_recording_fails_and_events_are_recorded_for_a_while() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, jdk, stage } = &here;
        let native = |output: &str| {
            let arguments = ["--profile", "native=1k", "--duration", "1", "-o", output];
            stage.order(lab, &[&[&*pid], &arguments[..]].concat())
        };
        let (code, printed) = native("first.html");
        assert_eq!(code, Some(0), "{printed}");
        let (code, printed) = native("second.html");
        assert_eq!(code, Some(3), "{printed}");
        assert!(
            printed.contains("only the first recording of a program can have them"),
            "{printed}"
        );
        assert!(!printed.contains("wrote"), "{printed}");
        assert!(!stage.folder.path().join("second.html").exists());

        if jdk.version >= 11 {
            let printed = stage.ordered(lab, &[&pid, "--events", "a.events", "--duration", "1"]);
            assert!(printed.contains("wrote a.events ("), "{printed}");
            let bytes = std::fs::read(stage.folder.path().join("a.events")).expect("events");
            assert!(bytes.starts_with(b"VMPI\r\n\x1a\n"));
            let (code, printed) = stage.order(lab, &[&pid, "status"]);
            assert!(printed.contains("nothing is recorded"), "{printed}");
            assert_eq!(code, Some(1), "{printed}");
        }
        program.finish("kept 1000");
    }
}

#[test]
fn a_recording_that_has_ended_leaves_no_code_in_the_classes() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        let Some((stage, library)) = crate::stopped::stage_of(lab) else {
            return;
        };
        let what = format!("JDK {}", jdk.full_version);
        let mut program = crate::stopped::Subject::start(lab, &stage, jdk, &library, None);
        let plain = program.code();
        let pid = program.pid();
        for options in ["heap=sites", "cpu=times"] {
            let options = format!("{options},file=out.txt");
            let (code, printed) = stage.order(lab, &[&pid, "--profile", &options]);
            assert_eq!(code, Some(0), "{what}: {printed}");
            program.await_other_code(plain, &what);
            let (code, printed) = stage.order(lab, &[&pid, "stop"]);
            assert_eq!(code, Some(0), "{what}: {printed}");
            program.await_code(plain, &what);
            program.send("keep 10");
        }
    }
}

#[test]
fn recordings_that_have_ended_leave_no_memory_behind() {
    // Room for samples alone is 2 MB of each recording.
    const RECORDINGS: u64 = 8;
    const MOST_KB: u64 = 1024;
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().rev().take(1) {
        let Some(stage) = stage(lab) else { continue };
        let mut program = stage.patient(jdk, None);
        let pid = program.child.id().to_string();
        let record = || {
            for arguments in [
                &["--profile", "cpu=samples,force=y,file=again.txt"][..],
                &["stop"],
            ] {
                let (code, printed) = stage.order(lab, &[&[&pid[..]], arguments].concat());
                assert_eq!(code, Some(0), "{printed}");
            }
        };
        record();
        record();
        let before = resident_kb(&pid);
        for _ in 0..RECORDINGS {
            record();
        }
        let grown = resident_kb(&pid).saturating_sub(before);
        assert!(
            grown < RECORDINGS * MOST_KB,
            "JDK {}: {grown} KB after {RECORDINGS} recordings",
            jdk.full_version
        );
        program.type_line("end");
        program.expect("kept 1000");
    }
}

/// The diagnostic command runs on a thread of the program, beside the commands of the attach socket.
#[test]
fn a_recording_that_replaces_none_does_not_end_one_that_begins_meanwhile() {
    for (here, mut program, pid) in running(|lab| lab.some_jdks()) {
        let Here { lab, jdk, stage } = &here;
        if jdk.version < 11 {
            continue;
        }
        let what = format!("JDK {}", jdk.full_version);
        let pipe = stage.folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        let options = format!("unless-recorded,cpu=samples,file={}", pipe.display());
        program.type_line(&format!("load {} {options}", lab.agent.display()));
        // It waits for the reader of the pipe.
        testkit::until(|| match is_opening(&pid, "loader") {
            true => Ok(()),
            false => Err("the agent does not open the pipe"),
        });
        let kept = stage.attach(lab, &pid, "heap=sites,cutoff=0");
        let pipe = std::fs::read(&pipe).expect("a pipe");
        assert_eq!(program.line(), "return code: -1", "{what}");
        assert!(pipe.is_empty(), "{what}");
        let (code, printed) = stage.order(lab, &[&pid, "status"]);
        assert_eq!(code, Some(0), "{what}: {printed}");
        let name = kept.file_name().expect("a name").to_string_lossy();
        let expected = ["heap=sites", &name];
        assert!(
            expected.iter().all(|words| printed.contains(words)),
            "{what}: {printed}"
        );
        program.finish("kept 1000");
    }
}

/// Whether a thread of this name waits in a call of `openat`.
fn is_opening(pid: &str, thread: &str) -> bool {
    let number = if cfg!(target_arch = "aarch64") {
        "56 "
    } else {
        "257 "
    };
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    tasks.flatten().map(|task| task.path()).any(|task| {
        read(&task.join("comm")).trim() == thread && read(&task.join("syscall")).starts_with(number)
    })
}
