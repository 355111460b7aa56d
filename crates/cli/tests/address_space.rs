//! A limit of address space (`ulimit -v`), as batch systems and some containers set.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Output};
use testkit::dump::{Heap, IdSize, Root, Type, Value};

/// Bytes of an array that the file has as a hole.
const LARGE: u32 = 400 << 20;

/// KiB of address space: the mapped dump and two thirds of what the largest reservation would take.
const LIMIT: &str = "1200000";

/// A list of nodes, and a large array that no one refers to.
fn write_dump(path: &Path) {
    let mut heap = Heap::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let node = heap.class("app/Node", object, &[("next", Type::Object)]);
    let mut last = 0;
    for _ in 0..1000 {
        last = heap.instance(node, &[Value::Object(last)]);
    }
    heap.root(Root::StickyClass, last);
    let bytes = heap.bytes();
    // The records up to HEAP_DUMP_END, then a segment with a byte[], then that record.
    let (records, end) = bytes.split_at(bytes.len() - 9);
    assert_eq!(end[0], 0x2c);
    let head = 1 + 8 + 4 + 4 + 1;
    let mut segment = vec![0x1c];
    segment.extend(0u32.to_be_bytes());
    segment.extend((head + LARGE).to_be_bytes());
    segment.push(0x23);
    segment.extend(0x7000_0000u64.to_be_bytes());
    segment.extend(0u32.to_be_bytes());
    segment.extend(LARGE.to_be_bytes());
    segment.push(8);
    let mut file = File::create(path).expect("a file");
    file.write_all(records).expect("written");
    file.write_all(&segment).expect("written");
    file.seek(SeekFrom::Current(i64::from(LARGE)))
        .expect("a hole");
    file.write_all(end).expect("written");
}

fn leaks(folder: &Path, limit: &str) -> Output {
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let mut shell = Command::new("sh");
    shell
        .current_dir(folder)
        .args(["-c", "ulimit -v $0 && exec \"$@\"", limit, tenure])
        .args(["leaks", "heap.hprof", "--json", "--no-index", "--threads=2"]);
    shell.output().expect("it runs")
}

#[cfg(target_os = "linux")]
#[test]
fn with_little_address_space_the_answer_is_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("heap.hprof");
    write_dump(&path);
    let (free, limited) = (
        leaks(folder.path(), "unlimited"),
        leaks(folder.path(), LIMIT),
    );
    let text = |out: &Output| String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(free.status.code(), Some(0), "{}", text(&free));
    assert_eq!(limited.status.code(), Some(0), "{}", text(&limited));
    assert!(!free.stdout.is_empty());
    assert_eq!(limited.stdout, free.stdout);
    // What cannot be mapped is an error, no signal.
    let none = leaks(folder.path(), "300000");
    assert_eq!(none.status.code(), Some(3), "{}", text(&none));
    fs::remove_file(&path).expect("removed");
}
