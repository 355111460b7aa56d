//! Archives with several dumps: `FILE#2` is the second one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::dump::{Elements, Heap, IdSize, Root, zip_of};

/// Exit code, standard output and standard error.
fn tenure(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let ran = Command::new(testkit::built::tenure())
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("tenure");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (ran.status.code(), text(ran.stdout), text(ran.stderr))
}

/// A dump with this many reachable arrays of bytes.
fn dump(arrays: usize) -> Vec<u8> {
    let mut heap = Heap::new(IdSize::Eight);
    heap.java_lang_object();
    for _ in 0..arrays {
        let array = heap.primitive_array(Elements::Byte(vec![7; 100]));
        heap.root(Root::StickyClass, array);
    }
    heap.bytes()
}

/// The number of arrays of bytes in a histogram.
fn arrays(folder: &Path, args: &[&str]) -> u64 {
    let (code, stdout, printed) = tenure(folder, &[args, &["--json"]].concat());
    assert_eq!(code, Some(0), "{args:?}: {printed}");
    let answer: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let rows = answer["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["class"] == "byte[]");
    row.and_then(|row| row["objects"].as_u64())
        .expect("a number")
}

/// An archive with dumps of three and of five arrays.
fn two(folder: &Path) {
    let entries: [(&str, &[u8]); 3] = [
        ("a.hprof", &dump(3)),
        ("read.me", b"none"),
        ("b.hprof", &dump(5)),
    ];
    fs::write(folder.join("two.zip"), zip_of(&entries)).expect("an archive");
}

#[test]
fn the_dump_of_an_archive_that_is_used_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    two(at);
    let notes = [
        "the archive has 2 dumps; this is #1, a.hprof; FILE#2 is b.hprof",
        "the archive has 2 dumps; this is #2, b.hprof; FILE#1 is a.hprof",
    ];
    for (file, note) in [
        ("two.zip", notes[0]),
        ("two.zip#1", notes[0]),
        ("two.zip#2", notes[1]),
    ] {
        // Twice: the second answer is from the index.
        for args in [
            &["histogram", file][..],
            &["histogram", file],
            &["histogram", "--no-retained", file],
            &["summary", file],
            &["validate", file],
        ] {
            let (code, stdout, printed) = tenure(at, args);
            assert_eq!(code, Some(0), "{args:?}: {printed}");
            assert!(printed.contains(note), "{args:?}: {printed}");
            let is_part = args[0] != "histogram";
            assert_eq!(stdout.contains(note), is_part, "{args:?}: {stdout}");
        }
        let (_, stdout, printed) = tenure(at, &["summary", file, "--json"]);
        assert!(printed.is_empty() && stdout.contains(note), "{stdout}");
    }
}

#[test]
fn each_dump_of_an_archive_is_analyzed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    two(at);
    for (file, expected) in [("two.zip", 3), ("two.zip#1", 3), ("two.zip#2", 5)] {
        for args in [
            &["histogram", file][..],
            &["histogram", file],
            &["histogram", "--no-retained", file],
        ] {
            assert_eq!(arrays(at, args), expected, "{args:?}");
        }
    }
    let (code, stdout, printed) = tenure(at, &["diff", "two.zip#1", "two.zip#2"]);
    assert_eq!(code, Some(0), "{printed}");
    let row = stdout.lines().find(|line| line.contains("byte[]"));
    assert!(row.is_some_and(|row| row.contains("+2")), "{stdout}");
    for command in ["histogram", "summary", "validate"] {
        let (code, _, printed) = tenure(at, &[command, "two.zip#3"]);
        assert_eq!(code, Some(3), "{command}: {printed}");
        let why = "the archive has 2 dumps, so there is no #3";
        assert!(printed.contains(why), "{command}: {printed}");
    }
}

#[test]
fn the_number_selects_a_dump_in_the_only_file_of_an_archive() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let (mut both, second) = (dump(3), dump(5));
    both.extend_from_slice(records(&second));
    let entries: [(&str, &[u8]); 1] = [("both.hprof", &both)];
    fs::write(at.join("one.zip"), zip_of(&entries)).expect("an archive");
    assert_eq!(arrays(at, &["histogram", "one.zip"]), 3);
    assert_eq!(arrays(at, &["histogram", "one.zip#2"]), 5);
    let (code, _, printed) = tenure(at, &["histogram", "one.zip#3"]);
    assert_eq!(code, Some(3), "{printed}");
    assert!(printed.contains("2 heap dump(s)"), "{printed}");
    let (code, _, printed) = tenure(at, &["redact", "one.zip#2", "out.hprof"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("all dumps of the file"), "{printed}");
    assert!(!at.join("out.hprof").exists());
}

/// The records after the header.
fn records(dump: &[u8]) -> &[u8] {
    let name = dump.iter().position(|byte| *byte == 0).expect("a name");
    &dump[name + 1 + 4 + 8..]
}

#[test]
fn a_dump_of_an_archive_is_written_as_others_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    two(at);
    for (args, file) in [
        (&["redact", "two.zip#2", "red.hprof"][..], "red.hprof"),
        (&["convert", "two.zip#2", "-o", "std.hprof"], "std.hprof"),
        (
            &["extract", "two.zip#2", "part.hprof", "--class", "byte[]"],
            "part.hprof",
        ),
    ] {
        let (code, _, printed) = tenure(at, args);
        assert_eq!(code, Some(0), "{args:?}: {printed}");
        assert_eq!(arrays(at, &["histogram", file]), 5, "{args:?}");
    }
}
