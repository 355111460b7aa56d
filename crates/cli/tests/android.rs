//! Android's dumps: what is reported about them, and conversion both ways.

use crate::ran::run;
use serde_json::Value as Json;
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::dump::{Elements, Heap as Builder, IdSize, Root, Type, Value, Version};

fn json(folder: &Path, args: &[&str]) -> Json {
    serde_json::from_str(&run(folder, args, 0)).expect("JSON")
}

/// An app with obfuscated classes: a destroyed activity in a static field, one that only a weak
/// reference holds, bitmaps, native memory, and objects of the zygote.
fn app() -> Vec<u8> {
    let mut heap = Builder::new(IdSize::Four).version(Version::V103);
    let object = heap.java_lang_object();
    let activity = heap.class(
        "android/app/Activity",
        object,
        &[("mDestroyed", Type::Boolean)],
    );
    let main = heap.class("a/b", activity, &[("c", Type::Object)]);
    let holder = heap.class("a/d", object, &[]);
    let bitmap = heap.class(
        "android/graphics/Bitmap",
        object,
        &[
            ("mBuffer", Type::Object),
            ("mWidth", Type::Int),
            ("mHeight", Type::Int),
        ],
    );
    let registry = heap.class(
        "libcore/util/NativeAllocationRegistry",
        object,
        &[("size", Type::Long)],
    );
    let thunk = heap.class(
        "libcore/util/NativeAllocationRegistry$CleanerThunk",
        object,
        &[("this$0", Type::Object)],
    );
    let reference = heap.class(
        "java/lang/ref/Reference",
        object,
        &[("referent", Type::Object)],
    );
    let phantom = heap.class("java/lang/ref/PhantomReference", reference, &[]);
    let weak = heap.class("java/lang/ref/WeakReference", reference, &[]);
    let cleaner = heap.class("sun/misc/Cleaner", phantom, &[("thunk", Type::Object)]);

    heap.android_heap(b'A'.into(), "app");
    let gone = heap.instance(main, &[Value::Object(0), Value::Boolean(true)]);
    heap.set_static(holder, "e", Value::Object(gone));
    let weakly = heap.instance(main, &[Value::Object(0), Value::Boolean(true)]);
    let weak = heap.instance(weak, &[Value::Object(weakly)]);
    let alive = heap.instance(main, &[Value::Object(0), Value::Boolean(false)]);
    for id in [weak, alive] {
        heap.root(Root::JniGlobal { reference: 1 }, id);
    }
    heap.root(Root::StickyClass, holder);
    for n in 0..3u8 {
        let pixels = heap.primitive_array(Elements::Byte(vec![n / 2; 64]));
        let values = [Value::Object(pixels), Value::Int(4), Value::Int(4)];
        let bitmap = heap.instance(bitmap, &values);
        heap.root(Root::VmInternal, bitmap);
        let registry = heap.instance(registry, &[Value::Long(1001)]);
        let thunk = heap.instance(thunk, &[Value::Object(registry)]);
        let cleaner = heap.instance(cleaner, &[Value::Object(thunk), Value::Object(bitmap)]);
        heap.root(Root::InternedString, cleaner);
    }
    heap.android_heap(b'Z'.into(), "zygote");
    let of_zygote = heap.primitive_array(Elements::Int(vec![7; 100]));
    heap.root(
        Root::JniMonitor {
            thread: 1,
            depth: 0,
        },
        of_zygote,
    );
    heap.bytes()
}

const MAP: &str = "com.shop.MainActivity -> a.b:\n    android.view.View root -> c\ncom.shop.Leaks -> a.d:\n    android.app.Activity last -> e\n";

#[test]
fn destroyed_screens_native_memory_and_bitmaps_are_reported_by_their_real_names() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    fs::write(at.join("app.hprof"), app()).expect("the dump");
    fs::write(at.join("map.txt"), MAP).expect("the map");
    let got = json(
        at,
        &["android", "--json", "--mapping", "map.txt", "app.hprof"],
    );
    let destroyed = got["destroyed"].as_array().expect("a list");
    assert_eq!(destroyed.len(), 1, "{got}");
    assert_eq!(destroyed[0]["class"], "com.shop.MainActivity");
    assert_eq!(destroyed[0]["path"]["steps"][0]["value"], "com.shop.Leaks");
    assert_eq!(destroyed[0]["path"]["steps"][0]["field"], "static last");
    assert_eq!(got["native"][0]["class"], "android.graphics.Bitmap");
    assert_eq!(got["native_bytes"], 3000);
    assert_eq!(got["bitmap_bytes"], 192);
    let copies: Vec<&Json> = got["bitmaps"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|b| &b["copies"])
        .collect();
    assert_eq!(copies.iter().filter(|c| **c == 1).count(), 2);
    let names: Vec<&str> = got["heaps"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|h| h["name"].as_str())
        .collect();
    assert!(
        names.contains(&"app") && names.contains(&"zygote"),
        "{names:?}"
    );
    // Every command has the names, whether it makes the graph or not.
    for args in [
        &["histogram", "--mapping", "map.txt", "app.hprof"][..],
        &[
            "histogram",
            "--no-retained",
            "--mapping",
            "map.txt",
            "app.hprof",
        ],
    ] {
        let printed = run(at, args, 0);
        assert!(
            printed.contains("com.shop.MainActivity") && !printed.contains("a.b\n"),
            "{printed}"
        );
    }
    run(at, &["histogram", "--mapping", "none.txt", "app.hprof"], 3);
}

/// Objects of each class by an independent reader's definition: the program's one-pass count of
/// another file must be the same.
fn histogram(at: &Path, file: &str) -> Vec<(String, u64)> {
    let got = json(at, &["histogram", "--no-retained", "--json", file]);
    let mut rows: Vec<(String, u64)> = got["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|r| {
            (
                r["class"].as_str().unwrap_or("").to_owned(),
                r["objects"].as_u64().unwrap_or(0),
            )
        })
        .collect();
    rows.sort();
    rows
}

fn is_standard(at: &Path, file: &str) {
    let got = json(at, &["summary", "--json", file]);
    assert_eq!(got["format"], "JAVA PROFILE 1.0.2");
    let tags = got["sub_records"].as_object().expect("tags");
    for tag in tags.keys() {
        let number = u8::from_str_radix(tag.trim_start_matches("0x"), 16).expect("a tag");
        assert!(number <= 0x23 || number == 0xff, "{tag} is Android's");
    }
    assert_eq!(json(at, &["validate", "--json", file])["whole"], true);
}

#[test]
fn conversion_keeps_every_object_both_ways() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    fs::write(at.join("app.hprof"), app()).expect("the dump");
    run(at, &["convert", "app.hprof", "-o", "std.hprof"], 0);
    is_standard(at, "std.hprof");
    assert_eq!(histogram(at, "app.hprof"), histogram(at, "std.hprof"));
    run(at, &["convert", "app.hprof", "-o", "std.hprof"], 2);
    // Packed, and back.
    run(at, &["convert", "app.hprof", "-o", "std.hprof.gz"], 0);
    assert!(
        fs::read(at.join("std.hprof.gz"))
            .expect("a file")
            .starts_with(&[0x1f, 0x8b])
    );
    assert_eq!(histogram(at, "app.hprof"), histogram(at, "std.hprof.gz"));
    run(
        at,
        &[
            "convert",
            "std.hprof",
            "-o",
            "back.hprof",
            "--to",
            "android",
        ],
        0,
    );
    let back = json(at, &["summary", "--json", "back.hprof"]);
    assert_eq!(back["format"], "JAVA PROFILE 1.0.3");
    assert_eq!(
        back["heaps"]
            .as_object()
            .expect("heaps")
            .keys()
            .collect::<Vec<_>>(),
        ["app"]
    );
    assert_eq!(histogram(at, "app.hprof"), histogram(at, "back.hprof"));
    // Without the zygote's objects: one int[] less.
    run(at, &["convert", "-z", "app.hprof", "-o", "z.hprof"], 0);
    is_standard(at, "z.hprof");
    let mut want = histogram(at, "app.hprof");
    want.retain(|r| r.0 != "int[]");
    assert_eq!(histogram(at, "z.hprof"), want);
}

#[test]
fn real_android_dumps_convert_too() {
    let Some(corpus) = testkit::corpus::corpus() else {
        return testkit::skip(
            "conversion of real dumps",
            testkit::Need::Shared,
            "no corpus",
        );
    };
    let mut converted = 0;
    for dump in corpus {
        let bytes = dump.bytes();
        if !bytes.starts_with(b"JAVA PROFILE 1.0.3") {
            continue;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let at = dir.path();
        fs::write(at.join("a.hprof"), bytes).expect("the dump");
        run(at, &["convert", "a.hprof", "-o", "s.hprof"], 0);
        is_standard(at, "s.hprof");
        assert_eq!(
            histogram(at, "a.hprof"),
            histogram(at, "s.hprof"),
            "{}",
            dump.name
        );
        converted += 1;
    }
    assert!(converted > 0, "the corpus has no Android dump");
}

/// hprof-slurp, which only reads standard dumps: from the PATH, else installed below `target`.
fn slurp() -> Option<std::path::PathBuf> {
    let root = testkit::corpus::workspace().join("target/consumers");
    let program = root.join("bin/hprof-slurp");
    if !program.is_file() {
        let mut install = Command::new(env!("CARGO"));
        install
            .args(["install", "--quiet", "--locked", "--version", "0.10.0"])
            .args(["hprof-slurp", "--root"])
            .arg(&root);
        install.status().ok().filter(|s| s.success())?;
    }
    Some(program)
}

/// Objects of each class as hprof-slurp counts them. Class records are no objects to it.
fn slurped(program: &Path, at: &Path, file: &str) -> std::collections::BTreeMap<String, u64> {
    let out = Command::new(program)
        .current_dir(at)
        .args([file, "--top", "1000000", "--json", "-o", "slurp.json"])
        .output()
        .expect("running hprof-slurp");
    let printed = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{file}: {printed}");
    let text = fs::read_to_string(at.join("slurp.json")).expect("its answer");
    let answer: Json = serde_json::from_str(&text).expect("JSON");
    let mut rows = std::collections::BTreeMap::new();
    for row in answer["heap"]["top_allocated_classes"]
        .as_array()
        .expect("rows")
    {
        let class = row["class_name"].as_str().unwrap_or("").to_owned();
        *rows.entry(class).or_default() += row["instance_count"].as_u64().unwrap_or(0);
    }
    rows.retain(|_, n| *n > 0);
    rows
}

#[test]
fn hprof_slurp_counts_the_same_objects_in_a_converted_android_dump() {
    if !std::env::var("TENURE_MATRIX").is_ok_and(|v| v == "all") {
        let why = "it installs a program; TENURE_MATRIX=all runs it";
        return testkit::skip("hprof-slurp on converted dumps", testkit::Need::Matrix, why);
    }
    let Some(program) = slurp() else {
        return testkit::skip(
            "hprof-slurp on converted dumps",
            testkit::Need::Network,
            "cargo cannot install it",
        );
    };
    let mut dumps = vec![("made by hand".to_owned(), app())];
    for dump in testkit::corpus::corpus().unwrap_or_default() {
        let bytes = dump.bytes();
        if bytes.starts_with(b"JAVA PROFILE 1.0.3") {
            dumps.push((dump.name.clone(), bytes));
        }
    }
    for (name, bytes) in dumps {
        let dir = tempfile::tempdir().expect("a folder");
        let at = dir.path();
        fs::write(at.join("a.hprof"), bytes).expect("the dump");
        run(at, &["convert", "a.hprof", "-o", "s.hprof"], 0);
        let summary = json(at, &["summary", "--json", "a.hprof"]);
        let classes = summary["objects"]["classes"].as_u64().expect("a number");
        let mut ours: std::collections::BTreeMap<String, u64> = Default::default();
        for (class, objects) in histogram(at, "a.hprof") {
            *ours.entry(class).or_default() += objects;
        }
        if let Some(n) = ours.get_mut("java.lang.Class") {
            *n -= classes.min(*n);
        }
        ours.retain(|_, n| *n > 0);
        assert_eq!(ours, slurped(&program, at, "s.hprof"), "{name}");
    }
}
