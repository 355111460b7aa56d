//! A copy of a program whose reader, program or self is killed at each moment before it is read, and one that the system
//! refuses. `images.rs` of the `tenure` program does the same while a copy is read.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};

use testkit::jvm::Jdk;

use crate::common::lab;
use crate::common::stage::{Stage, Talk, stage};

/// Processes whose parent this one is, also those that have ended and were not waited for.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains(&format!("\nPPid:\t{parent}\n"))
    };
    ids.filter(is_child).collect()
}

fn wait_until_childless(parent: u32) {
    testkit::until(|| match children(parent)[..] {
        [] => Ok(()),
        ref left => Err(format!("{left:?}")),
    });
}

fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill").success());
}

/// Orders a copy for a reader at this socket, without `tenure`.
fn order(jdk: &Jdk, agent: &Path, pid: u32, socket: &Path) -> String {
    let ran = Command::new(jdk.tool("jcmd"))
        .args([&pid.to_string(), "JVMTI.agent_load"])
        .arg(agent)
        .arg(format!("\"snapshot={}\"", socket.display()))
        .output()
        .expect("jcmd runs");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Makes a whole snapshot, after which the program continues.
fn is_unharmed(stage: &Stage, program: &mut Talk) {
    let pid = program.child.id();
    let dumped = stage.run(&["dump", &pid.to_string(), "--snapshot", "-o", "-"]);
    let printed = String::from_utf8_lossy(&dumped.stderr).into_owned();
    assert_eq!(dumped.status.code(), Some(0), "{printed}");
    wait_until_childless(pid);
    program.type_line("late");
    program.expect("done late");
}

#[test]
fn a_copy_that_is_never_read_harms_nothing() {
    let Some(lab) = lab() else { return };
    let has_jcmd = |jdk: &&Jdk| jdk.version >= 9 && jdk.tool("jcmd").is_file();
    for jdk in lab.jdks.iter().filter(has_jcmd) {
        let Some(stage) = stage(lab) else { return };
        let socket = stage.folder.path().join("copy");
        let mut program = stage.patient(jdk, None);
        let pid = program.child.id();
        let begin = || {
            drop(std::fs::remove_file(&socket));
            let listener = UnixListener::bind(&socket).expect("a socket");
            let printed = order(jdk, &lab.agent, pid, &socket);
            assert!(printed.contains("return code: 0"), "{printed}");
            let copies = children(pid);
            assert_eq!(copies.len(), 1, "{copies:?}");
            (listener, copies[0])
        };

        // The reader ends before the copy has found it.
        let printed = order(jdk, &lab.agent, pid, &socket);
        assert!(printed.contains("return code: 0"), "{printed}");
        wait_until_childless(pid);
        is_unharmed(&stage, &mut program);

        // It ends before it has met the copy.
        drop(begin().0);
        wait_until_childless(pid);
        is_unharmed(&stage, &mut program);

        // It ends once it has.
        let (listener, _) = begin();
        drop(listener.accept().expect("the copy"));
        wait_until_childless(pid);
        is_unharmed(&stage, &mut program);

        // The copy is killed before and after that.
        for is_met in [false, true] {
            let (listener, copy) = begin();
            let _met = is_met.then(|| listener.accept().expect("the copy"));
            kill(copy);
            wait_until_childless(pid);
            is_unharmed(&stage, &mut program);
        }

        // The program is, and nothing of it is left.
        let (_listener, copy) = begin();
        kill(pid);
        program.child.wait().expect("its end");
        testkit::until(|| match Path::new(&format!("/proc/{copy}")).exists() {
            false => Ok(()),
            true => Err(format!("the copy {copy} is there")),
        });
    }
}

#[test]
fn a_fork_that_the_system_refuses_is_reported_and_the_vm_can_be_asked_instead() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(refusing) = lab.library("refuse_fork.c", folder.path()) else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { return };
        let mut java = Command::new(jdk.tool("java"));
        java.arg("-XX:+IgnoreUnrecognizedVMOptions")
            .arg("-XX:+EnableDynamicAgentLoading")
            .arg("-cp")
            .arg(stage.classes.path())
            .arg("Patient")
            .env("LD_PRELOAD", &refusing);
        let mut program = Talk::start(java);
        program.expect("ready");
        let pid = program.child.id().to_string();
        let text = |ran: &Output| String::from_utf8_lossy(&ran.stderr).into_owned();
        // The second one shows that the first has left nothing behind.
        for _ in 0..2 {
            let dumped = stage.run(&["dump", &pid, "--snapshot", "-o", "none.hprof"]);
            let printed = text(&dumped);
            assert_eq!(dumped.status.code(), Some(3), "{printed}");
            let reason = "this process could not be copied: Cannot allocate memory";
            assert!(printed.contains(reason), "{printed}");
            assert!(printed.contains("without --snapshot the JVM"), "{printed}");
            let files = std::fs::read_dir(stage.folder.path()).expect("a folder");
            assert_eq!(files.count(), 0, "a file is left");
        }
        let dumped = stage.run(&["dump", &pid, "-o", "own.hprof"]);
        assert_eq!(dumped.status.code(), Some(0), "{}", text(&dumped));
        program.type_line("late");
        program.expect("done late");
    }
}
