//! Records with tags that are reserved for the program that writes a file.

use hprof::{DamageKind, FileMap, PRIVATE_TAGS, map_file};
use testkit::dump::{Elements, Heap, IdSize, Version};

/// A dump whose only heap record is a HEAP_DUMP at its end, with many letters of two bytes.
fn dump() -> Vec<u8> {
    let mut heap = Heap::new(IdSize::Four).version(Version::V101);
    let object = heap.java_lang_object();
    let class = heap.class("Link", object, &[]);
    for n in 0..50 {
        heap.instance(class, &[]);
        let text = (0..200).map(|at| b'a' as u16 + (at * 7 + n) % 26);
        heap.primitive_array(Elements::Char(text.collect()));
    }
    heap.bytes()
}

/// A record with a time stamp and a body of bytes of one value.
fn record(tag: u8, time_us: u32, body: usize) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend(time_us.to_be_bytes());
    out.extend((body as u32).to_be_bytes());
    out.resize(out.len() + body, 0xee);
    out
}

/// The map of a file, and the tags and lengths of its private records.
fn read(data: &[u8]) -> (FileMap, Vec<(u8, usize)>) {
    let mut private = Vec::new();
    let map = map_file(data, |record| {
        if PRIVATE_TAGS.contains(&record.tag) {
            assert_eq!(record.name(), format!("0x{:02x}", record.tag));
            assert_eq!(record.decode(hprof::IdSize::Four), None);
            private.push((record.tag, record.body.len()));
        }
    });
    (map.expect("the header is good"), private)
}

#[test]
fn private_records_of_any_length_are_no_damage() {
    let mut data = dump();
    let heap = read(&data).0.segments;
    let mut expected = Vec::new();
    for tag in PRIVATE_TAGS {
        for length in [0, 1, 17, 1000] {
            data.extend(record(tag, 7, length));
            expected.push((tag, length));
        }
    }
    let (map, private) = read(&data);
    assert!(map.diagnostics.is_empty(), "{:?}", map.diagnostics);
    assert_eq!((map.segments, private), (heap, expected));
    for tag in [PRIVATE_TAGS.start() - 1, PRIVATE_TAGS.end() + 1] {
        let (map, _) = read(&[data.clone(), record(tag, 7, 3)].concat());
        let kinds: Vec<_> = map.diagnostics.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [DamageKind::UnknownTag]);
    }
}

#[test]
fn the_end_of_the_file_truncates_a_private_record_after_a_heap() {
    let good = dump();
    let heap = read(&good).0.segments;
    for missing in [1, 50, 100] {
        let mut data = [good.clone(), record(0x71, 7, 100)].concat();
        data.truncate(data.len() - missing);
        let (map, private) = read(&data);
        assert_eq!(
            (map.segments, private),
            (heap.clone(), vec![(0x71, 100 - missing)])
        );
        let found: Vec<_> = map
            .diagnostics
            .iter()
            .map(|it| (it.kind, it.offset.0))
            .collect();
        assert_eq!(found, [(DamageKind::Truncated, good.len() as u64)]);
    }
}

#[test]
fn private_records_after_damage_are_found_by_their_times() {
    let names = [record(0x01, 5, 20), record(0x01, 5, 30)].concat();
    let private = [record(0x71, 1000, 40), record(0x72, 2000, 50)].concat();
    let after = [record(0x0b, 3000, 4), record(0x0b, 3000, 4)].concat();
    for after in [Vec::new(), after.repeat(2)] {
        let mut data = b"JAVA PROFILE 1.0.1\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        data.extend(&names);
        // Bytes that are no record.
        data.extend([0xee; 21]);
        data.extend([&private[..], &after].concat());
        assert_eq!(read(&data).1, [(0x71, 40), (0x72, 50)]);
        // The first of them is hours before the next record.
        let at = data.len() - after.len() - private.len();
        data[at + 1] = 0xee;
        assert_eq!(read(&data).1, [(0x72, 50)][after.is_empty() as usize..]);
    }
}

#[test]
fn text_is_no_private_record() {
    let good = dump();
    let (map, _) = read(&good);
    let segment = map.segments[0];
    for wrong in (1..segment.len() as u32).step_by(17) {
        let mut data = good.clone();
        data[segment.at.0 as usize + 5..][..4].copy_from_slice(&wrong.to_be_bytes());
        let (map, private) = read(&data);
        assert_eq!(private, [], "{wrong}");
        assert!(map.diagnostics.any_damage());
    }
}
