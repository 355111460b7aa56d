//! Damaged files: what is found, where, and that everything undamaged is still read.

use hprof::{
    DamageKind, Diagnostics, FileOffset, HeapVisitor, Instance, Stretch, map_file, walk_stretch,
};
use testkit::dump::{Elements, Heap, IdSize, Root, Type, Value, Version};

#[derive(Default)]
struct Ids(Vec<u64>);

impl HeapVisitor for Ids {
    fn instance(&mut self, _: FileOffset, i: Instance<'_>) {
        self.0.push(i.id.0);
    }
}

/// Instances that are read, and what was found wrong.
fn read(data: &[u8]) -> (Vec<u64>, Diagnostics, u64) {
    let map = map_file(data, |_| {}).expect("the header is good");
    let (mut ids, mut found, mut skipped) = (Ids::default(), map.diagnostics.clone(), map.skipped);
    for s in &map.segments {
        let all = Stretch {
            from: s.body,
            until: s.end,
            end: s.end,
        };
        let walked = walk_stretch(data, map.header.id_size, all, &|_| true, &mut ids);
        found.extend(walked.diagnostics);
        skipped += walked.skipped;
    }
    (ids.0, found, skipped)
}

/// A dump of `n` links in segments of about 2 KiB.
fn dump(n: u64) -> Vec<u8> {
    let mut heap = Heap::new(IdSize::Eight).segments_of(2048);
    let object = heap.java_lang_object();
    let class = heap.class("Link", object, &[("next", Type::Object), ("n", Type::Long)]);
    let links: Vec<u64> = (0..n)
        .map(|i| heap.instance(class, &[Value::Object(0), Value::Long(i as i64)]))
        .collect();
    heap.root(Root::JniGlobal { reference: 1 }, links[0]);
    heap.bytes()
}

#[test]
fn a_cut_tail_costs_nothing_but_the_tail() {
    let good = dump(2000);
    let (all, found, _) = read(&good);
    assert!(found.is_empty() && all.len() == 2000);
    for cut in [1usize, 7, 20, 1000, 5000] {
        let (ids, found, _) = read(&good[..good.len() - cut]);
        // A link takes 41 bytes; roots and the end record stand behind the objects.
        assert!(
            ids.len() + cut / 41 + 2 >= 2000,
            "cut {cut}: {} read",
            ids.len()
        );
        assert_eq!(ids, all[..ids.len()]);
        let truncated = found
            .iter()
            .any(|d| matches!(d.kind, DamageKind::Truncated | DamageKind::RunsOver));
        assert!(truncated || cut == 9, "cut {cut}: {found:?}");
    }
}

#[test]
fn a_cut_between_two_records_is_found_by_the_missing_end() {
    let good = dump(2000);
    let segments = map_file(&good, |_| {}).expect("a dump").segments;
    let cuts = segments.iter().skip(1).map(|segment| segment.at.0 as usize);
    for cut in cuts.chain([good.len() - 9]) {
        let (ids, found, _) = read(&good[..cut]);
        let [missing] = &found.iter().collect::<Vec<_>>()[..] else {
            panic!("cut {cut}: {found:?}");
        };
        assert_eq!(
            (missing.kind, &missing.record[..], missing.offset.0),
            (DamageKind::Missing, "HEAP_DUMP_END", cut as u64)
        );
        assert!(cut == good.len() - 9 || ids.len() < 2000);
    }
}

#[test]
fn a_wrong_segment_length_is_found_by_walking() {
    let good = dump(2000);
    let segments = map_file(&good, |_| {}).expect("a dump").segments;
    let victim = segments[segments.len() / 2];
    for wrong in [
        0u32,
        1,
        victim.len() as u32 - 1,
        victim.len() as u32 + 1,
        0x7fff_ffff,
        u32::MAX,
    ] {
        let mut bad = good.clone();
        bad[victim.at.0 as usize + 5..][..4].copy_from_slice(&wrong.to_be_bytes());
        let (ids, found, _) = read(&bad);
        assert!(found.any_damage(), "{wrong:#x} was not noticed");
        let in_victim = victim.len() / 41 + 1;
        let least = 2000
            - if matches!(wrong, 0 | 1) {
                in_victim as usize
            } else {
                2
            };
        assert!(
            ids.len() >= least,
            "{wrong:#x}: {} of 2000 read: {found:?}",
            ids.len()
        );
    }
}

#[test]
fn a_bad_sub_record_loses_itself_and_not_its_segment() {
    let good = dump(2000);
    let (all, ..) = read(&good);
    let needle = all[1000].to_be_bytes();
    let at = good
        .windows(9)
        .position(|w| w[0] == 0x21 && w[1..] == needle)
        .expect("the record");
    for (offset, value) in [(0usize, 0x77u8), (21, 0xff), (22, 0xff)] {
        let mut bad = good.clone();
        bad[at + offset] = value;
        let (ids, found, skipped) = read(&bad);
        assert!(ids.len() >= 1990, "{offset}: {} read", ids.len());
        assert!(found.iter().any(|d| d.offset.0 == at as u64), "{found:?}");
        assert!(skipped > 0);
    }
}

#[test]
fn a_length_that_overflowed_is_put_right() {
    // The writer of a 4 GiB dump writes the length modulo 2^32; the same rule is tested here with
    // a length that is wrong by one bit above, which no 32-bit word can show: 0 instead of 2^32
    // is the only case that a small file can hold.
    let mut heap = Heap::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let class = heap.class("X", object, &[]);
    (0..50).for_each(|_| _ = heap.instance(class, &[]));
    let good = heap.bytes();
    let segment = map_file(&good, |_| {}).expect("a dump").segments[0];
    let mut bad = good.clone();
    bad[segment.at.0 as usize] = 0x0c;
    bad[segment.at.0 as usize + 5..][..4].copy_from_slice(&[0; 4]);
    let (ids, found, _) = read(&bad);
    assert_eq!(ids.len(), 50);
    assert!(found.any_damage());
}

#[test]
fn a_text_mode_transfer_is_recognised() {
    let good = dump(3000);
    let mut bad = Vec::new();
    for byte in &good {
        if *byte == b'\n' {
            bad.push(b'\r');
        }
        bad.push(*byte);
    }
    assert!(bad.len() > good.len() + 8);
    let map = map_file(&bad, |_| {}).expect("the header is good");
    assert!(
        map.diagnostics
            .iter()
            .any(|d| d.kind == DamageKind::TextModeTransfer)
    );
    let map = map_file(&good, |_| {}).expect("a dump");
    assert!(map.diagnostics.is_empty());
}

#[test]
fn bad_headers_are_named_with_what_was_expected_and_found() {
    for (data, want) in [
        (&b""[..], "empty"),
        (b"hello", "expected \"JAVA PROFILE 1.0.x\""),
        (
            b"JAVA PROFILE 1.0.2\0\0\0\0\x05\0\0\0\0\0\0\0\0",
            "expected 4 or 8, found 5",
        ),
        (b"JAVA PROFILE 1.0.2\0\0\0", "ends inside the header"),
        (
            b"JAVA PROFILE 1.0.1, created Mon Jan  5 10:00:00 2015\n\nHeader for -agentlib:hprof",
            "text profile",
        ),
    ] {
        let error = map_file(data, |_| {}).expect_err("not a dump").to_string();
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn two_dumps_in_one_file_are_two_snapshots() {
    let name = "eclipse-mat+mat__oracle_jdk7_21_hprofagent.hprof";
    let Some(dump) = testkit::corpus::corpus_dump(name) else {
        return testkit::skip(
            "two dumps in one file",
            testkit::Need::Shared,
            "no ../shared/corpus",
        );
    };
    let data = dump.bytes();
    assert_eq!(map_file(&data, |_| {}).expect("a dump").snapshots, 2);
}

#[test]
fn a_dump_cut_inside_an_array_is_not_searched_for_records_there() {
    for (id_size, version) in [
        (IdSize::Four, Version::V102),
        (IdSize::Eight, Version::V101),
    ] {
        let mut heap = Heap::new(id_size);
        let object = heap.java_lang_object();
        let class = heap.class("Link", object, &[("next", Type::Object), ("n", Type::Long)]);
        let links: Vec<u64> = (0..200)
            .map(|i| heap.instance(class, &[Value::Object(0), Value::Long(i)]))
            .collect();
        heap.root(Root::JniGlobal { reference: 1 }, links[0]);
        // What a program that writes dumps has in its heap: records.
        let inner = dump(2000);
        heap.primitive_array(Elements::Byte(inner.clone()));
        let good = heap.version(version).bytes();
        let (all, found, _) = read(&good);
        assert!(found.is_empty() && all.len() == 200, "{}", all.len());
        let starts = good.windows(inner.len()).position(|window| window == inner);
        let starts = starts.expect("the array");
        let array = starts - 10 - id_size.bytes();
        for cut in [1, inner.len() / 3, inner.len() - 9, inner.len()] {
            let (ids, found, skipped) = read(&good[..starts + inner.len() - cut]);
            assert_eq!(ids, all, "{cut} bytes cut");
            let found: Vec<_> = found.iter().collect();
            let [one] = found[..] else {
                panic!("{cut} bytes cut: {found:?}")
            };
            assert_eq!(one.offset.0, array as u64);
            assert_eq!(one.record, "PRIMITIVE_ARRAY_DUMP");
            assert_eq!(one.kind, DamageKind::Truncated);
            let whole = (starts - array + inner.len()) as u64;
            assert_eq!(one.expected, format!("{whole} bytes"));
            assert_eq!(skipped, whole - cut as u64);
        }
    }
}

/// Fields may have the bytes of the head of a heap record; behind missing bytes no second dump begins there.
#[test]
fn missing_bytes_do_not_invent_another_dump() {
    // A record of length 0, and one before whose end other sub-records follow.
    let empty = [
        (Type::Long, Value::Long(0x0c << 56)),
        (Type::Object, Value::Object(0)),
    ];
    let long = [
        (Type::Byte, Value::Byte(0x0c)),
        (Type::Int, Value::Int(0)),
        (Type::Int, Value::Int(0x0700_0000)),
    ];
    for fields in [&empty[..], &long] {
        let mut heap = Heap::new(IdSize::Eight).segments_of(2048);
        let object = heap.java_lang_object();
        let names = ["a", "b", "c"];
        let types: Vec<_> = names
            .into_iter()
            .zip(fields)
            .map(|(n, f)| (n, f.0))
            .collect();
        let values: Vec<_> = fields.iter().map(|f| f.1).collect();
        let class = heap.class("Link", object, &types);
        for _ in 0..500 {
            heap.instance(class, &values);
        }
        let good = heap.bytes();
        for from in 4000..4041 {
            let data = [&good[..from], &good[from + 10..]].concat();
            let map = map_file(&data, |_| {}).expect("the header is good");
            assert_eq!(map.snapshots, 1, "without 10 bytes at {from}");
            let (ids, found, _) = read(&data);
            assert!(!found.is_empty(), "without 10 bytes at {from}");
            assert!(
                ids.len() >= 490,
                "without 10 bytes at {from}: {}",
                ids.len()
            );
        }
    }
}
