//! A VM that answers no request is dumped all the same, and continues afterwards.

use crate::common::{Heap, Program};
use hprof::HeapTag;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;
use testkit::jvm;
use vm_image::Fault;

#[test]
fn a_vm_that_reaches_no_safepoint_is_dumped() {
    let jdks = jvm::tested();
    if jdks.is_empty() {
        testkit::skip("a hung VM", testkit::Need::Jdk, jvm::NO_JDK);
    }
    for jdk in jdks {
        let flags = [
            "-XX:+UseSerialGC",
            "-XX:-UseCountedLoopSafepoints",
            "-XX:LoopStripMiningIter=0",
        ];
        let Some(program) = Program::start(&jdk, "Hung", &flags) else {
            return;
        };
        // It stays without an answer as long as the loop runs.
        let mut asked = program.jcmd().arg("Thread.print").spawn().expect("jcmd");
        // The collection may still have begun before the loop.
        let (bytes, summary) =
            testkit::until(|| program.dump_frozen().map_err(|fault| fault.to_string()));
        let answered = asked.try_wait().expect("a child");
        drop(asked.kill());
        drop(asked.wait());
        assert_eq!(answered, None, "the VM does not hang");
        let heap = Heap::read(&bytes);
        let named = heap.loaded.values().filter(|name| *name == "Hung");
        assert_eq!(named.count(), 1);
        let threads = heap.of_root(HeapTag::RootThreadObject).len();
        assert!(threads >= 3, "{threads} {summary:?}");
        assert!(heap.objects.len() > 3000, "{summary:?}");
        // At most one object of a thread that was just allocating cannot be read.
        assert!(summary.damage.total() <= 2, "{summary:?}");
    }
}

#[test]
fn a_vm_without_its_main_thread_is_dumped() {
    let Some(jdk) = jvm::tested().pop() else {
        testkit::skip("an ended main thread", testkit::Need::Jdk, jvm::NO_JDK);
        return;
    };
    let Some(program) = Program::start_without_main_thread(&jdk, "Rest") else {
        return;
    };
    let (bytes, summary) = program.dump_frozen().expect("a dump");
    assert!(summary.objects() > 10_000, "{summary:?}");
    let heap = Heap::read(&bytes);
    let named = heap.loaded.values().filter(|name| *name == "Rest");
    assert_eq!(named.count(), 1);
    let pid = program.pid().to_string();
    let tenure = |words: &[&str]| {
        let mut tenure = Command::new(testkit::built::tenure());
        tenure
            .args(words)
            .env("TENURE_AGENT", testkit::built::agent());
        let ran = tenure.current_dir(program.folder.path()).output();
        let ran = ran.expect("tenure");
        let printed = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{printed}");
    };
    tenure(&["dump", &pid, "--all", "-o", "of-vm.hprof"]);
    // The agent finds the threads that run already, and reads the memory of its process.
    let options = "cpu=samples,frames=native";
    let record = ["attach", &pid, "--profile", options, "--duration", "1"];
    tenure(&[&record[..], &["-o", "samples.txt"]].concat());
    let samples = std::fs::read_to_string(program.folder.path().join("samples.txt"));
    let samples = samples.expect("a profile");
    for fault in ["threads that run already", "no native frames"] {
        assert!(!samples.contains(fault), "{samples}");
    }
}

/// The kernel refuses to trace such a thread, as if this user may not do so.
#[test]
fn a_thread_that_has_ended_does_not_prevent_a_stop() {
    let mut child = Command::new("true").spawn().expect("a process");
    let stat = format!("/proc/{}/stat", child.id());
    testkit::until(|| match std::fs::read_to_string(&stat) {
        Ok(stat) if stat.contains(") Z ") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let frozen = vm_image::Frozen::new(child.id()).expect("no thread is left");
    assert!(frozen.registers().is_empty());
    drop(child.wait());
}

#[test]
fn a_program_goes_on_after_it_was_stopped() {
    let Some(jdk) = jvm::tested().pop() else {
        testkit::skip("a stopped VM", testkit::Need::Jdk, jvm::NO_JDK);
        return;
    };
    let Some(mut program) = Program::start(&jdk, "Rest", &[]) else {
        return;
    };
    let mut input = program.input.take().expect("its input");
    for _ in 0..20 {
        drop(vm_image::Frozen::new(program.pid()).expect("a stopped process"));
    }
    {
        let frozen = vm_image::Frozen::new(program.pid()).expect("a stopped process");
        assert!(frozen.registers().len() > 5);
        let status = std::fs::read_dir(format!("/proc/{}/task", program.pid())).expect("threads");
        for thread in status.flatten() {
            let stat = std::fs::read_to_string(thread.path().join("stat")).expect("a thread");
            let (_, rest) = stat.rsplit_once(") ").expect("a state");
            assert!(rest.starts_with('t'), "{stat}");
        }
    }
    input.write_all(b"x").expect("written");
    assert_eq!(program.line(), "alive");
}

#[test]
fn a_copy_that_ends_is_the_reason_although_its_connection_is_open() {
    let Some(jdk) = jvm::tested().pop() else {
        testkit::skip("a copy that ends", testkit::Need::Jdk, jvm::NO_JDK);
        return;
    };
    let Some(mut program) = Program::start(&jdk, "Rest", &[]) else {
        return;
    };
    let (ours, mut theirs) = UnixStream::pair().expect("a connection");
    theirs.write_all(&[0; 16]).expect("written");
    let copied = vm_image::Copied::met(ours, program.pid()).expect("a copy");
    let read = copied.read(u64::MAX, |memory, place| {
        program.kill();
        vm_image::dump(memory, place, std::io::sink())
    });
    assert!(matches!(read, Err(Fault::CopyEnded)), "{read:?}");
}

#[test]
fn a_process_that_is_no_vm_is_refused() {
    let mut child = std::process::Command::new("sleep")
        .arg("100")
        .spawn()
        .expect("sleep");
    let opened = vm_image::Process::open(child.id());
    drop(child.kill());
    drop(child.wait());
    let fault = opened.expect_err("no VM").to_string();
    assert!(fault.contains("no HotSpot JVM"), "{fault}");
}

#[test]
fn zgc_is_refused_by_name() {
    let Some(jdk) = jvm::tested().pop() else {
        testkit::skip("ZGC", testkit::Need::Jdk, jvm::NO_JDK);
        return;
    };
    let wanted = "-XX:+UseZGC";
    let printed = std::process::Command::new(jdk.tool("java"))
        .args([wanted, "-version"])
        .output();
    if !printed.is_ok_and(|ran| ran.status.success()) {
        testkit::skip("ZGC", testkit::Need::JdkPart, "this JDK does not have it");
        return;
    }
    let Some(program) = Program::start(&jdk, "Rest", &[wanted]) else {
        return;
    };
    let fault = program.dump_frozen().expect_err("another collector");
    assert!(fault.to_string().contains("uses ZGC,"), "{fault}");
}
