//! Damaged dumps: whatever field of a dump is wrong, no text of its arrays is in what was redacted.

use std::collections::HashSet;

use heap_analysis::share::redact::{Method, RedactOptions, Redactor, verify};
use testkit::dump::{Elements, FrameSpec, Heap as Builder, IdSize, Root, Type, Value, Version};

/// Texts of arrays, and parts of them.
const TEXTS: [&str; 4] = [
    "Zanzibar-quartz",
    "Wolkenkuckucksheim",
    "Xylophone#glyph!",
    "quick\"onyx\" goblin",
];
/// Characters of a text that must not be found.
const PART: usize = 8;

fn planted(ids: IdSize, version: Version) -> Vec<u8> {
    let mut heap = Builder::new(ids).version(version);
    let object = heap.java_lang_object();
    let slots = heap.object_array_class();
    let node = heap.class(
        "Node",
        object,
        &[("next", Type::Object), ("n", Type::Long), ("c", Type::Char)],
    );
    let leaf = heap.class("Leaf", node, &[("flag", Type::Boolean), ("s", Type::Short)]);
    let frames = [FrameSpec {
        class: node,
        method: "run",
        source: "Node.java",
        line: 7,
    }];
    let (_, thread) = heap.thread("main", &frames);
    let mut next = thread;
    for text in TEXTS {
        let units = text.encode_utf16().collect();
        let array = heap.primitive_array(Elements::Char(units));
        next = heap.instance(
            node,
            &[
                Value::Object(array),
                Value::Long(0),
                Value::Char(b'x'.into()),
            ],
        );
        let bytes = heap.primitive_array(Elements::Byte(text.as_bytes().to_vec()));
        let held = heap.object_array(slots, &[next, 0, bytes, next]);
        heap.instance(
            leaf,
            &[
                Value::Boolean(true),
                Value::Short(3),
                Value::Object(held),
                Value::Long(5),
                Value::Char(b'y'.into()),
            ],
        );
        let _ = heap.string(text);
    }
    heap.set_static(node, "HEAD", Value::Object(next));
    heap.root(Root::JniGlobal { reference: 8 }, next);
    heap.root(Root::StickyClass, node);
    heap.bytes()
}

/// All parts of the texts as Latin-1, and as UTF-16 of either order.
struct Searched {
    parts: HashSet<Vec<u8>>,
    /// Their first two bytes.
    begin: Vec<bool>,
}

fn first_two(part: &[u8]) -> usize {
    usize::from(part[0]) << 8 | usize::from(part[1])
}

impl Searched {
    fn new() -> Searched {
        let windows = TEXTS.iter().flat_map(|t| t.as_bytes().windows(PART));
        let spelled = windows.flat_map(|part| {
            let wide = |order: fn(u16) -> [u8; 2]| {
                let units = part.iter().map(|b| order(u16::from(*b)));
                units.flatten().collect::<Vec<u8>>()
            };
            [
                part.to_vec(),
                wide(u16::to_be_bytes),
                wide(u16::to_le_bytes),
            ]
        });
        let parts: HashSet<Vec<u8>> = spelled.collect();
        let mut begin = vec![false; 1 << 16];
        parts.iter().for_each(|part| begin[first_two(part)] = true);
        Searched { parts, begin }
    }

    /// The first part of a text that is in the data.
    fn find(&self, data: &[u8]) -> Option<String> {
        let windows = [PART, 2 * PART]
            .into_iter()
            .flat_map(|len| data.windows(len));
        let mut windows = windows.filter(|w| self.begin[first_two(w)]);
        let found = windows.find(|w| self.parts.contains(*w));
        found.map(|part| String::from_utf8_lossy(part).into_owned())
    }
}

fn options(keep: &[&str]) -> RedactOptions {
    RedactOptions {
        method: Method::Zero,
        keep: keep.iter().map(|class| (*class).to_owned()).collect(),
        numbers: true,
        rename_except: None,
    }
}

fn redacted(data: &[u8], options: &RedactOptions, what: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(redactor) = Redactor::new(data, options) {
        hprof::rewrite(data, &redactor, &mut out).expect("memory");
        let found = verify(data, &out, &redactor).expect("a dump");
        assert!(found.clean(), "{what}: {found:?}");
    }
    out
}

#[test]
fn no_text_is_left_whatever_number_in_a_dump_is_wrong() {
    let searched = Searched::new();
    let options = options(&[]);
    for (ids, version) in [
        (IdSize::Eight, Version::V102),
        (IdSize::Four, Version::V102),
        (IdSize::Eight, Version::V101),
    ] {
        let good = planted(ids, version);
        assert!(searched.find(&good).is_some());
        assert_eq!(searched.find(&redacted(&good, &options, "good")), None);
        for at in 20..good.len() - 4 {
            let number = good[at..]
                .first_chunk()
                .map_or(0, |b| u32::from_be_bytes(*b));
            // A large dump has room for lengths that are more wrong than these.
            for by in [-9, 1, 24, 100, 300, 700, 1500] {
                let mut data = good.clone();
                let wrong = number.wrapping_add_signed(by);
                data[at..at + 4].copy_from_slice(&wrong.to_be_bytes());
                let what = format!("{ids:?} {version:?}: {number} at {at} is {wrong}");
                let out = redacted(&data, &options, &what);
                assert_eq!(searched.find(&out), None, "{what}");
            }
        }
    }
}

#[test]
fn no_text_is_left_whatever_byte_of_a_dump_is_wrong() {
    let searched = Searched::new();
    let options = options(&[]);
    let good = planted(IdSize::Eight, Version::V102);
    for at in 20..good.len() {
        for byte in [
            0x01,
            0x05,
            0x08,
            0x1c,
            0x20,
            0x21,
            0x22,
            0x23,
            0xff,
            good[at] ^ 0x04,
        ] {
            let mut data = good.clone();
            data[at] = byte;
            let what = format!("byte {at} is {byte:#x}");
            let out = redacted(&data, &options, &what);
            assert_eq!(searched.find(&out), None, "{what}");
        }
    }
}

/// A dump with an array that is to stay readable, and the offset of its length.
fn kept() -> (Vec<u8>, usize) {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let class = heap.class("Kept", object, &[("text", Type::Object)]);
    let text = heap.primitive_array(Elements::Byte(b"this stays readable".to_vec()));
    heap.instance(class, &[Value::Object(text)]);
    for text in TEXTS {
        heap.primitive_array(Elements::Byte(text.as_bytes().to_vec()));
    }
    let data = heap.bytes();
    let is_array = |w: &[u8]| w[0] == 0x23 && w[1..9] == text.to_be_bytes();
    let at = data.windows(9).position(is_array).expect("the array");
    (data, at + 13)
}

#[test]
fn an_array_that_stays_readable_does_not_bring_others_along() {
    let searched = Searched::new();
    let options = options(&["Kept"]);
    let (good, at) = kept();
    let readable = |data: &[u8]| data.windows(19).any(|w| w == b"this stays readable");
    let out = redacted(&good, &options, "good");
    assert!(readable(&out) && searched.find(&out).is_none());
    for length in 20..300u32 {
        let mut data = good.clone();
        data[at..at + 4].copy_from_slice(&length.to_be_bytes());
        let what = format!("length {length}");
        let out = redacted(&data, &options, &what);
        assert_eq!(searched.find(&out), None, "{what}");
    }
}
