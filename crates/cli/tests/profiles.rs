//! The commands about profiles and running programs, through the binary.

use crate::ran::tenure;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use vmpi::wire::{Frame, Item};
use vmpi::{BasicType, Body, DumpLevel};

macro_rules! profile {
    () => {
        "\
TRACE 300001:
\tdemo.Cpu.hot(Cpu.java:3)
\tdemo.Cpu.main(Cpu.java:14)
CPU SAMPLES BEGIN (total = 7) Sat Nov 21 04:57:27 2026
   1 100.00% 100.00%       7 300001 demo.Cpu.hot
CPU SAMPLES END
"
    };
}

pub(crate) const PROFILE: &str = profile!();

/// The same with the header, as an agent sends it.
pub(crate) const SENT: &str = concat!("JAVA PROFILE 1.0.1, created now\n\n", profile!());

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("p.txt"), PROFILE).expect("written");
    folder
}

/// An empty table is explained by a note, which used to be seen in the file only.
#[test]
fn notes_of_the_agent_are_shown() {
    let folder = folder();
    let with_note = format!("{PROFILE}NOTE: 3 lost: \x1b[31mstacks\r\n");
    std::fs::write(folder.path().join("n.txt"), with_note).expect("written");
    let ran = tenure(folder.path(), &["profile", "n.txt"]);
    let printed = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    assert!(
        printed.contains("n.txt: note of the agent: 3 lost: "),
        "{printed}"
    );
    assert!(!printed.contains('\x1b'), "{printed}");
    let without = tenure(folder.path(), &["profile", "p.txt"]);
    assert_eq!(text(&without.stderr), "");
}

/// The binary form has notes as names that nothing refers to. A thread may be called like a note.
#[test]
fn notes_of_the_agent_in_the_binary_form_are_shown() {
    fn record(tag: u8, fields: &[&[u8]]) -> Vec<u8> {
        let body = fields.concat();
        let length = u32::try_from(body.len()).expect("short").to_be_bytes();
        [&[tag, 0, 0, 0, 0][..], &length, &body].concat()
    }
    let id = |number: u64| number.to_be_bytes();
    let u4 = |number: u32| number.to_be_bytes();
    let name = |number: u64, text: &str| record(0x01, &[&id(number), text.as_bytes()]);
    let file = [
        b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\0".to_vec(),
        name(1, "NOTE: of a thread"),
        name(2, "main"),
        record(0x0a, &[&u4(1), &id(9), &u4(0), &id(1), &id(2), &id(2)]),
        record(0x05, &[&u4(1), &u4(1), &u4(0)]),
        record(0x0d, &[&u4(7), &u4(1), &u4(7), &u4(1)]),
        name(3, "NOTE: 3 lost: stacks"),
    ];
    let folder = folder();
    std::fs::write(folder.path().join("b.hprof"), file.concat()).expect("written");
    let ran = tenure(folder.path(), &["profile", "b.hprof"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    assert_eq!(
        text(&ran.stderr),
        "tenure: b.hprof: note of the agent: 3 lost: stacks\n"
    );
}

#[test]
fn a_profile_that_is_cut_before_its_tables_is_damaged() {
    let folder = folder();
    let cut = "JAVA PROFILE 1.0.1, created Wed Nov 25 12:00:00 2026\n\nHeader for -agentlib:hprof (or -Xrunhprof)\n\n\
               HEAP DUMP BEGIN (2 objects, 160 bytes) Wed Nov 25 12:00:00 2026\nARR 8be029be (sz=121, trace=3000";
    std::fs::write(folder.path().join("cut.txt"), cut).expect("written");
    let ran = tenure(folder.path(), &["profile", "cut.txt"]);
    let printed = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(4), "{printed}");
    assert!(
        printed.contains(" at ") && printed.contains("has no counts"),
        "{printed}"
    );
}

#[test]
fn a_profile_is_shown_and_added_up() {
    let folder = folder();
    let one = tenure(folder.path(), &["profile", "p.txt"]);
    assert_eq!(one.status.code(), Some(0), "{}", text(&one.stderr));
    assert!(text(&one.stdout).contains("demo.Cpu.hot"));
    let two = tenure(folder.path(), &["profile", "--json", "p.txt", "p.txt"]);
    let answer: serde_json::Value = serde_json::from_slice(&two.stdout).expect("JSON");
    assert_eq!(answer["schema"], "tenure.profile/1");
    assert_eq!(answer["total"], 14);
    let none = tenure(folder.path(), &["profile", "--metric", "delay", "p.txt"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(
        text(&none.stderr).contains("the profile has: samples"),
        "{}",
        text(&none.stderr)
    );
    assert_eq!(
        tenure(folder.path(), &["profile", "absent"]).status.code(),
        Some(3)
    );
}

#[test]
fn the_ending_of_the_output_picks_the_form() {
    let folder = folder();
    let starts: [(&str, &[u8]); 5] = [
        ("a.html", b"<!DOCTYPE html>"),
        ("a.pb.gz", b"\x1f\x8b"),
        ("a.json", b"{"),
        ("a.jfr", b"FLR\0"),
        ("a.collapsed", b"demo.Cpu.main;demo.Cpu.hot 7\n"),
    ];
    for (name, start) in starts {
        let done = tenure(folder.path(), &["convert", "p.txt", "-o", name]);
        assert_eq!(
            done.status.code(),
            Some(0),
            "{name}: {}",
            text(&done.stderr)
        );
        assert!(
            std::fs::read(folder.path().join(name))
                .expect(name)
                .starts_with(start),
            "{name}"
        );
    }
    let again = tenure(folder.path(), &["convert", "p.txt", "-o", "a.html"]);
    assert_eq!(again.status.code(), Some(2), "an existing file is kept");
    assert_eq!(
        tenure(folder.path(), &["convert", "p.txt", "-o", "a"])
            .status
            .code(),
        Some(2)
    );
    let out = tenure(
        folder.path(),
        &["convert", "p.txt", "-o", "-", "--to", "collapsed"],
    );
    assert_eq!(text(&out.stdout), "demo.Cpu.main;demo.Cpu.hot 7\n");
}

#[test]
fn a_listener_stores_what_an_agent_sends_and_passes_commands_on() {
    let folder = folder();
    let mut listener = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["listen", "0", "-o", "got.txt"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    listener
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"gc\nnonsense\nend\n")
        .expect("typed");
    let mut printed = BufReader::new(listener.stderr.take().expect("a pipe"));
    let port = port_of(&mut printed);
    let connect = || TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let mut until = |words: &str| while !line_of(&mut printed).contains(words) {};
    // One that sends nothing, a port scanner and a browser are not the agent.
    let silent = connect();
    drop(connect());
    until(" sent nothing");
    let mut browser = connect();
    browser.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
    until("it sends no profile");
    let mut agent = connect();
    let (header, rest) = SENT.as_bytes().split_at(5);
    agent.write_all(header).expect("sent");
    let mut commands = [0; 10];
    agent.read_exact(&mut commands).expect("two commands");
    assert_eq!((commands[0], commands[9]), (1, 0xff));
    until("no such command: nonsense");
    connect().write_all(SENT.as_bytes()).expect("sent");
    until("another agent is connected");
    agent.write_all(rest).expect("sent");
    drop(agent);
    until("wrote got.txt");
    assert_eq!(listener.wait().expect("ended").code(), Some(0));
    drop(silent);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("got.txt")).expect("a file"),
        SENT
    );
}

#[cfg(unix)]
#[test]
fn more_connections_than_open_files_do_not_end_a_recording() {
    let folder = folder();
    let limited = "ulimit -n 24; exec \"$0\" listen 0 -o got.txt";
    let mut listener = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_tenure")])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut printed = BufReader::new(listener.stderr.take().expect("a pipe"));
    let port = port_of(&mut printed);
    let connect = || TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let mut until = |words: &str| while !line_of(&mut printed).contains(words) {};
    let mut agent = connect();
    let (header, rest) = SENT.as_bytes().split_at(5);
    agent.write_all(header).expect("sent");
    // Its file is open before the others come.
    let got = folder.path().join("got.txt");
    testkit::until(|| got.exists().then_some(()).ok_or("no file"));
    let others: Vec<TcpStream> = (0..30).map(|_| connect()).collect();
    until("no connection: ");
    let count = others.len();
    drop(others);
    (0..count).for_each(|_| until(" sent nothing"));
    agent.write_all(rest).expect("sent");
    drop(agent);
    until("wrote got.txt");
    assert_eq!(listener.wait().expect("ended").code(), Some(0));
    assert_eq!(std::fs::read_to_string(got).expect("a file"), SENT);
}

#[test]
fn one_of_many_connections_blocks_and_ends_no_other() {
    let folder = folder();
    let (work, elsewhere) = (folder.path().join("work"), folder.path().join("tmp"));
    std::fs::create_dir(&work).expect("made");
    std::fs::create_dir(&elsewhere).expect("made");
    let mut listener = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["listen", "0", "--many"])
        .current_dir(&work)
        .env("TMPDIR", &elsewhere)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut printed = BufReader::new(listener.stderr.take().expect("a pipe"));
    let port = port_of(&mut printed);
    let connect = || TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let mut until = |words: &str| while !line_of(&mut printed).contains(words) {};
    let silent = connect();
    let send = || {
        connect().write_all(SENT.as_bytes()).expect("sent");
    };
    // In one second, most likely.
    send();
    send();
    until("wrote profile-");
    until("wrote profile-");
    let stored = |folder: &Path| {
        let files = std::fs::read_dir(folder).expect("a folder");
        let content = |file: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(file.expect("a file").path()).expect("text")
        };
        files.map(content).collect::<Vec<_>>()
    };
    assert_eq!(stored(&work), [SENT, SENT]);
    // What cannot be written there is in the temporary folder.
    std::fs::remove_dir_all(&work).expect("removed");
    for _ in 0..2 {
        send();
        until("is not written");
    }
    assert_eq!(stored(&elsewhere), [SENT, SENT]);
    drop(silent);
    until(" sent nothing");
    listener.kill().expect("killed");
    listener.wait().expect("ended");
}

#[test]
fn a_program_keeps_its_exit_code() {
    let folder = folder();
    std::fs::write(folder.path().join("libhprof.so"), "").expect("written");
    let run = |code: &str| {
        let script = format!("exit {code}");
        let arguments = ["run", "--agent", "libhprof.so", "--", "sh", "-c", &script];
        tenure(folder.path(), &arguments)
    };
    assert_eq!(run("0").status.code(), Some(0));
    let seven = run("7");
    assert_eq!(seven.status.code(), Some(7));
    assert!(text(&seven.stderr).contains("no JVM with the agent was started"));
    let refused = [
        "run",
        "--agent",
        "libhprof.so",
        "--profile",
        "file=x",
        "--",
        "true",
    ];
    assert_eq!(tenure(folder.path(), &refused).status.code(), Some(2));
    // A loaded agent is found by its file name.
    std::fs::write(folder.path().join("other.so"), "").expect("written");
    let other = tenure(folder.path(), &["run", "--agent", "other.so", "--", "true"]);
    assert_eq!(other.status.code(), Some(2), "{}", text(&other.stderr));
}

#[test]
fn a_program_that_is_no_jvm_cannot_be_attached_to() {
    let folder = folder();
    std::fs::write(folder.path().join("libhprof.so"), "").expect("written");
    let attach = tenure(folder.path(), &["attach", "1", "--agent", "libhprof.so"]);
    assert_eq!(attach.status.code(), Some(1), "{}", text(&attach.stderr));
    let dump = tenure(folder.path(), &["dump", "no.such.Main", "-o", "x.hprof"]);
    assert_eq!(dump.status.code(), Some(1), "{}", text(&dump.stderr));
    for flags in [["--profile", "heap=sites"], ["--events", "x.events"]] {
        let attach = tenure(folder.path(), &[&["attach"][..], &flags].concat());
        assert_eq!(attach.status.code(), Some(2), "{flags:?}");
    }
}

/// Lines that a process says, as they come.
fn line_of(printed: &mut impl BufRead) -> String {
    let mut line = String::new();
    assert!(
        printed.read_line(&mut line).expect("text") > 0,
        "it has ended"
    );
    line
}

/// The port in the first line of a listener.
pub(crate) fn port_of(printed: &mut impl BufRead) -> u16 {
    let line = line_of(printed);
    let port = line.trim().rsplit(':').next().expect("a port");
    port.parse().expect(&line)
}

#[test]
fn the_front_end_of_a_stream_of_events_gives_commands_and_gets_answers() {
    let compiler = testkit::jvm::newest_compiler();
    let Some(jdk) = compiler.filter(|jdk| jdk.version >= 11) else {
        testkit::skip(
            "profiles of a program",
            testkit::Need::Jdk,
            testkit::jvm::NO_JDK,
        );
        return;
    };
    let folder = folder();
    let source = folder.path().join("Steady.java");
    // A new object a millisecond, until the input ends. From a line on, 64 are kept.
    let program = "public class Steady { static Object[] kept = new Object[64];
        public static void main(String[] a) throws Exception {
            for (int i = 0; System.in.available() >= 0 && i < 300000; i++) {
                kept[i % 64] = new long[1000]; Thread.sleep(1);
                if (i == 64) System.out.println(\"full\");
                if (System.in.available() > 0) return; } } }";
    std::fs::write(&source, program).expect("written");
    jdk.compile(&source, 11, folder.path()).expect("compiles");
    let mut listener = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["listen", "0", "-o", "steady.vmpi"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut printed = BufReader::new(listener.stderr.take().expect("a pipe"));
    let port = port_of(&mut printed);
    let agent = testkit::built::agent();
    let agent = agent.display();
    let mut java = Command::new(jdk.tool("java"))
        .arg(format!(
            "-agentpath:{agent}=events=16k,net=127.0.0.1:{port}"
        ))
        .args(["-XX:+UseSerialGC", "-Xmx64m", "-cp", ".", "Steady"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    line_of(&mut printed); // is connected
    // The agent is connected before the program begins.
    let mut of_program = BufReader::new(java.stdout.take().expect("a pipe"));
    assert_eq!(line_of(&mut of_program), "full\n");
    let mut typed = listener.stdin.take().expect("a pipe");
    let mut ask = |command: &str| {
        writeln!(typed, "{command}").expect("typed");
        line_of(&mut printed)
            .trim()
            .rsplit_once("tenure: ")
            .map_or_else(String::new, |r| r.1.to_owned())
    };
    assert_eq!(ask("gc"), "gc: done");
    assert_eq!(ask("dump"), "dump 0: done");
    assert_eq!(ask("disable object-alloc"), "disable object-alloc: done");
    assert_eq!(ask("dump 0"), "dump 0: done");
    assert_eq!(ask("dump 2"), "dump 2: done");
    assert_eq!(ask("monitors"), "monitors: done");
    // Every class has been reported by now.
    let request = format!("request class-load {A_CLASS:#x}");
    assert_eq!(ask(&request), format!("{request}: done"));
    let unknown = "request object-alloc 0x3";
    assert_eq!(
        ask(unknown),
        format!("{unknown}: failed: no such object or class")
    );
    assert_eq!(ask("disable gc-start"), "disable gc-start: done");
    assert_eq!(ask("gc"), "gc: done");
    java.stdin
        .take()
        .expect("a pipe")
        .write_all(b"x")
        .expect("typed");
    assert_eq!(java.wait().expect("ended").code(), Some(0));
    let mut rest = String::new();
    printed.read_to_string(&mut rest).expect("words");
    assert_eq!(listener.wait().expect("ended").code(), Some(0), "{rest}");
    check_answers(&std::fs::read(folder.path().join("steady.vmpi")).expect("a recording"));
    check_report(folder.path());
}

/// The class that was seen first.
const A_CLASS: u64 = (1 << 62) + 1;

/// What `tenure events` says of the dumps.
fn check_report(folder: &Path) {
    let reported = tenure(folder, &["events", "steady.vmpi", "--json"]);
    assert_eq!(
        reported.status.code(),
        Some(0),
        "{}",
        text(&reported.stderr)
    );
    let answer: serde_json::Value = serde_json::from_slice(&reported.stdout).expect("JSON");
    let heap = answer["dumps"]["heap"].as_array().expect("a list");
    let levels: Vec<_> = heap.iter().map(|dump| dump["level"].as_u64()).collect();
    assert_eq!(levels, [Some(0), Some(0), Some(2)]);
    assert!(heap.iter().all(|dump| dump["damage"].is_null()), "{heap:?}");
    assert!(heap[2]["objects"].as_u64() > Some(5000), "{heap:?}");
    let classes = answer["dumps"]["classes"].as_array().expect("a list");
    let of = |name: &str| {
        let mut found = classes.iter().filter(|row| row["class"] == name);
        found.next().unwrap_or_else(|| panic!("{name}")).clone()
    };
    let arrays = of("long[]");
    assert!(arrays["elements"].as_u64() >= Some(64_000), "{arrays}");
    // Allocations of those were left out; others had been reported before.
    assert!(heap[2]["reported"].as_u64() > Some(0), "{heap:?}");
    let strings = of("java.lang.String");
    let (count, bytes) = (&strings["objects"], &strings["instance_bytes"]);
    assert_eq!(count.as_u64().map(|count| count * 24), bytes.as_u64());
    // The VM itself says that all of it is reachable.
    assert_eq!(answer["cycle_leaks"]["objects"], 0);
    let monitors = &answer["dumps"]["monitors"][0];
    let threads = monitors["threads"].as_array().expect("a list");
    let main = threads
        .iter()
        .find(|thread| thread["name"] == "main")
        .expect("main");
    let frames = main["frames"].as_array().expect("a stack");
    let is_program = |frame: &serde_json::Value| {
        frame
            .as_str()
            .is_some_and(|frame| frame.starts_with("Steady.main:"))
    };
    assert!(frames.iter().any(is_program), "{main}");
    let printed = text(&tenure(folder, &["events", "steady.vmpi"]).stdout);
    for words in ["Heap dumps", "Monitor dumps", "Steady.main:"] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
}

/// What the commands of the test above made of the stream.
fn check_answers(bytes: &[u8]) {
    let layout = vmpi::dump::IdLayout::NATIVE;
    let mut live = HashSet::new();
    let (mut dumps, mut starts, mut finishes, mut last_asked) = (0, 0, 0, 0);
    let mut dumped = [0; 2];
    let (mut answers, mut new_objects_while_off) = (0, 0);
    let done = vmpi::wire::read_all(bytes, |frame| {
        let batch = match frame {
            Frame::Answer(answer) => {
                answers += 1;
                assert_eq!(answer.serial, answers);
                return Ok(());
            }
            Frame::Batch(batch) => batch,
            _ => return Ok(()),
        };
        for item in batch {
            let Item::Event {
                requested: asked,
                body,
            } = item?
            else {
                continue;
            };
            match body {
                Body::ObjectAlloc(alloc) => {
                    new_objects_while_off += u32::from(answers > 3);
                    assert!(live.insert(alloc.object.0));
                }
                Body::ObjectMove(moved) => {
                    assert!(live.remove(&moved.object.0) && live.insert(moved.new_object.0));
                }
                Body::ObjectFree { object } => assert!(live.remove(&object.0)),
                Body::HeapDump(dump) if dump.level != DumpLevel::Ids => dumped[0] += 1,
                Body::MonitorDump(_) => dumped[1] += 1,
                Body::HeapDump(dump) => {
                    assert!(asked);
                    dumps += 1;
                    let (records, damage) = vmpi::dump::heap::decode_ids(&dump.data, layout);
                    let ids: HashSet<u64> = records.iter().map(|record| record.object.0).collect();
                    assert!(damage.is_none() && ids.len() == records.len());
                    assert!(ids == live, "{} dumped, {} told", ids.len(), live.len());
                    assert!(
                        records
                            .iter()
                            .any(|record| record.array == Some(BasicType::Long))
                    );
                }
                Body::ClassLoad(class) if asked => last_asked = class.class.0,
                Body::GcStart { .. } => starts += u32::from(answers < 9),
                Body::GcFinish(_) => finishes += 1,
                _ => {}
            }
        }
        Ok(())
    });
    done.expect("a whole stream");
    assert_eq!((dumps, dumped, answers), (2, [1, 1], 10));
    assert_eq!(last_asked, A_CLASS);
    // One may have been under way.
    assert!(new_objects_while_off <= 1, "{new_objects_while_off}");
    assert!(starts >= 1 && finishes > starts, "{starts} {finishes}");
}

#[test]
fn events_of_a_running_vm_are_recorded_in_another_process() {
    let compiler = testkit::jvm::newest_compiler();
    let Some(jdk) = compiler.filter(|jdk| jdk.version >= 11) else {
        testkit::skip(
            "profiles of a program",
            testkit::Need::Jdk,
            testkit::jvm::NO_JDK,
        );
        return;
    };
    let folder = folder();
    let source = folder.path().join("Busy.java");
    let program = "public class Busy { static Object kept; public static void main(String[] a) {
        for (int i = 0; i < 2000000; i++) kept = new int[20]; System.out.println(\"busy\"); } }";
    std::fs::write(&source, program).expect("written");
    jdk.compile(&source, 11, folder.path()).expect("compiles");
    let agent = testkit::built::agent();
    let (agent, java) = (agent, jdk.tool("java"));
    let run = |more: &[&str]| {
        let mut arguments = vec!["run", "--agent", agent.to_str().expect("text")];
        arguments.extend(more);
        arguments.extend([
            "--",
            java.to_str().expect("text"),
            "-Xmx64m",
            "-cp",
            ".",
            "Busy",
        ]);
        tenure(folder.path(), &arguments)
    };
    let ran = run(&["--events", "busy.events", "--interval", "16k"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    assert_eq!(text(&ran.stdout), "busy\n");
    assert!(
        text(&ran.stderr).contains("wrote busy.events ("),
        "{}",
        text(&ran.stderr)
    );
    let bytes = std::fs::read(folder.path().join("busy.events")).expect("a recording");
    // 2,000,000 arrays of 96 bytes make some 12,000 samples of a few bytes each.
    assert!(
        bytes.starts_with(b"VMPI\r\n\x1a\n") && bytes.len() > 50_000,
        "{}",
        bytes.len()
    );
    // Beside a profile, and the profile of its file name's form.
    let ran = run(&["--events", "both.events", "-o", "both.hprof"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let read = |name: &str| std::fs::read(folder.path().join(name)).expect("a recording");
    assert!(read("both.events").starts_with(b"VMPI\r\n\x1a\n"));
    assert!(read("both.hprof").starts_with(b"JAVA PROFILE 1.0.2"));
    let again = run(&["--events", "both.events"]);
    let printed = text(&again.stderr);
    assert!(
        printed.contains("both.events exists (--force overwrites)"),
        "{printed}"
    );
    let nowhere = run(&["-o", "missing/busy.html"]);
    let printed = text(&nowhere.stderr);
    assert_eq!(nowhere.status.code(), Some(3), "{printed}");
    assert_eq!(text(&nowhere.stdout), "", "nothing was started");
    assert!(
        printed.contains("cannot write missing/busy.html: No such file"),
        "{printed}"
    );
    // The file without a name would be in the working folder.
    let removed = std::process::Command::new("sh")
        .current_dir(folder.path())
        .args([
            "-c",
            "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" run -- java -version",
        ])
        .arg(env!("CARGO_BIN_EXE_tenure"))
        .output()
        .expect("a shell");
    let printed = text(&removed.stderr);
    assert_eq!(removed.status.code(), Some(3), "{printed}");
    assert!(printed.contains("cannot write"), "{printed}");
    let wrong = run(&["--events", "other.events", "--interval", "often"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
    assert_eq!(text(&wrong.stdout), "", "nothing was started");
    assert!(text(&wrong.stderr).contains("often: expected a size such as 512m or 2G"));
}
