//! What a terminal shows of a large dump before its analysis has ended, and the commands that lead on.

use crate::ran::run;
use crate::terminal::{self, Terminal};
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::dump::{Elements, FrameSpec, Heap, IdSize, Root, Type, Value};

/// A dump that is large enough, of one array, with one that nothing reaches.
fn dump(file: &Path, unreachable: usize) {
    let mut heap = Heap::new(IdSize::Eight);
    heap.java_lang_object();
    let array = heap.primitive_array(Elements::Byte(vec![7; 66 << 20]));
    heap.primitive_array(Elements::Byte(vec![7; unreachable]));
    heap.root(Root::Unknown, array);
    fs::write(file, heap.bytes()).expect("written");
}

const FIRST: &str = "the analysis is running";

#[test]
fn a_large_dump_is_counted_while_it_is_analyzed() {
    if !terminal::is_there() {
        let why = "there is no script(1)";
        return testkit::skip("the first screen", testkit::Need::Program, why);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("large.hprof");
    dump(&file, 1000);
    let shown = |words: &str| {
        let line = format!("{words}{}", file.display());
        let terminal = Terminal::start(&line, Path::new("none"));
        terminal.ended("0").0
    };
    let raw = shown("");
    let (before, after) = raw.split_once(FIRST).expect("a first look");
    assert!(!before.contains("tenure dominators"), "{raw}");
    let (histogram, answer) = after.split_once("byte[]").expect("a histogram");
    assert!(!histogram.contains("tenure dominators"), "{raw}");
    assert!(answer.contains("tenure dominators"), "{raw}");
    // Now there is an index, and the answer comes at once.
    assert!(!shown("").contains(FIRST));
    let no_index = shown("--no-index ");
    assert!(no_index.contains(FIRST), "{no_index}");
    assert!(!shown("--no-index --quiet ").contains(FIRST));
    assert!(!shown("--no-index --json ").contains(FIRST));
    let piped = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .arg("--no-index")
        .arg(&file)
        .output()
        .expect("running tenure");
    let printed = String::from_utf8_lossy(&piped.stdout);
    assert!(!printed.contains(FIRST), "{printed}");
}

/// As of `tenure <(ssh host cat heap.hprof)`.
#[test]
fn a_pipe_with_a_name_is_read_from_its_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    dump(&folder.path().join("heap.hprof"), 1);
    let line = format!(
        "cat heap.hprof | {} --no-index /dev/stdin",
        env!("CARGO_BIN_EXE_tenure")
    );
    let shell = Command::new("sh")
        .args(["-c", &line])
        .current_dir(folder.path())
        .output();
    let ran = shell.expect("a shell");
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(printed.contains("JAVA PROFILE 1.0.2"), "{printed}");
}

#[test]
fn the_next_commands_are_those_for_what_was_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("heap.hprof");
    let next = |file: &Path| {
        let ran = Command::new(env!("CARGO_BIN_EXE_tenure"))
            .arg("--no-index")
            .arg(file)
            .output()
            .expect("running tenure");
        let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
        let words = printed
            .lines()
            .filter_map(|line| line.split_once("tenure "));
        let commands = words.filter_map(|(_, rest)| rest.split(' ').next());
        commands.map(str::to_owned).collect::<Vec<_>>()
    };
    dump(&file, 1000);
    assert_eq!(next(&file), ["leaks", "dominators", "report"]);
    dump(&file, 60 << 20);
    assert_eq!(next(&file), ["leaks", "unreachable", "dominators"]);
    let whole = fs::read(&file).expect("a dump");
    fs::write(&file, &whole[..whole.len() - 100]).expect("written");
    assert_eq!(next(&file)[0], "validate");
}

/// Whatever the name of its class is.
#[test]
fn a_thread_that_is_a_suspect_has_its_own_stack() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut heap = Heap::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let work = FrameSpec {
        class: heap.class("shop/Worker", object, &[]),
        method: "work",
        source: "Worker.java",
        line: 7,
    };
    let (serial, _) = heap.thread("main", &[work]);
    let fields = [("name", Type::Object), ("tid", Type::Long)];
    let thread = heap.class("java/lang/Thread", object, &fields);
    let worker = heap.class("shop/Worker2", thread, &[("jobs", Type::Object)]);
    let jobs = heap.primitive_array(Elements::Byte(vec![7; 100_000]));
    let name = heap.string("worker-2");
    let values = [Value::Object(jobs), Value::Object(name), Value::Long(2)];
    let thread = heap.instance(worker, &values);
    let root = Root::ThreadObject {
        thread: serial + 1,
        trace: serial,
    };
    heap.root(root, thread);
    fs::write(folder.path().join("heap.hprof"), heap.bytes()).expect("written");
    let printed = run(folder.path(), &["leaks", "heap.hprof", "--no-index"], 0);
    assert!(printed.contains("The thread \"worker-2\""), "{printed}");
    assert!(printed.contains("Its stack:"), "{printed}");
    assert!(!printed.contains("Allocated at:"), "{printed}");
}

#[test]
fn the_file_in_a_next_command_is_quoted_for_a_shell() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my dump (1).hprof");
    dump(&file, 1000);
    for command in ["overview", "leaks"] {
        let ran = Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args([command, "--no-index"])
            .arg(&file)
            .output()
            .expect("running tenure");
        let printed = String::from_utf8_lossy(&ran.stdout);
        let quoted = format!("tenure report '{}' -o report.html", file.display());
        assert!(printed.contains(&quoted), "{printed}");
    }
}
