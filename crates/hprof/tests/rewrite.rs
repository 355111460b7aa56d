//! The copy of a dump: byte for byte where the dump is whole, whole where it is not.

use hprof::{Edit, FileOffset, Rewriter, SubRecord, map_file, rewrite};
use testkit::dump::{Elements, Heap, IdSize, Root, Type, Value, Version};

/// Keeps or encodes anew everything.
struct Same {
    anew: Option<hprof::IdSize>,
}

impl Rewriter for Same {
    fn sub_record(&self, _: FileOffset, record: &SubRecord<'_>, out: &mut Vec<u8>) -> Edit {
        match self.anew {
            None => Edit::Keep,
            Some(ids) => {
                hprof::encode_sub_record(record, ids, out);
                Edit::Replace
            }
        }
    }
}

/// Leaves out all arrays of primitives.
struct NoArrays;

impl Rewriter for NoArrays {
    fn sub_record(&self, _: FileOffset, record: &SubRecord<'_>, _: &mut Vec<u8>) -> Edit {
        match record {
            SubRecord::PrimitiveArray(_) => Edit::Drop,
            _ => Edit::Keep,
        }
    }
}

fn dump(ids: IdSize, version: Version) -> Vec<u8> {
    let mut heap = Heap::new(ids).version(version).segments_of(300);
    let object = heap.java_lang_object();
    let class = heap.class(
        "Node",
        object,
        &[("next", Type::Object), ("n", Type::Short)],
    );
    let mut next = 0;
    for n in 0..50i16 {
        heap.primitive_array(Elements::Byte(vec![n as u8; 20]));
        next = heap.instance(class, &[Value::Object(next), Value::Short(n)]);
    }
    heap.set_static(class, "HEAD", Value::Object(next));
    for root in Root::ALL {
        if version == Version::V103 || root.tag() < 0x80 || root.tag() == 0xff {
            heap.root(root, next);
        }
    }
    heap.bytes()
}

fn rewritten(data: &[u8], rewriter: &dyn Rewriter) -> Vec<u8> {
    let mut out = Vec::new();
    let done = rewrite(data, rewriter, &mut out).expect("a dump");
    assert_eq!(done.bytes, out.len() as u64);
    out
}

#[test]
fn a_whole_dump_is_copied_byte_for_byte() {
    for ids in IdSize::ALL {
        for version in Version::ALL {
            let data = dump(ids, version);
            let width = map_file(&data, |_| {}).expect("a dump").header.id_size;
            assert!(
                rewritten(&data, &Same { anew: None }) == data,
                "{ids:?} {version:?}"
            );
            let anew = Same { anew: Some(width) };
            assert!(
                rewritten(&data, &anew) == data,
                "{ids:?} {version:?} encoded anew"
            );
        }
    }
}

#[test]
fn what_is_left_out_leaves_a_whole_dump() {
    for ids in IdSize::ALL {
        for version in Version::ALL {
            let out = rewritten(&dump(ids, version), &NoArrays);
            let map = map_file(&out, |_| {}).expect("a dump");
            assert!(map.diagnostics.is_empty(), "{:?}", map.diagnostics);
            assert_eq!(map.skipped, 0);
            assert!(rewritten(&out, &NoArrays) == out);
        }
    }
}

#[test]
fn any_cut_of_a_dump_becomes_whole() {
    let data = dump(IdSize::Eight, Version::V102);
    for len in (40..data.len()).step_by(7) {
        let out = rewritten(&data[..len], &Same { anew: None });
        let map = map_file(&out, |_| {}).expect("a dump");
        // A text that the cut went through is copied as far as it goes; everything else is whole.
        assert!(
            map.skipped == 0 && !map.diagnostics.any_damage(),
            "{len}: {:?}",
            map.diagnostics
        );
    }
}
