//! `tenure dump --snapshot`, `--frozen` and `--core` as commands.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::jvm;

/// A program that says `ready`, and a line for each byte of its input. Its class is found by its name, so that each
/// has another one.
const SOURCE: &str = r#"
import java.util.ArrayList;
import java.util.List;

public class NAME {
    static final List<byte[]> kept = new ArrayList<>();
    static final String secret = new StringBuilder("terces-gnitser").reverse().toString();
    static final byte[] large = new byte[3_000_000];
    static Node chain;

    static final class Node {
        Node next;
    }

    /** Holds in a local variable what a static field keeps alive, too: the middle of the chain. */
    static void answer(Node middle) throws Exception {
        for (int next = System.in.read(); next >= 0; next = System.in.read()) {
            if (next == 'w') {
                for (byte[] some : kept) {
                    java.util.Arrays.fill(some, (byte) 1);
                }
            }
            System.out.println(middle == null ? "dead" : "alive");
        }
    }

    /** Holds in a local variable what nothing else keeps alive. */
    static void hold() {
        List<byte[]> own = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            own.add(new byte[1000]);
        }
        synchronized (own) {
            try {
                own.wait();
            } catch (InterruptedException end) {
                System.out.println(own);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 1000; i++) {
            kept.add(new byte[4000 + i]);
        }
        java.util.Arrays.fill(large, (byte) 'S');
        Node middle = null;
        for (int i = 0; i < 1000; i++) {
            Node node = new Node();
            node.next = chain;
            chain = node;
            middle = i == 500 ? node : middle;
        }
        Thread holder = new Thread(NAME::hold, "holder");
        holder.setDaemon(true);
        holder.start();
        while (holder.getState() != Thread.State.WAITING) {
            Thread.yield();
        }
        System.out.println("ready");
        answer(middle);
    }
}
"#;

/// A class for a program: another one for each, also in other processes of tests.
fn other_name() -> String {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    format!("Resting{}x{number}x", std::process::id())
}

struct Resting {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: tempfile::TempDir,
}

impl Resting {
    fn start(flags: &[&str]) -> Option<Resting> {
        Resting::prepared(flags, |_| {})
    }

    fn prepared(flags: &[&str], prepare: fn(&mut Command)) -> Option<Resting> {
        let found = jvm::tested().pop().zip(jvm::newest_compiler());
        let Some((jdk, compiler)) = found else {
            testkit::skip("a resting program", testkit::Need::Jdk, jvm::NO_JDK);
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let name = other_name();
        let source = folder.path().join(format!("{name}.java"));
        fs::write(&source, SOURCE.replace("NAME", &name)).expect("written");
        compiler
            .compile(&source, 8, folder.path())
            .expect("compiled");
        let mut command = Command::new(jdk.tool("java"));
        prepare(&mut command);
        command.args(flags).arg("-cp").arg(folder.path()).arg(&name);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a JVM");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut resting = Resting {
            name,
            child,
            input,
            output,
            folder,
        };
        assert_eq!(resting.line(), "ready");
        Some(resting)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn is_alive(&mut self) {
        self.order(b"x");
    }

    /// Has it write to all of its arrays.
    fn writes(&mut self) {
        self.order(b"w");
    }

    fn order(&mut self, order: &[u8]) {
        self.input.write_all(order).expect("written");
        self.input.flush().expect("flushed");
        assert_eq!(self.line(), "alive");
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// A dump to standard output of which the beginning was read. The command waits until the rest is.
    fn begin_dump(&self, options: &[&str]) -> Child {
        let mut command = Command::new(testkit::built::tenure());
        command.args(["dump", &self.pid(), "-o", "-"]).args(options);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(self.folder.path());
        let mut dumping = command.spawn().expect("tenure");
        let stdout = dumping.stdout.as_mut().expect("its output");
        let begun = stdout.read_exact(&mut [0; BEGINNING]);
        begun.expect("the beginning of a dump");
        dumping
    }
}

/// Bytes of a dump that are read at first.
const BEGINNING: usize = 4096;

impl Drop for Resting {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Exit code, standard output and standard error.
fn tenure(folder: &Path, args: &[&str]) -> (Option<i32>, Vec<u8>, String) {
    let ran = Command::new(testkit::built::tenure())
        .args(args)
        .current_dir(folder)
        .output();
    let ran = ran.expect("tenure");
    let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
    (ran.status.code(), ran.stdout, printed)
}

#[test]
fn a_frozen_program_is_dumped_to_a_file_and_to_standard_output() {
    let Some(mut resting) = Resting::start(&[]) else {
        return;
    };
    let (pid, folder) = (resting.pid(), resting.folder.path().to_owned());
    let args = ["dump", &pid, "--frozen", "-o", "rest.hprof"];
    let (code, _, printed) = tenure(&folder, &args);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("was stopped for"), "{printed}");
    assert!(
        printed.contains("local variables are conservative"),
        "{printed}"
    );
    let path = folder.join("rest.hprof");
    let mode = fs::metadata(&path).expect("a dump").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    resting.is_alive();
    let (code, stdout, printed) = tenure(&folder, &["histogram", "rest.hprof", "--json"]);
    assert_eq!(code, Some(0), "{printed}");
    let rows: serde_json::Value = serde_json::from_slice(&stdout).expect("JSON");
    assert_eq!(rows["damaged"], false);
    let rows = rows["rows"].as_array().expect("rows");
    let bytes = rows.iter().find(|row| row["class"] == "byte[]");
    let bytes = bytes.expect("a row of arrays");
    assert!(bytes["objects"].as_u64() > Some(1000), "{bytes}");
    assert!(bytes["shallow"].as_u64() > Some(4_400_000), "{bytes}");
    // A word of a stack that points into the chain does not split what the chain retains; one that alone keeps a list
    // alive makes its thread retain it.
    let retained = |query: &str| -> u64 {
        let (code, stdout, printed) = tenure(&folder, &["query", "rest.hprof", query, "--json"]);
        assert_eq!(code, Some(0), "{printed}");
        let rows: serde_json::Value = serde_json::from_slice(&stdout).expect("JSON");
        let numbers = rows["rows"].as_array().expect("rows").iter();
        numbers
            .filter_map(|row| row[0].as_u64())
            .max()
            .expect("a row")
    };
    let node = retained(&format!(
        "select x.@retainedHeapSize from {}$Node x",
        resting.name
    ));
    assert!(node >= 1000 * 16, "{node}");
    let thread = retained("select x.@retainedHeapSize from java.lang.Thread x");
    assert!(thread >= 1000 * 1000, "{thread}");
    let (code, _, printed) = tenure(&folder, &args);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("exists (--force overwrites)"), "{printed}");
    // The JVM cannot write to a device, and a new file must not replace it.
    let device = folder.join("device");
    symlink("/dev/null", &device).expect("a link");
    let (code, _, printed) = tenure(&folder, &["dump", &pid, "-o", "device", "--force"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("is not a regular file"), "{printed}");
    assert!(device.is_symlink());
    let (code, stdout, printed) = tenure(&folder, &["dump", &resting.name, "--frozen", "-o", "-"]);
    assert_eq!(code, Some(0), "{printed}");
    // Nothing was allocated since; the number of the conservative roots may differ by a few.
    let len = fs::metadata(&path).expect("a dump").len();
    assert!(
        stdout.len().abs_diff(len as usize) < 1 << 20,
        "{len} {}",
        stdout.len()
    );
    assert!(stdout.starts_with(b"JAVA PROFILE 1.0.2\0"));
}

/// The name is free when the command begins, and not when the dump is complete.
#[test]
fn a_dump_whose_usual_name_was_taken_meanwhile_gets_the_next_one() {
    let Some(resting) = Resting::start(&[]) else {
        return;
    };
    let (pid, folder) = (resting.pid(), resting.folder.path());
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill").success());
    };
    signal("-STOP");
    let mut command = Command::new(testkit::built::tenure());
    command.args(["dump", &pid, "--snapshot"]);
    let dumping = command.current_dir(folder).stderr(Stdio::piped()).spawn();
    let dumping = dumping.expect("tenure");
    testkit::until(|| {
        let names = fs::read_dir(folder).expect("a folder").flatten();
        let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let has_begun = names.any(|name| name.ends_with(".part"));
        has_begun.then_some(()).ok_or("no output")
    });
    let usual = folder.join(format!("heap-{pid}.hprof"));
    fs::write(&usual, "another dump").expect("written");
    signal("-CONT");
    let ran = dumping.wait_with_output().expect("an end");
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    let next = format!("heap-{pid}-2.hprof");
    assert!(printed.contains(&format!("wrote {next}")), "{printed}");
    let dump = fs::read(folder.join(next)).expect("a dump");
    assert!(dump.starts_with(b"JAVA PROFILE 1.0.2\0"));
    assert_eq!(fs::read(usual).expect("a file"), b"another dump");
}

#[test]
fn a_program_continues_when_the_command_that_stopped_it_is_killed() {
    let Some(mut resting) = Resting::start(&[]) else {
        return;
    };
    // Some of the dump was written, so the program is stopped.
    let mut dumping = resting.begin_dump(&["--frozen"]);
    let status = fs::read_to_string(format!("/proc/{}/status", resting.pid())).expect("a process");
    assert!(status.contains("t (tracing stop)"), "{status}");
    dumping.kill().expect("killed");
    dumping.wait().expect("ended");
    resting.is_alive();
}

/// Processes whose parent this one is, also those that have ended and were not waited for.
fn children(parent: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains(&format!("\nPPid:\t{parent}\n"))
    };
    ids.filter(is_child).collect()
}

fn wait_until_childless(parent: &str) {
    testkit::until(|| match children(parent)[..] {
        [] => Ok(()),
        ref left => Err(format!("{left:?}")),
    });
}

/// Waits until a child of this process has ended; it stays a zombie.
fn wait_until_ended(pid: &str) {
    testkit::until(|| {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        match state
            .rsplit_once(") ")
            .is_none_or(|(_, rest)| rest.starts_with('Z'))
        {
            true => Ok(()),
            false => Err(state),
        }
    });
}

#[test]
fn a_copy_is_dumped_while_the_program_runs_on() {
    let Some(mut resting) = Resting::start(&[]) else {
        return;
    };
    let (pid, folder) = (resting.pid(), resting.folder.path().to_owned());
    let mut dumping = resting.begin_dump(&["--snapshot"]);
    // The rest has not been read yet, and the program changes what is in its heap.
    let copies = children(&pid);
    assert_eq!(copies.len(), 1, "{copies:?}");
    resting.writes();
    // The copy is no JVM to attach to, has no files of the program's, and is the first to go.
    let copy = copies[0];
    let read = |name: &str| fs::read_to_string(format!("/proc/{copy}/{name}")).expect("a file");
    assert_eq!(read("oom_score_adj"), "1000\n");
    assert_eq!(
        fs::read_dir(format!("/proc/{copy}/fd"))
            .expect("files")
            .count(),
        1
    );
    let (code, stdout_of_list, printed) = tenure(&folder, &["attach", "--list"]);
    assert_eq!(code, Some(0), "{printed}");
    let listed = String::from_utf8_lossy(&stdout_of_list).into_owned();
    assert!(listed.contains(&pid), "{listed}");
    assert!(!listed.contains(&copy.to_string()), "{listed}");
    // A second one would take memory, too.
    let (code, _, printed) = tenure(&folder, &["dump", &pid, "--snapshot", "-o", "second.hprof"]);
    assert_eq!(code, Some(3), "{printed}");
    assert!(printed.contains("is being read already"), "{printed}");
    let mut rest = Vec::new();
    let stdout = dumping.stdout.as_mut().expect("its output");
    stdout.read_to_end(&mut rest).expect("the rest");
    let ended = dumping.wait_with_output().expect("tenure");
    let printed = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{printed}");
    assert!(printed.contains("was stopped for"), "{printed}");
    assert!(
        printed.contains("which the program has changed"),
        "{printed}"
    );
    resting.is_alive();
    wait_until_childless(&pid);
    // What the program has written since is not in the dump.
    let ones = rest
        .windows(3500)
        .filter(|bytes| bytes.iter().all(|byte| *byte == 1))
        .count();
    assert_eq!(ones, 0, "the dump has what was written after the snapshot");
}

#[test]
fn nothing_is_left_of_a_snapshot_whose_reader_is_killed() {
    let Some(mut resting) = Resting::start(&[]) else {
        return;
    };
    let pid = resting.pid();
    let mut dumping = resting.begin_dump(&["--snapshot"]);
    assert_eq!(children(&pid).len(), 1);
    dumping.kill().expect("killed");
    dumping.wait().expect("ended");
    wait_until_childless(&pid);
    resting.is_alive();
}

#[test]
fn a_dump_ends_with_a_reason_when_its_copy_does() {
    let Some(mut resting) = Resting::start(&[]) else {
        return;
    };
    let pid = resting.pid();
    for killed in ["copy", "program"] {
        let dumping = resting.begin_dump(&["--snapshot"]);
        let victim = match killed {
            "copy" => children(&pid)[0].to_string(),
            _ => pid.clone(),
        };
        let ended = Command::new("kill").args(["-9", &victim]).status();
        assert!(ended.expect("kill").success());
        // The rest of the dump is read when it is gone.
        match killed {
            "copy" => wait_until_childless(&pid),
            _ => wait_until_ended(&pid),
        }
        let ended = dumping.wait_with_output().expect("tenure");
        let printed = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{killed}: {printed}");
        assert!(printed.contains("was ended"), "{killed}: {printed}");
        if killed == "copy" {
            resting.is_alive();
        }
    }
}

#[test]
fn a_snapshot_keeps_to_its_limit_of_memory() {
    let Some(mut resting) = Resting::start(&[]) else {
        return;
    };
    let pid = resting.pid();
    let dumping = resting.begin_dump(&["--snapshot", "--cow-limit", "2M"]);
    resting.writes();
    // The copy ends although the rest of the dump is not read.
    wait_until_childless(&pid);
    let ended = dumping.wait_with_output().expect("tenure");
    let printed = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{printed}");
    assert!(
        printed.contains("more than --cow-limit (2.0 MiB) allows"),
        "{printed}"
    );
    resting.is_alive();
}

#[test]
fn a_full_disk_ends_a_snapshot_and_its_copy() {
    let Some(mut resting) = Resting::start(&[]) else {
        return;
    };
    let pid = resting.pid();
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = Command::new(testkit::built::tenure());
    command.args(["dump", &pid, "--snapshot", "-o", "-"]);
    let ran = command.stdout(full.expect("a full disk")).output();
    let ran = ran.expect("tenure");
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{printed}");
    assert!(printed.contains("cannot write the dump"), "{printed}");
    wait_until_childless(&pid);
    resting.is_alive();
}

/// What a process holds of its system.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    files: usize,
    threads: usize,
    mappings: usize,
    /// KiB of address space.
    size: u64,
}

impl Held {
    fn by(pid: &str) -> Held {
        let open = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).expect("a folder");
        let read = |what: &str| fs::read_to_string(format!("/proc/{pid}/{what}")).expect("a file");
        let status = read("status");
        let size = status
            .lines()
            .find_map(|line| line.strip_prefix("VmSize:"))
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .expect("a size");
        Held {
            files: open("fd").count(),
            threads: open("task").count(),
            mappings: read("maps").lines().count(),
            size: size.parse().expect("a number"),
        }
    }
}

#[test]
fn a_program_is_moved_to_huge_pages_before_it_is_copied() {
    let heap = [
        "-XX:+UseSerialGC",
        "-Xms128m",
        "-Xmx128m",
        "-XX:+AlwaysPreTouch",
    ];
    let Some(mut resting) = Resting::start(&heap) else {
        return;
    };
    let (pid, folder) = (resting.pid(), resting.folder.path().to_owned());
    let memory = |name: &str| {
        let all = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("its memory");
        let line = all.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.parse::<u64>().ok()).expect(name)
    };
    let before = memory("Rss:");
    let args = [
        "dump",
        &pid,
        "--snapshot",
        "--huge-pages",
        "-o",
        "moved.hprof",
    ];
    let (code, _, printed) = tenure(&folder, &args);
    assert_eq!(code, Some(0), "{printed}");
    if printed.contains("since Linux 6.1") {
        let reason = "the kernel moves nothing to huge pages on request";
        return testkit::skip("huge pages", testkit::Need::Program, reason);
    }
    assert!(
        printed.contains("were moved to huge pages before"),
        "{printed}"
    );
    // The heap alone has 128 MiB, all of which is there.
    let huge = memory("AnonHugePages:");
    assert!(huge >= 100 << 10, "{huge} KiB: {printed}");
    // The agent was loaded, which takes a few MiB.
    let more = memory("Rss:").saturating_sub(before);
    assert!(more < 32 << 10, "{more} KiB");
    let (code, stdout, printed) = tenure(&folder, &["summary", "moved.hprof"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(!stdout.is_empty());
    resting.is_alive();
}

#[test]
fn many_snapshots_leave_nothing_behind() {
    // No compilers, whose threads and memory come and go.
    let Some(mut resting) = Resting::start(&["-Xint", "-XX:+UseSerialGC", "-Xmx48m"]) else {
        return;
    };
    let (pid, folder) = (resting.pid(), resting.folder.path().to_owned());
    let args = ["dump", &pid, "--snapshot", "-o", "-"];
    let take = |count: usize| {
        for _ in 0..count {
            let (code, _, printed) = tenure(&folder, &args);
            assert_eq!(code, Some(0), "{printed}");
            wait_until_childless(&pid);
        }
    };
    let (first, others) = match jvm::is_matrix() {
        true => (100, 900),
        false => (10, 20),
    };
    take(first);
    let before = Held::by(&pid);
    take(others);
    // The thread that has waited for the last copy may still be about to end.
    testkit::until(|| match Held::by(&pid) {
        now if now == before => Ok(()),
        now => Err(format!("{now:?}, before {before:?}")),
    });
    resting.is_alive();
}

/// Bytes of a header, which ends with a time.
const HEADER: usize = 31;

#[test]
fn a_dump_is_redacted_while_it_is_written() {
    let flags = ["-XX:+UseSerialGC", "-Xmx48m"];
    let Some(mut resting) = Resting::prepared(&flags, jvm::with_small_core) else {
        return;
    };
    let (pid, folder) = (resting.pid(), resting.folder.path().to_owned());
    fs::write(folder.join("key"), [7; 32]).expect("a key");
    let run = |args: &[&str]| {
        let (code, stdout, printed) = tenure(&folder, args);
        assert_eq!(code, Some(0), "{args:?}: {printed}");
        (stdout, printed)
    };
    let has = |dump: &[u8], what: &[u8]| dump.windows(what.len()).any(|bytes| bytes == what);
    let kept = |dump: &[u8]| [&b"resting-secret"[..], &[b'S'; 1000]].map(|what| has(dump, what));
    let (plain, _) = run(&["dump", &pid, "--frozen", "-o", "-"]);
    assert_eq!(kept(&plain), [true, true]);
    for how in ["--frozen", "--snapshot"] {
        let (dump, printed) = run(&["dump", &pid, how, "--redact", "--numbers", "-o", "-"]);
        assert!(printed.contains("contents are replaced"), "{printed}");
        assert_eq!(kept(&dump), [false, false], "{how}");
        assert!(has(&dump, b"kept"), "the name of a field");
        wait_until_childless(&pid);
    }
    resting.is_alive();
    let ran = Command::new("gcore")
        .args(["-o", "core", &pid])
        .current_dir(&folder)
        .output();
    if ran.is_err() {
        return testkit::skip("a core file", testkit::Need::Program, "no gcore (of gdb)");
    }
    let core = format!("core.{pid}");
    run(&["dump", "--core", &core, "-o", "plain.hprof"]);
    for options in [
        &["--key-file", "key"][..],
        &["--numbers", "--key-file", "key"],
    ] {
        let redacted = ["dump", "--core", &core, "-o", "-", "--redact"];
        let (dump, _) = run(&[&redacted, options].concat());
        let files = ["redact", "plain.hprof", "expected.hprof", "--force"];
        run(&[&files, options].concat());
        let expected = fs::read(folder.join("expected.hprof")).expect("a dump");
        assert!(is_redacted_as(&dump, &expected), "{options:?}");
    }
    let (zeros, _) = run(&["dump", "--core", &core, "-o", "-", "--redact=zero"]);
    run(&[
        "redact",
        "plain.hprof",
        "expected.hprof",
        "--force",
        "--method",
        "zero",
    ]);
    let expected = fs::read(folder.join("expected.hprof")).expect("a dump");
    assert!(is_redacted_as(&zeros, &expected));
}

/// Whether two dumps are the same but for their times and references to missing objects, which `redact` makes null.
fn is_redacted_as(dump: &[u8], expected: &[u8]) -> bool {
    let (dump, expected) = (&dump[HEADER..], &expected[HEADER..]);
    let mut pairs = dump.iter().zip(expected);
    dump.len() == expected.len() && pairs.all(|(byte, wanted)| byte == wanted || *wanted == 0)
}

#[test]
fn what_cannot_be_dumped_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("core"), b"what").expect("written");
    let check = |args: &[&str], code, sentence: &str| {
        let (found, _, printed) = tenure(folder, args);
        assert_eq!(found, Some(code), "{args:?}: {printed}");
        assert!(printed.contains(sentence), "{args:?}: {printed}");
        let left = fs::read_dir(folder).expect("a folder").count();
        assert_eq!(left, 1, "{args:?} left a file");
    };
    check(&["dump", "--core", "core", "-o", "x"], 3, "is no ELF core");
    check(
        &["dump", "--core", "none", "-o", "x"],
        3,
        "cannot open none",
    );
    check(
        &["dump", "--core", "core", "-o", "core", "--force"],
        2,
        "is the input",
    );
    check(&["dump", "1", "--libjvm", "x", "-o", "x"], 2, "--core");
    check(&["dump", "1", "--frozen", "--all", "-o", "x"], 2, "--all");
    let both = ["dump", "1", "--snapshot", "--frozen", "-o", "x"];
    check(&both, 2, "--frozen");
    check(
        &["dump", "1", "--cow-limit", "1G", "-o", "x"],
        2,
        "--snapshot",
    );
    check(&["dump", "-o", "x"], 2, "PID|MAIN");
    check(
        &["dump", "1", "-o", "-"],
        2,
        "only --snapshot, --frozen and --core",
    );
    check(
        &["dump", "1", "--redact", "-o", "x"],
        2,
        "--redact needs --snapshot, --frozen or --core",
    );
    check(
        &["dump", "1", "--frozen", "--numbers", "-o", "x"],
        2,
        "--redact",
    );
    check(
        &["dump", "no.such.Main", "--frozen", "-o", "x"],
        1,
        "no JVM runs",
    );
}
