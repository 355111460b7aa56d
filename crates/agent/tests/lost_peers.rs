//! Collectors that go away, or stop reading: the program continues, and what they have got is a profile.

use std::fs::File;
use std::io::{BufRead, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::mpsc::channel;

use crate::common::stage::*;

/// What is reported of a collector that is abandoned.
const LOST: &str = "HPROF ERROR: the output is lost: the collector does not read; ";

#[test]
fn a_lost_listener_costs_the_program_nothing() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for mode in [
            "heap=all,format=b",
            "cpu=times",
            "cpu=samples,interval=1",
            "monitor=y",
        ] {
            let Some(stage) = stage(lab) else { continue };
            let (mut listener, port) = stage.listen();
            let options = format!("{mode},net=127.0.0.1:{port}");
            let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
            listener.child.kill().expect("killed");
            drop(listener.child.wait());
            for line in ["late", "spin"] {
                program.type_line(line);
                program.expect(&format!("done {line}"));
            }
            program.type_line("end");
            program.expect("kept 1500");
            assert_eq!(program.code(), Some(3), "{mode} on {}", jdk.full_version);
        }
    }
}

#[test]
fn a_collector_that_stops_reading_is_abandoned() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for mode in ["heap=all,format=b", "cpu=times,monitor=y"] {
            let Some(stage) = stage(lab) else { continue };
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("bound").port();
            let collector = std::thread::spawn(move || listener.accept().expect("the agent").0);
            let options = format!("{mode},net=127.0.0.1:{port}");
            let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
            let mut collector = collector.join().expect("accepted");
            for line in ["late", "twins", "both"] {
                program.type_line(line);
                program.expect(&format!("done {line}"));
            }
            // Dumps that no one takes, more than any buffer on the way has room for.
            for _ in 0..40 {
                collector
                    .write_all(&[2, 0, 0, 0, 0, 0, 0, 0, 0])
                    .expect("sent");
            }
            let what = format!("{mode} on {}", jdk.full_version);
            let (emit, shown) = channel();
            let errors = program.stderr();
            let printed = std::thread::spawn(move || {
                let lines = errors.lines().map_while(Result::ok);
                let shown = lines.inspect(|line| {
                    let _ = emit.send(line.contains(LOST));
                });
                shown.collect::<Vec<_>>()
            });
            let is_lost = || {
                shown
                    .recv_timeout(PATIENCE)
                    .expect("the agent abandons a collector")
            };
            while !is_lost() {}
            program.type_line("end");
            program.expect("kept 1500");
            assert_eq!(program.code(), Some(3), "{what}");
            let printed = printed.join().expect("text");
            let count = printed.iter().filter(|line| line.contains(LOST)).count();
            assert_eq!(count, 1, "{what}: {printed:?}");
            let mut received = Vec::new();
            // Commands that no one took end it by a reset, which leaves what came before.
            let _ = collector.read_to_end(&mut received);
            std::fs::write(stage.got(), &received).expect("written");
            check_cut(&stage, mode.contains("format=b"), &what);
        }
    }
}

#[test]
fn a_pipe_whose_reader_stops_reading_costs_the_program_nothing() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let pipe = stage.folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        let mut reader = File::options();
        let reader = reader.read(true).custom_flags(libc::O_NONBLOCK);
        let reader = reader.open(&pipe).expect("a reader");
        let options = format!("heap=all,format=b,file={}", pipe.display());
        let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
        program.finish("kept 1000");
        drop(reader);
    }
}

/// What a collector has got before it was abandoned is read as far as it goes, and a cut
/// inside of a record is reported.
fn check_cut(stage: &Stage, is_binary: bool, what: &str) {
    let ask = |command: &str| {
        let ran = stage.run(&[command, "got"]);
        let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
        (ran.status.code(), printed)
    };
    let (code, printed) = ask(if is_binary { "validate" } else { "profile" });
    if code == Some(0) && !is_binary {
        return; // Lines of text do not show whether the last one is whole.
    }
    assert_eq!(code, Some(4), "{what}: {printed}");
    assert!(printed.contains(" at "), "{what}: {printed}");
    if is_binary {
        // A dump of a program with records in its heap: the cut is found, and nothing in its wake.
        assert!(
            printed.contains("to the end of the file"),
            "{what}: {printed}"
        );
        let findings = printed.lines().filter(|line| line.contains(" at ")).count();
        assert_eq!(findings, 1, "{what}: {printed}");
        // The dump came first, so the tables were lost.
        let (code, printed) = ask("profile");
        assert_eq!(code, Some(3), "{what}: {printed}");
        assert!(
            printed.contains("heap dump without a profile"),
            "{what}: {printed}"
        );
    }
}
