//! The second look at a redacted dump: it refuses what is left, and nothing that rightly stays.

use heap_analysis::share::redact::{Method, RedactOptions, Redactor, Verified, verify};
use hprof::{Edit, FileOffset, Rewriter, SubRecord};
use testkit::dump::{Elements, Heap as Builder, IdSize, Type, Value};

fn redactor(data: &[u8]) -> Redactor {
    let options = RedactOptions {
        method: Method::Tokens([5; 32]),
        keep: Vec::new(),
        numbers: false,
        rename_except: None,
    };
    Redactor::new(data, &options).expect("a dump")
}

fn rewritten(data: &[u8], rewriter: &dyn Rewriter) -> Vec<u8> {
    let mut out = Vec::new();
    hprof::rewrite(data, rewriter, &mut out).expect("a redacted dump");
    out
}

fn redacted(data: &[u8]) -> Verified {
    let redactor = redactor(data);
    let out = rewritten(data, &redactor);
    verify(data, &out, &redactor).expect("two dumps")
}

#[test]
fn an_array_of_stale_references_is_no_text_that_was_left() {
    let mut heap = Builder::new(IdSize::Four);
    let object = heap.java_lang_object();
    let slots = heap.object_array_class();
    let held: Vec<u64> = (0..6).map(|_| heap.instance(object, &[])).collect();
    heap.object_array(slots, &held);
    let stale = held.iter().map(|id| *id as i32).collect();
    heap.primitive_array(Elements::Int(stale));
    let found = redacted(&heap.bytes());
    assert!(found.clean(), "{found:?}");
    assert_eq!(found.arrays, 1);
}

#[test]
fn an_array_with_the_bytes_of_numbers_is_no_text_that_was_left() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let point = heap.class("Point", object, &[("x", Type::Long), ("y", Type::Long)]);
    let (x, y) = (0x0102_0304_0506_0708, 0x1112_1314_1516_1718);
    heap.instance(point, &[Value::Long(x), Value::Long(y)]);
    heap.primitive_array(Elements::Long(vec![x, y]));
    let found = redacted(&heap.bytes());
    assert!(found.clean(), "{found:?}");
}

#[test]
fn two_dumps_in_one_file_miss_nothing() {
    let mut heap = Builder::new(IdSize::Eight);
    for text in ["first", "second", "a third one"] {
        heap.primitive_array(Elements::Byte(text.as_bytes().to_vec()));
    }
    let one = heap.bytes();
    let header = hprof::Header::parse(&one)
        .expect("a header")
        .to_bytes()
        .len();
    let both = [&one[..], &one[header..]].concat();
    let found = redacted(&both);
    assert!(found.clean(), "{found:?}");
    assert_eq!(found.arrays, 6);
}

/// Writes one array of the original as it was, or one that holds it inside of an unknown place.
struct Leaky<'r> {
    inner: &'r Redactor,
    /// Keep arrays of this length.
    keep: u32,
}

impl Rewriter for Leaky<'_> {
    fn sub_record(&self, at: FileOffset, record: &SubRecord<'_>, out: &mut Vec<u8>) -> Edit {
        match record {
            SubRecord::PrimitiveArray(a) if a.len == self.keep => Edit::Keep,
            _ => self.inner.sub_record(at, record, out),
        }
    }
}

#[test]
fn what_was_left_is_seen() {
    let mut heap = Builder::new(IdSize::Eight);
    heap.primitive_array(Elements::Byte(b"a text of thirty-one characters".to_vec()));
    heap.primitive_array(Elements::Byte(b"short".to_vec()));
    let data = heap.bytes();
    let redactor = redactor(&data);
    for keep in [31, 5] {
        let inner = &redactor;
        let out = rewritten(&data, &Leaky { inner, keep });
        let found = verify(&data, &out, &redactor).expect("two dumps");
        assert_eq!(found.unchanged, 1, "{found:?}");
        assert_eq!(found.remains, u64::from(keep == 31), "{found:?}");
    }
}
