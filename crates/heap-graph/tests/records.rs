//! Records that no JVM writes: repeated ones, an object of id 0, instances that are too short, and classes that are missing or their
//! own ancestors.

use heap_graph::{Control, Heap, Options};
use testkit::dump::{ClassDump, Dump, IdSize, Root, Segment, StartThread, Type, Version};

/// Opens a dump without an index.
fn open(data: &[u8]) -> Heap {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), data).expect("writing the dump");
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump")
}

/// Classes `A`, with the fields `f` and `g`, and `Object[]`, and what `fill` adds, as a dump.
fn with_records(fill: impl FnOnce(&mut Segment)) -> Vec<u8> {
    after_records(|_| {}, fill)
}

/// The same after other records outside the heap.
fn after_records(before: impl FnOnce(&mut Dump), fill: impl FnOnce(&mut Segment)) -> Vec<u8> {
    let (mut dump, mut segment) = (
        Dump::new(Version::V102, IdSize::Eight),
        Segment::new(IdSize::Eight),
    );
    before(&mut dump);
    let names: [&[u8]; 4] = [b"f", b"g", b"A", b"[Ljava/lang/Object;"];
    for (n, name) in names.into_iter().enumerate() {
        dump.utf8(n as u64 + 1, name);
    }
    dump.load_class(1, A, 0, 3).load_class(2, ARRAY, 0, 4);
    segment.class_dump(&ClassDump {
        id: A,
        fields: vec![(1, Type::Object), (2, Type::Object)],
        ..ClassDump::default()
    });
    segment.class_dump(&ClassDump {
        id: ARRAY,
        ..ClassDump::default()
    });
    fill(&mut segment);
    dump.segment(segment).heap_end();
    dump.into_bytes()
}

const A: u64 = 0x1000;
const ARRAY: u64 = 0x1100;

fn fields(ids: [u64; 2]) -> Vec<u8> {
    ids.into_iter().flat_map(u64::to_be_bytes).collect()
}

fn texts(heap: &Heap) -> Vec<String> {
    let found = heap.summary().diagnostics.iter();
    found.map(ToString::to_string).collect()
}

#[test]
fn the_references_of_a_repeated_record_count_nowhere() {
    let [first, used, unused] = [0x2000, 0x2100, 0x2200];
    let dump = with_records(|segment| {
        segment.instance_bytes(first, 0, A, &fields([used, 0]));
        segment.object_array(0x2300, 0, ARRAY, &[used]);
        for id in [used, unused] {
            segment.instance_bytes(id, 0, A, &fields([0, 0]));
        }
        segment.root(Root::Unknown, first);
        segment.instance_bytes(first, 0, A, &fields([unused, 0]));
        segment.object_array(0x2300, 0, ARRAY, &[unused]);
    });
    let heap = open(&dump);
    let object = |id| heap.find(hprof::ObjectId(id)).expect("the object");
    assert!(!heap.is_reachable(object(unused)));
    let referrers = |id| heap.inbound(object(id)).expect("the referrers");
    assert_eq!(referrers(used), [object(first), object(0x2300)]);
    assert_eq!(referrers(unused), []);
    let found = texts(&heap);
    let repetition = "HEAP_DUMP: 2 object ids occur more than once; the first of each counts";
    let found = found.iter().find(|text| text.ends_with(repetition));
    let found = found.expect("a finding");
    let at = found
        .strip_prefix("at ")
        .and_then(|text| text.split_once(':'));
    let at: usize = at.expect("an offset").0.parse().expect("a number");
    let record = &dump[at..at + 9];
    assert_eq!(record, [&[0x21][..], &first.to_be_bytes()].concat());
}

#[test]
fn null_is_no_reference_to_an_object_of_id_0() {
    for len in [10, 5000] {
        let mut elements = vec![0; len];
        elements[0] = 0x2000;
        let heap = open(&with_records(|segment| {
            segment.instance_bytes(0, 0, A, &fields([0, 0]));
            segment.instance_bytes(0x2000, 0, A, &fields([0, 0]));
            segment.object_array(0x3000, 0, ARRAY, &elements);
            segment.root(Root::Unknown, 0x3000);
        }));
        let reachable = heap
            .all_ids()
            .filter(|(object, _)| heap.is_reachable(*object));
        let reachable: Vec<u64> = reachable.map(|(_, id)| id.0).collect();
        assert_eq!(reachable, [A, ARRAY, 0x2000, 0x3000], "{len}");
        assert_eq!(heap.summary().dangling_references, 0, "{len}");
    }
}

#[test]
fn instances_shorter_than_their_class_are_damage() {
    let whole = fields([0, 0]);
    let unknown = 0x9000;
    let heap = open(&with_records(|segment| {
        segment.instance_bytes(0x2000, 0, A, &whole);
        // A longer one has the fields of a superclass that is missing; how long one of an unknown class is, is unknown.
        segment.instance_bytes(0x2100, 0, A, &[0; 20]);
        segment.instance_bytes(0x2200, 0, unknown, &[0; 100]);
        segment.instance_bytes(0x2300, 0, unknown, &[0; 3]);
    }));
    let found = texts(&heap);
    assert!(
        !found.iter().any(|text| text.contains("field bytes")),
        "{found:?}"
    );
    let dump = with_records(|segment| {
        segment.instance_bytes(0x2000, 0, A, &whole);
        for n in 0..100 {
            segment.instance_bytes(0x3000 + n * 0x100, 0, A, &whole[..12]);
        }
    });
    let heap = open(&dump);
    let diagnostics = &heap.summary().diagnostics;
    assert!(diagnostics.any_damage());
    assert_eq!(diagnostics.dropped(), 80);
    let found = texts(&heap);
    let first = found.iter().find(|text| text.contains("INSTANCE_DUMP"));
    let first = first.expect("a finding");
    let expected = "INSTANCE_DUMP: field bytes: expected at least 16, those of class A, found 12";
    let (at, text) = first.split_once(": ").expect("an offset");
    assert_eq!(text, expected);
    let at: usize = at
        .strip_prefix("at ")
        .expect("an offset")
        .parse()
        .expect("a number");
    assert_eq!(
        dump[at..at + 9],
        [&[0x21][..], &0x3000u64.to_be_bytes()].concat()
    );
}

#[test]
fn a_missing_class_is_reported_where_the_first_object_names_it() {
    let dump = with_records(|segment| {
        segment.instance_bytes(0x2000, 0, A, &fields([0, 0]));
        for id in [0x2100, 0x2200] {
            segment.instance_bytes(id, 0, 0x9000, &[]);
        }
        segment.object_array(0x2300, 0, 0x9100, &[]);
    });
    // The tag and the id of the object.
    let at = |tag: u8, id: u64| {
        let record = [&[tag][..], &id.to_be_bytes()].concat();
        dump.windows(9).position(|bytes| bytes == record)
    };
    let [instance, array] = [at(0x21, 0x2100), at(0x22, 0x2300)].map(Option::unwrap);
    let mut found = texts(&open(&dump));
    found.retain(|text| text.contains("CLASS_DUMP"));
    let expected = [
        format!(
            "at {instance}: INSTANCE_DUMP: class: expected a class of this dump, found 0x9000, which has no CLASS_DUMP"
        ),
        format!(
            "at {array}: OBJECT_ARRAY_DUMP: class: expected a class of this dump, found 0x9100, which has no CLASS_DUMP"
        ),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_class_that_is_its_own_ancestor_is_reported_at_its_record() {
    let dump = with_records(|segment| {
        segment.class_dump(&ClassDump {
            id: 0x1200,
            super_class: 0x1200,
            ..ClassDump::default()
        });
    });
    let record = [&[0x20][..], &0x1200u64.to_be_bytes()].concat();
    let at = dump.windows(9).position(|bytes| bytes == record).unwrap();
    let expected = format!("at {at}: CLASS_DUMP: super class: ");
    let found = texts(&open(&dump));
    assert!(
        found.iter().any(|text| text.starts_with(&expected)),
        "{found:?}"
    );
}

#[test]
fn a_thread_that_has_ended_is_none_of_the_heap() {
    let started = |serial, object| StartThread {
        serial,
        object,
        ..StartThread::default()
    };
    let dump = after_records(
        |dump| {
            dump.start_thread(started(1, 0x2000));
            dump.start_thread(started(2, 0x2100)).end_thread(2);
            // A serial number may be used again.
            dump.start_thread(started(3, 0x2200)).end_thread(3);
            dump.start_thread(started(3, 0x2300));
        },
        |segment| {
            for id in [0x2000, 0x2100, 0x2200, 0x2300] {
                segment.instance_bytes(id, 0, A, &fields([0, 0]));
            }
            segment.root(Root::Unknown, 0x2100);
        },
    );
    let heap = open(&dump);
    let threads = heap.threads().iter();
    let threads: Vec<_> = threads.map(|t| (t.serial.0, t.object)).collect();
    let object = |id| heap.find(hprof::ObjectId(id));
    assert_eq!(threads, [(1, object(0x2000)), (3, object(0x2300))]);
}
