//! A part of a dump: its objects are as large as in the dump.

use heap_analysis::share::extract::Extract;
use heap_analysis::share::redact::{Method, RedactOptions, Redactor};
use heap_graph::{Control, Heap, Options};
use std::path::Path;
use testkit::dump::{Elements, Heap as Builder, IdSize, Root, Type, Value};

fn open(path: &Path) -> Heap {
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    Heap::open(path, &options, &Control::quiet()).expect("a dump")
}

/// A list whose nodes have an array of 320 bytes behind them that is not part of it.
fn list() -> (Vec<u8>, u64) {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let node = heap.class(
        "Node",
        object,
        &[("next", Type::Object), ("key", Type::Int)],
    );
    let mut next = 0;
    for key in 0..500 {
        next = heap.instance(node, &[Value::Object(next), Value::Int(key)]);
        let between = heap.primitive_array(Elements::Byte(vec![1; 320]));
        heap.root(Root::JniGlobal { reference: 1 }, between);
    }
    heap.root(Root::JniGlobal { reference: 1 }, next);
    (heap.bytes(), next)
}

#[test]
fn objects_of_a_part_are_as_large_as_in_the_dump() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, top) = list();
    let path = folder.path().join("heap.hprof");
    std::fs::write(&path, &data).expect("the dump");
    let whole = open(&path);
    let top = hprof::ObjectId(top);
    let part_of = |heap: &Heap, data: &[u8], name: &str| {
        let object = heap.find(top).expect("the list");
        let mut out = Vec::new();
        hprof::rewrite(data, &Extract::new(heap, &[object], true), &mut out).expect("memory");
        let path = folder.path().join(name);
        std::fs::write(&path, &out).expect("the part");
        (open(&path), out)
    };
    let retained = |heap: &Heap| {
        let object = heap.find(top).expect("the list");
        (heap.retained(object), heap.summary().layout.clone())
    };
    let (part, bytes) = part_of(&whole, &data, "part.hprof");
    assert_eq!(retained(&part), retained(&whole));
    // The part of a part, and the same without its contents.
    let (again, bytes) = part_of(&part, &bytes, "again.hprof");
    assert_eq!(retained(&again), retained(&whole));
    let options = RedactOptions {
        method: Method::Zero,
        keep: Vec::new(),
        numbers: true,
        rename_except: None,
    };
    let redactor = Redactor::new(&bytes, &options).expect("a dump");
    let mut out = Vec::new();
    hprof::rewrite(&bytes, &redactor, &mut out).expect("memory");
    let path = folder.path().join("redacted.hprof");
    std::fs::write(&path, &out).expect("the dump");
    assert_eq!(retained(&open(&path)), retained(&whole));
}
