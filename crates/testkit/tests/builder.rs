//! The builder against `reference_hprof.py`, an independent reader, and against bytes by hand.

use std::process::Command;

use serde_json::Value as Json;
use testkit::corpus::shared;
use testkit::dump::{
    Dump, Elements, Frame, FrameSpec, Heap, IdSize, Root, Segment, Site, Spacing, StartThread,
    Totals, Type, Value, Version, gzip_members, zip,
};

fn reference(name: &str, bytes: &[u8]) -> Option<Json> {
    let script = shared().map(|s| s.join("corpus/tools/reference_hprof.py"));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("writing it");
    let ran = script.and_then(|script| {
        let mut python = Command::new("python3");
        python
            .arg(script)
            .arg(file.path())
            .arg("--retained")
            .output()
            .ok()
    });
    let Some(ran) = ran else {
        testkit::skip(
            name,
            testkit::Need::Shared,
            "needs python3 and the shared corpus",
        );
        return None;
    };
    let printed = String::from_utf8_lossy(&ran.stderr);
    Some(serde_json::from_slice(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {printed}")))
}

fn every_record(version: Version, id_size: IdSize) -> Vec<u8> {
    let mut d = Dump::new(version, id_size);
    d.at(5)
        .utf8(1, b"name")
        .load_class(1, 0x100, 0, 1)
        .unload_class(1);
    d.frame(Frame {
        id: 7,
        method: 1,
        line: -3,
        ..Frame::default()
    });
    d.trace(1, 1, &[7]);
    let totals = Totals {
        live_bytes: 1,
        live_instances: 2,
        allocated_bytes: 3,
        allocated_instances: 4,
    };
    d.alloc_sites(2, 0.5, totals, &[Site::default(), Site::default()])
        .heap_summary(totals);
    d.start_thread(StartThread {
        serial: 1,
        object: 0x200,
        ..StartThread::default()
    })
    .end_thread(1);
    d.cpu_samples(3, &[(2, 1), (1, 1)]).control_settings(3, 4);
    let mut s = Segment::new(id_size);
    for kind in Root::ALL {
        s.root(kind, 0x200);
    }
    s.heap_info(65, 1);
    s.class_dump(&testkit::dump::ClassDump {
        id: 0x100,
        constants: vec![(1, Value::Object(0x200)), (2, Value::Long(1))],
        statics: Type::PRIMITIVES.iter().map(|t| (1, zero(*t))).collect(),
        fields: vec![(1, Type::Object), (1, Type::Double)],
        ..Default::default()
    });
    s.instance_dump(0x200, 1, 0x100, &[Value::Object(0x300), Value::Double(1.5)]);
    s.object_array(0x300, 1, 0x100, &[0x200, 0, 0x310]);
    for (i, t) in Type::PRIMITIVES.iter().enumerate() {
        s.primitive_array(0x310 + i as u64, 0, &Elements::zeros(*t, 3));
    }
    s.primitive_array_no_data(0x400, 0, Type::Char, 10);
    if version == Version::V101 {
        d.heap_dump(s)
    } else {
        d.segment(s).heap_end()
    };
    d.into_bytes()
}

fn zero(t: Type) -> Value {
    match t {
        Type::Object => Value::Object(0),
        Type::Boolean => Value::Boolean(false),
        Type::Char => Value::Char(0),
        Type::Float => Value::Float(0.0),
        Type::Double => Value::Double(0.0),
        Type::Byte => Value::Byte(0),
        Type::Short => Value::Short(0),
        Type::Int => Value::Int(0),
        Type::Long => Value::Long(0),
    }
}

#[test]
fn a_header_and_a_string_record_have_the_bytes_of_the_format_text() {
    let mut d = Dump::with_header(b"JAVA PROFILE 1.0.2", IdSize::Four, 4, 0x1_0000_0002);
    d.at(9).utf8(0x0a0b, b"hi");
    let want =
        b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\x01\0\0\0\x02\x01\0\0\0\x09\0\0\0\x06\0\0\x0a\x0bhi";
    assert_eq!(d.into_bytes(), want);
}

#[test]
fn the_reference_reader_finds_every_record_in_every_version_and_width() {
    for version in Version::ALL {
        for id_size in IdSize::ALL {
            let bytes = every_record(version, id_size);
            let Some(r) = reference("every record", &bytes) else {
                return;
            };
            assert_eq!(r["errors"], Json::Array(vec![]), "{version:?} {id_size:?}");
            assert_eq!(r["format"], version.text());
            assert_eq!(r["id_size"], id_size.bytes());
            let heap = if version == Version::V101 { 12 } else { 13 };
            assert_eq!(r["records"].as_object().map(|m| m.len()), Some(heap));
            assert_eq!(r["sub_records"].as_object().map(|m| m.len()), Some(16 + 6));
            assert_eq!(r["objects"]["total"], 12);
            assert_eq!(r["gc_roots"].as_object().map(|m| m.len()), Some(16));
            assert_eq!(r["instances_whose_length_differs_from_class_fields"], 0);
        }
    }
}

fn small_heap(id_size: IdSize) -> Heap {
    let mut h = Heap::new(id_size).spacing(Spacing::WIDE).segments_of(100);
    let object = h.java_lang_object();
    let base = h.class(
        "Base",
        object,
        &[("link", Type::Object), ("flag", Type::Boolean)],
    );
    let derived = h.class(
        "Derived",
        base,
        &[("count", Type::Int), ("other", Type::Object)],
    );
    let values = [
        Value::Int(1),
        Value::Object(0),
        Value::Object(0),
        Value::Boolean(true),
    ];
    let a = h.instance(derived, &values);
    let b = h.instance(derived, &values);
    h.set_field(a, "link", Value::Object(b));
    h.set_field(a, "other", Value::Object(a));
    let text = h.string("größe 日本");
    let array_class = h.object_array_class();
    let array = h.object_array(array_class, &[a, text, 0]);
    h.set_static(base, "head", Value::Object(array));
    h.root(Root::StickyClass, base);
    let frame = FrameSpec {
        class: base,
        method: "run",
        source: "Base.java",
        line: 12,
    };
    let (thread, _) = h.thread("worker", &[frame]);
    h.root(Root::JavaFrame { thread, frame: 0 }, b);
    h.primitive_array(Elements::Long(vec![1, 2, 3]));
    h
}

#[test]
fn a_heap_by_names_gives_the_reference_readers_dominators() {
    for id_size in IdSize::ALL {
        let heap = small_heap(id_size);
        let Some(r) = reference("a heap by names", &heap.bytes()) else {
            return;
        };
        assert_eq!(r["errors"], Json::Array(vec![]));
        assert_eq!(r["instances_whose_length_differs_from_class_fields"], 0);
        assert_eq!(r["histogram"]["Derived"]["count"], 2);
        let plain = heap.plain_graph();
        let alive = plain.graph.reachable();
        let count = alive.iter().filter(|a| **a).count();
        assert_eq!(r["reachable"]["objects"], count);
        assert!(count < alive.len(), "the long[] is garbage");
        let top = r["dominators"]["top100"].as_array().expect("top100");
        let mut lines: Vec<(u64, String)> = top.iter().map(line).collect();
        lines.sort();
        let theirs: String = lines.into_iter().map(|(_, l)| l).collect();
        assert_eq!(theirs, plain.dominator_lines());
    }
}

fn line(row: &Json) -> (u64, String) {
    let hex = |key: &str| {
        row[key]
            .as_str()
            .expect("an id")
            .trim_start_matches("0x")
            .to_owned()
    };
    let id = u64::from_str_radix(&hex("id"), 16).expect("hex");
    (
        id,
        format!("{} {} {}\n", hex("id"), hex("idom"), row["retained"]),
    )
}

#[test]
fn objects_do_not_overlap_in_any_spacing() {
    for spacing in [
        Spacing::COMPRESSED,
        Spacing::WIDE,
        Spacing::COMPACT,
        Spacing::NARROW,
    ] {
        let mut h = Heap::new(IdSize::Eight).spacing(spacing);
        let a = h.primitive_array(Elements::Byte(vec![0; 9]));
        let b = h.primitive_array(Elements::Byte(vec![]));
        let want = (spacing.array_header + 9).div_ceil(spacing.align) * spacing.align;
        assert_eq!(b - a, want, "{spacing:?}");
    }
}

#[test]
fn packed_dumps_unpack_to_the_same_bytes() {
    let bytes = every_record(Version::V102, IdSize::Eight);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let packed = gzip_members(&bytes, 100);
    assert!(
        packed.windows(3).filter(|w| *w == [0x1f, 0x8b, 8]).count() > 2,
        "many members"
    );
    std::fs::write(file.path(), packed).expect("writing it");
    assert_eq!(testkit::corpus::unpacked(file.path()), bytes);
    assert!(zip(&bytes, "heap.hprof").starts_with(b"PK\x03\x04"));
}

#[test]
fn the_census_counts_what_the_reference_reader_counts_up_to_a_cut() {
    for id_size in IdSize::ALL {
        let whole = every_record(Version::V102, id_size);
        for cut in [0, 1, 9, 30, 60, 100] {
            let bytes = &whole[..whole.len() - cut];
            let Some(r) = reference("the census", bytes) else {
                return;
            };
            let c = testkit::census::census(bytes);
            let ours = [c.classes, c.instances, c.object_arrays, c.primitive_arrays];
            let names = ["classes", "instances", "object_arrays", "primitive_arrays"];
            let theirs = names.map(|n| r["objects"][n].as_u64().expect("a count"));
            assert_eq!(ours, theirs, "{id_size:?} without {cut} bytes");
        }
    }
}
