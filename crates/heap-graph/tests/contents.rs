//! The walk over all contents against the objects requested one by one.

use heap_graph::{ClassIdx, ContentVisitor, Control, Heap, ObjIdx, ObjectView, Options};
use hprof::BasicType;
use proptest::prelude::*;
use std::collections::BTreeMap;
use testkit::dump::{Heap as Builder, IdSize, Root, Type, Value};
use testkit::shapes::{Encoding, dump_of, graphs};

#[derive(Default)]
struct Seen(BTreeMap<u64, Vec<u8>>, u64);

impl Seen {
    fn put(&mut self, object: ObjIdx, bytes: &[u8]) {
        self.1 += 1;
        self.0.insert(object.0, bytes.to_vec());
    }
}

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

impl ContentVisitor for Seen {
    fn instance(&mut self, object: ObjIdx, _: ClassIdx, fields: &[u8]) {
        self.put(object, fields);
    }
    fn object_array(&mut self, object: ObjIdx, _: ClassIdx, elements: &[u8]) {
        self.put(object, elements);
    }
    fn primitive_array(&mut self, object: ObjIdx, _: BasicType, _: u32, data: &[u8]) {
        self.put(object, data);
    }
}

fn references(heap: &Heap, bytes: &[u8], class: ClassIdx) -> Vec<u64> {
    let width = heap.id_size().bytes();
    let slots = heap.slots(class);
    let refs = slots.iter().filter(|s| s.kind == BasicType::Object);
    refs.map(|s| hprof::read_id(&bytes[s.offset as usize..][..width], heap.id_size()).0)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_object_comes_once_with_its_contents(
        graph in graphs(60), small in any::<bool>(), wide in any::<bool>(), threads in 1usize..4,
    ) {
        let ids = if wide { IdSize::Eight } else { IdSize::Four };
        let mut dump = dump_of(&graph, Encoding::Mixed, ids);
        if small {
            dump.heap = dump.heap.segments_of(64);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), dump.heap.bytes()).unwrap();
        let options = Options { no_index: true, threads, ..Options::default() };
        let heap = Heap::open(file.path(), &options, &Control::quiet()).unwrap();
        let walks = heap.walk_contents("test", &Control::quiet(), Seen::default).unwrap();
        let calls: u64 = walks.iter().map(|w| w.1).sum();
        let seen: BTreeMap<u64, Vec<u8>> = walks.into_iter().flat_map(|w| w.0).collect();
        prop_assert_eq!(calls, seen.len() as u64);
        let mut want = 0;
        for object in (0..heap.len()).map(ObjIdx) {
            match heap.object(object).unwrap() {
                ObjectView::Class { .. } => prop_assert!(!seen.contains_key(&object.0)),
                ObjectView::Instance { class, fields } => {
                    want += 1;
                    let values: Vec<u64> = fields.iter().filter_map(|f| match f.value {
                        heap_graph::Value::Reference(id) => Some(id.0),
                        _ => None,
                    }).collect();
                    prop_assert_eq!(references(&heap, &seen[&object.0], class), values);
                }
                ObjectView::ObjectArray { elements, .. } => {
                    want += 1;
                    let bytes = &seen[&object.0];
                    let got: Vec<u64> = bytes.chunks(ids.bytes())
                        .map(|c| hprof::read_id(c, heap.id_size()).0).collect();
                    let elements: Vec<u64> = elements.iter().map(|e| e.0).collect();
                    prop_assert_eq!(got, elements);
                    let len = (bytes.len() / ids.bytes()) as u32;
                    prop_assert_eq!(heap.array_bytes(BasicType::Object, len), heap.shallow(object));
                }
                ObjectView::PrimitiveArray { data, .. } => {
                    want += 1;
                    prop_assert_eq!(&seen[&object.0][..], data);
                }
            }
        }
        prop_assert_eq!(calls, want);
    }
}

/// Twenty thousand such classes were eight megabytes of dump and 26 GB of fields.
#[test]
fn fields_that_no_instance_has_bytes_for_are_not_laid_out() {
    use testkit::dump::{ClassDump, Dump, Root, Segment, Type, Version};
    let (mut dump, mut heap) = (
        Dump::new(Version::V102, IdSize::Eight),
        Segment::new(IdSize::Eight),
    );
    dump.utf8(1, b"f").utf8(2, b"Wide");
    dump.load_class(1, 0x1000, 0, 2);
    let class = |id, super_class, fields| ClassDump {
        id,
        super_class,
        fields,
        ..ClassDump::default()
    };
    heap.class_dump(&class(0x1000, 0, vec![(1, Type::Object); 60_000]));
    heap.class_dump(&class(0x1010, 0x1000, Vec::new()));
    heap.class_dump(&class(0x1020, 0x1000, Vec::new()));
    // Two references and a half.
    heap.instance_bytes(0x2000, 0, 0x1020, &[0; 20]);
    heap.root(Root::StickyClass, 0x2000);
    dump.segment(heap).heap_end();
    let heap = open(&dump.into_bytes());
    let class = |id| {
        let object = heap.find(hprof::ObjectId(id)).expect("the class");
        heap.class_by_object(object).expect("a class")
    };
    let slots = [0x1000, 0x1010, 0x1020].map(|id| heap.slots(class(id)).len());
    assert_eq!(slots, [0, 0, 3]);
}

#[test]
fn an_array_at_the_last_address_is_an_object() {
    use testkit::dump::{Dump, Root, Segment, Version};
    let (mut dump, mut heap) = (
        Dump::new(Version::V102, IdSize::Eight),
        Segment::new(IdSize::Eight),
    );
    heap.object_array(0x1000, 0, 0, &[u64::MAX]);
    heap.object_array(u64::MAX, 0, 0, &[0; 3]);
    heap.root(Root::StickyClass, 0x1000);
    dump.segment(heap).heap_end();
    let heap = open(&dump.into_bytes());
    assert!(heap.find(hprof::ObjectId(u64::MAX)).is_some());
}

#[test]
fn a_class_with_the_last_id_is_one_like_any_other() {
    use testkit::dump::{ClassDump, Dump, Root, Segment, Type, Value, Version};
    let id_size = IdSize::Eight;
    let (mut dump, mut heap) = (Dump::new(Version::V102, id_size), Segment::new(id_size));
    dump.utf8(1, b"next").utf8(2, b"Other").utf8(3, b"Last");
    dump.load_class(1, 0x10, 0, 2).load_class(2, u64::MAX, 0, 3);
    // It comes before any class is known, and once more behind another one.
    for first in [0x1000, 0x2000] {
        let next = Value::Object(first + 0x10);
        heap.instance_dump(first, 0, u64::MAX, &[next]);
        heap.instance_dump(first + 0x10, 0, 0x10, &[]);
        heap.root(Root::StickyClass, first);
    }
    for (id, fields) in [(0x10, Vec::new()), (u64::MAX, vec![(1, Type::Object)])] {
        heap.class_dump(&ClassDump {
            id,
            fields,
            ..ClassDump::default()
        });
    }
    dump.segment(heap).heap_end();
    let heap = open(&dump.into_bytes());
    for (id, class) in [(0x1000, "Last"), (0x1010, "Other"), (0x2000, "Last")] {
        let object = heap.find(hprof::ObjectId(id)).expect("an object");
        assert_eq!(heap.class(heap.class_of(object)).name, class, "{id:#x}");
        assert!(heap.is_reachable(object), "{id:#x}");
    }
}

#[test]
fn much_that_is_unreachable_in_a_cut_file_is_a_finding() {
    use testkit::dump::{ClassDump, Dump, Elements, Root, Segment, Type, Value, Version};
    let (mut dump, mut segment) = (
        Dump::new(Version::V102, IdSize::Eight),
        Segment::new(IdSize::Eight),
    );
    dump.utf8(1, b"next").utf8(2, b"A");
    dump.load_class(1, 0x1000, 0, 2);
    segment.class_dump(&ClassDump {
        id: 0x1000,
        fields: vec![(1, Type::Object)],
        ..ClassDump::default()
    });
    segment.root(Root::StickyClass, 0x2000);
    // The only reference to the array is in the last record.
    segment.primitive_array(0x4000, 0, &Elements::Byte(vec![1; 500_000]));
    segment.instance_dump(0x2000, 0, 0x1000, &[Value::Object(0x3000)]);
    segment.instance_dump(0x3000, 0, 0x1000, &[Value::Object(0x4000)]);
    dump.segment(segment).heap_end();
    let whole = dump.into_bytes();
    let findings = |bytes: &[u8]| {
        let heap = open(bytes);
        let diagnostics = &heap.summary().diagnostics;
        let texts: Vec<String> = diagnostics.iter().map(|d| d.message()).collect();
        (diagnostics.any_damage(), texts.join("\n"))
    };
    let (is_damaged, texts) = findings(&whole);
    assert!(!is_damaged && !texts.contains("reachable"), "{texts}");
    let (is_damaged, texts) = findings(&whole[..whole.len() - 19]);
    assert!(is_damaged, "{texts}");
    let note = "99 % of the bytes are not reachable from a GC root";
    assert!(texts.contains(note), "{texts}");
}

/// The second object was lost, and every walk over contents requested the place of every object.
#[test]
fn roots_and_repeated_records_between_objects_hide_none_of_them() {
    use testkit::dump::{ClassDump, Dump, Root, Segment, Type, Version};
    let (mut dump, mut segment) = (
        Dump::new(Version::V102, IdSize::Eight),
        Segment::new(IdSize::Eight),
    );
    dump.utf8(1, b"f").utf8(2, b"A").load_class(1, 0x1000, 0, 2);
    segment.class_dump(&ClassDump {
        id: 0x1000,
        fields: vec![(1, Type::Int)],
        ..ClassDump::default()
    });
    segment.instance_bytes(0x2000, 0, 0x1000, &[0, 0, 0, 1]);
    for _ in 0..70_000 {
        segment.root(Root::Unknown, 0x2000);
    }
    segment.instance_bytes(0x2008, 0, 0x1000, &[0, 0, 0, 2]);
    for _ in 0..100 {
        segment.instance_bytes(0x2000, 0, 0x1000, &[9; 4]);
    }
    segment.instance_bytes(0x2010, 0, 0x1000, &[0, 0, 0, 3]);
    segment.instance_bytes(0x2010, 0, 0x1000, &[9; 4]);
    dump.segment(segment).heap_end();
    let heap = open(&dump.into_bytes());
    assert_eq!(heap.summary().duplicate_objects, 101);
    let walks = heap
        .walk_contents("test", &Control::quiet(), Seen::default)
        .unwrap();
    let mut stepped = Seen::default();
    let mut steps = heap.content_steps().unwrap();
    while steps.next(&heap, &mut stepped).unwrap() {}
    for (n, id) in [0x2000, 0x2008, 0x2010].into_iter().enumerate() {
        let object = heap.find(hprof::ObjectId(id)).expect("the object");
        let value = n as i32 + 1;
        let ObjectView::Instance { fields, .. } = heap.object(object).unwrap() else {
            panic!("{id:#x} is an instance");
        };
        assert_eq!(fields[0].value, heap_graph::Value::Int(value));
        for seen in [&walks[0], &stepped] {
            assert_eq!(seen.0[&object.0], value.to_be_bytes());
            assert_eq!(seen.1, 3);
        }
    }
}

#[test]
fn a_stack_chunk_may_be_smaller_than_its_class_states() {
    use testkit::dump::{ClassDump, Dump, Segment, Type, Version};
    let (mut dump, mut segment) = (
        Dump::new(Version::V102, IdSize::Eight),
        Segment::new(IdSize::Eight),
    );
    let names = ["java/lang/Object", "jdk/internal/vm/StackChunk", "size"];
    for (n, name) in names.iter().enumerate() {
        dump.utf8(n as u64 + 1, name.as_bytes());
    }
    dump.load_class(1, 0x1000, 0, 1).load_class(2, 0x1100, 0, 2);
    segment.class_dump(&ClassDump {
        id: 0x1000,
        instance_size: 16,
        ..ClassDump::default()
    });
    segment.class_dump(&ClassDump {
        id: 0x1100,
        super_class: 0x1000,
        instance_size: 4000,
        fields: vec![(3, Type::Int)],
        ..ClassDump::default()
    });
    segment.instance_bytes(0x2008, 0, 0x1100, &[0; 4]);
    dump.segment(segment).heap_end();
    let heap = open(&dump.into_bytes());
    let chunk = heap.find(hprof::ObjectId(0x2008)).expect("the chunk");
    let class = heap.class(heap.class_of(chunk));
    assert_eq!(class.instance_size.0, 4000);
    assert!(heap.shallow(chunk).0 < 100);
    assert_eq!(class.shallow, heap.shallow(chunk));
}

#[test]
fn references_to_objects_that_the_dump_lacks_are_counted() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let pair = ["first", "second"].map(|name| (name, Type::Object));
    let pair = b.class("Pair", object, &pair);
    let array = b.object_array_class();
    let held = b.instance(object, &[]);
    const UNKNOWN: u64 = 0xdead_beef;
    let few = b.object_array(array, &[0, UNKNOWN, held]);
    // Longer arrays are read in pieces.
    let many: Vec<u64> = (0..5000).map(|n| [0, UNKNOWN, held][n % 3]).collect();
    let many = b.object_array(array, &many);
    let pair = b.instance(pair, &[many, UNKNOWN].map(Value::Object));
    for id in [few, pair] {
        b.root(Root::Unknown, id);
    }
    let heap = open(&b.bytes());
    let unknown_of_many = (0..5000).filter(|n| n % 3 == 1).count() as u64;
    assert_eq!(heap.summary().dangling_references, 2 + unknown_of_many);
    assert!(heap.is_reachable(heap.find(hprof::ObjectId(held)).expect("the object")));
}
