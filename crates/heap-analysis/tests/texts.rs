//! Texts in answers, which have a bound, and previews.

use crate::program::open;
use heap_analysis::objects::describe::{MAX_TEXT, MAX_VALUE, describe};
use heap_analysis::objects::object::{ObjectOptions, details};
use heap_analysis::sets::scope::Scope;
use heap_analysis::strings::{StringOptions, duplicates, find, first};
use heap_graph::Control;
use hprof::ObjectId;
use regex::Regex;
use testkit::dump::{Elements, Heap as Builder, IdSize, Root};

#[test]
fn long_texts_are_cut_and_have_their_length() {
    let mut b = Builder::new(IdSize::Eight);
    let long = "é".repeat(MAX_TEXT) + "x";
    let wide = "語".repeat(MAX_TEXT + 7);
    let whole = "ö".repeat(MAX_TEXT);
    let mut ids = Vec::new();
    for text in [&long, &wide, &whole, &whole] {
        ids.push(b.string(text));
    }
    ids.push(b.primitive_array(Elements::Char(vec![0x8a9e; MAX_TEXT + 7])));
    for id in &ids {
        b.root(Root::JniGlobal { reference: 1 }, *id);
    }
    let heap = open(&b);
    let lengths = [65_537, 65_543, 0, 0, 65_543];
    let lengths = lengths.map(|n| (n > 0).then_some(n));
    for (id, length) in ids.iter().zip(lengths) {
        let object = heap.find(ObjectId(*id)).expect("an object");
        let found = details(&heap, object, &ObjectOptions::default()).expect("an answer");
        let text = found.text.expect("a text");
        assert_eq!(
            (text.chars().count(), found.text_length),
            (MAX_TEXT, length)
        );
    }
    let value = describe(&heap, heap.find(ObjectId(ids[1])).expect("a string")).value;
    assert_eq!(value, Some("語".repeat(MAX_VALUE) + "…"));

    let options = StringOptions {
        scope: Scope::All,
        top: None,
        holders: false,
    };
    // The pattern is matched with the whole text.
    let pattern = Regex::new("^(é+x|語+|ö+)$").expect("a pattern");
    let found = find(&heap, &pattern, &options, &Control::quiet()).expect("an answer");
    assert_eq!(found, first(&heap, &pattern, &options, 100));
    let rows = found.rows.iter();
    let of_rows: Vec<_> = rows
        .map(|r| (r.text.chars().count(), r.text_length))
        .collect();
    assert_eq!(
        of_rows,
        lengths[..4]
            .iter()
            .map(|l| (MAX_TEXT, *l))
            .collect::<Vec<_>>()
    );
    let copies = duplicates(&heap, &options, &Control::quiet()).expect("an answer");
    assert_eq!(copies.rows[0].length, MAX_TEXT as u64);
    assert_eq!(copies.rows[0].text, "ö".repeat(MAX_VALUE) + "…");
}
