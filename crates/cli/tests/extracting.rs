//! `extract`: a part of a dump is a dump.

use crate::ran::{run, tenure};
use serde_json::Value as Json;
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::dump::{Elements, Heap as Builder, IdSize, Root, Type, Value};

fn json(folder: &Path, args: &[&str], code: i32) -> Json {
    serde_json::from_str(&run(folder, args, code)).expect("JSON")
}

/// Lists of nodes and a shared tail: `a` retains four objects, and no list retains the tail.
fn lists(ids: IdSize) -> (Vec<u8>, [u64; 3]) {
    let mut heap = Builder::new(ids).segments_of(128);
    let object = heap.java_lang_object();
    let node = heap.class(
        "Node",
        object,
        &[("next", Type::Object), ("data", Type::Object)],
    );
    let make = |heap: &mut Builder, next, n: u8| {
        let data = heap.primitive_array(Elements::Byte(vec![n; 20]));
        heap.instance(node, &[Value::Object(next), Value::Object(data)])
    };
    let tail = make(&mut heap, 0, 1);
    let second = make(&mut heap, tail, 2);
    let a = make(&mut heap, second, 3);
    let b = make(&mut heap, tail, 4);
    for id in [a, b] {
        heap.root(Root::JniGlobal { reference: 1 }, id);
    }
    heap.root(Root::StickyClass, node);
    (heap.bytes(), [a, second, tail])
}

#[test]
fn a_part_of_a_dump_is_a_dump() {
    for ids in IdSize::ALL {
        let dir = tempfile::tempdir().expect("a folder");
        let at = dir.path();
        let (bytes, [a, second, tail]) = lists(ids);
        fs::write(at.join("heap.hprof"), bytes).expect("the dump");
        let id = format!("{a:#x}");
        run(
            at,
            &["extract", "heap.hprof", "part.hprof", "--object", &id, "-q"],
            0,
        );
        assert_eq!(
            json(at, &["validate", "--json", "part.hprof"], 0)["whole"],
            true
        );
        let summary = json(at, &["summary", "--json", "part.hprof"], 0);
        // Two nodes with their arrays; the shared tail is not theirs.
        assert_eq!(summary["objects"]["instances"], 2);
        assert_eq!(summary["objects"]["primitive_arrays"], 2);
        assert_eq!(summary["reachable"]["objects"], summary["objects"]["total"]);
        let retained =
            |file, id: &str| json(at, &["object", file, id, "--json"], 0)["retained"].clone();
        assert_eq!(retained("part.hprof", &id), retained("heap.hprof", &id));
        let inside = format!("{second:#x}");
        let next = json(at, &["object", "part.hprof", &inside, "--json"], 0);
        assert_eq!(next["slots"][0]["value"], "null", "{next}");
        // The very objects alone, from a list; then what is not there.
        fs::write(at.join("ids.txt"), format!("{id} a\n{tail:#x}\n")).expect("a list");
        run(
            at,
            &[
                "extract",
                "heap.hprof",
                "two.hprof",
                "--ids",
                "ids.txt",
                "--only",
                "-q",
            ],
            0,
        );
        let two = json(at, &["summary", "--json", "two.hprof"], 0);
        assert_eq!(
            (
                &two["objects"]["instances"],
                &two["objects"]["primitive_arrays"]
            ),
            (&2.into(), &0.into())
        );
        // A table with titles and the line ends of Windows is such a list, and other lines are errors.
        let ids = ["extract", "heap.hprof", "-", "--ids", "ids.txt", "-q"];
        let code = |text: &str| {
            fs::write(at.join("ids.txt"), text).expect("a list");
            let out = Command::new(env!("CARGO_BIN_EXE_tenure"))
                .current_dir(at)
                .args(ids)
                .output()
                .expect("running tenure");
            let printed = String::from_utf8_lossy(&out.stderr).into_owned();
            (out.status.code(), printed)
        };
        let table = format!("object,class\r\n{id},Node\r\n\r\n# no id\r\n{tail:#x}\r\n");
        assert_eq!(code(&table), (Some(0), String::new()));
        let table = format!("shallow,object\n32,\"Node {id} a\nb\"\n32,\"Node {tail:#x}\"\n");
        assert_eq!(code(&table), (Some(0), String::new()));
        let (status, printed) = code(&format!("{id}\nNode\n"));
        assert_eq!(status, Some(2), "{printed}");
        assert!(printed.contains("ids.txt, line 2: Node: "), "{printed}");
        run(
            at,
            &["extract", "heap.hprof", "none.hprof", "--object", "0x9"],
            1,
        );
        run(at, &["extract", "heap.hprof", "none.hprof"], 2);
        // The list is an input, too.
        let over = [
            "extract",
            "heap.hprof",
            "ids.txt",
            "--ids",
            "ids.txt",
            "--force",
        ];
        run(at, &over, 2);
        assert!(!at.join("none.hprof").exists());
    }
}

#[test]
fn unreachable_objects_of_a_class_are_left_out_unless_requested() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let node = heap.class("Node", object, &[]);
    let live = heap.instance(node, &[]);
    heap.instance(node, &[]);
    heap.root(Root::JniGlobal { reference: 1 }, live);
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    fs::write(at.join("heap.hprof"), heap.bytes()).expect("the dump");
    let part = |more: &[&str]| {
        let args = ["extract", "heap.hprof", "part.hprof", "--force", "--class"];
        let out = tenure(at, &[&args, more].concat());
        let printed = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(0), "{printed}");
        printed
    };
    let instances =
        || json(at, &["summary", "--json", "part.hprof"], 0)["objects"]["instances"].clone();
    let printed = part(&["Node"]);
    assert!(
        printed.contains("1 unreachable object is left out"),
        "{printed}"
    );
    assert_eq!(instances(), 1);
    part(&["Node", "--unreachable"]);
    assert_eq!(instances(), 2);
}

/// A class that is in the dump, but no root of it, is not retained by the part, and no garbage.
#[test]
fn the_classes_of_a_part_are_roots() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let base = heap.class("Base", object, &[("next", Type::Object)]);
    let leaf = heap.class("Leaf", base, &[]);
    let inner = heap.instance(leaf, &[Value::Object(0)]);
    let outer = heap.instance(leaf, &[Value::Object(inner)]);
    heap.root(Root::JniGlobal { reference: 1 }, outer);
    heap.root(Root::JniGlobal { reference: 2 }, leaf);
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    fs::write(at.join("heap.hprof"), heap.bytes()).expect("the dump");
    let id = format!("{outer:#x}");
    let args = ["extract", "heap.hprof", "part.hprof", "--object", &id, "-q"];
    run(at, &args, 0);
    let retained = |file| json(at, &["object", file, &id, "--json"], 0)["retained"].clone();
    assert_eq!(retained("part.hprof"), retained("heap.hprof"));
    let garbage = json(at, &["unreachable", "--json", "part.hprof"], 0);
    assert_eq!(garbage["total"]["objects"], 0, "{garbage}");
}

/// The contents of the class that was meant would be replaced without a message.
#[test]
fn a_class_that_is_not_in_the_dump_is_reported() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    let (bytes, _) = lists(IdSize::Eight);
    fs::write(at.join("heap.hprof"), bytes).expect("the dump");
    for (args, hint) in [
        (
            &["extract", "heap.hprof", "part.hprof", "--class", "Nod"][..],
            "; did you mean Node?",
        ),
        (
            &["redact", "heap.hprof", "part.hprof", "--keep", "Nod"],
            "; did you mean Node?",
        ),
        (
            &[
                "redact",
                "heap.hprof",
                "part.hprof",
                "--keep",
                "Node",
                "--keep",
                "Nod",
            ],
            "; did you mean Node?",
        ),
        (
            &["redact", "heap.hprof", "part.hprof", "--keep", "shop.*"],
            "",
        ),
    ] {
        let ran = tenure(at, args);
        let printed = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{printed}");
        let class = args.last().expect("the class");
        let why = format!("no class {class} in this dump{hint}\n");
        assert!(printed.ends_with(&why), "{printed}");
        assert!(!at.join("part.hprof").exists(), "{args:?}");
    }
    let keep = ["redact", "heap.hprof", "part.hprof", "--keep", "No*"];
    run(at, &keep, 0);
}
