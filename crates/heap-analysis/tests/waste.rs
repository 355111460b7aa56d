//! Waste and collections against a naive count that reads objects one by one and compares every
//! pair, over random heaps.

use crate::program::open;
use heap_analysis::collections::stats::{CollectionOptions, collections};
use heap_analysis::sets::scope::Scope;
use heap_analysis::sets::selection::Selection;
use heap_analysis::strings::{StringOptions, duplicates, find};
use heap_analysis::waste::{Waste, WasteOptions, waste};
use heap_graph::{Control, Heap, ObjIdx, ObjectKind, ObjectView, Options, Value as Read};
use hprof::BasicType;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use testkit::dump::{Elements, Heap as Builder, IdSize, Root, Type, Value};

/// An object to make; numbers are small, so that equal ones occur.
#[derive(Clone, Debug)]
enum Make {
    Text(u8),
    Bytes(Vec<u8>),
    Chars(Vec<u16>),
    Ints(Vec<i32>),
    Refs(Vec<u8>),
    Box(i32),
    Pair(u8, i32),
    Count(u8),
    List(u8, u8),
    Map(u8, Vec<u8>),
    Weak(u8, u8),
}

fn makes() -> impl Strategy<Value = Vec<Make>> {
    let small = 0u8..4;
    let byte = prop_oneof![Just(0u8), Just(0), 1u8..3];
    let one = prop_oneof![
        small.clone().prop_map(Make::Text),
        proptest::collection::vec(byte, 0..6).prop_map(Make::Bytes),
        proptest::collection::vec(prop_oneof![Just(0u16), 65u16..67, Just(300)], 0..5)
            .prop_map(Make::Chars),
        proptest::collection::vec(prop_oneof![Just(0i32), -2i32..3, Just(70_000)], 0..5)
            .prop_map(Make::Ints),
        proptest::collection::vec(small.clone(), 0..4).prop_map(Make::Refs),
        (-1i32..3).prop_map(Make::Box),
        (small.clone(), 0i32..2).prop_map(|(a, b)| Make::Pair(a, b)),
        prop_oneof![Just(0u8), 1u8..30].prop_map(Make::Count),
        (0u8..5, 0u8..12).prop_map(|(a, b)| Make::List(a, b)),
        (0u8..9, proptest::collection::vec(0u8..3, 0..9)).prop_map(|(n, b)| Make::Map(n, b)),
        (0u8..3, 0u8..3).prop_map(|(a, b)| Make::Weak(a, b)),
    ];
    proptest::collection::vec(one, 1..40)
}

struct Case {
    heap: Heap,
    _file: tempfile::NamedTempFile,
}

fn case(list: &[Make], ids: IdSize, rooted: &[bool]) -> Case {
    let mut b = Builder::new(ids).segments_of(256);
    let object = b.java_lang_object();
    let refs = b.object_array_class();
    let integer = b.class("java/lang/Integer", object, &[("value", Type::Int)]);
    let fields = [("a", Type::Object), ("n", Type::Int), ("never", Type::Long)];
    let pair = b.class("Pair", object, &fields);
    let list_class = b.class(
        "java/util/ArrayList",
        object,
        &[("size", Type::Int), ("elementData", Type::Object)],
    );
    let map_class = b.class(
        "java/util/HashMap",
        object,
        &[("size", Type::Int), ("table", Type::Object)],
    );
    let set_class = b.class("java/util/HashSet", object, &[("map", Type::Object)]);
    let reference = b.class(
        "java/lang/ref/Reference",
        object,
        &[("referent", Type::Object)],
    );
    let weak = b.class("java/lang/ref/WeakReference", reference, &[]);
    let entry = b.class(
        "java/util/WeakHashMap$Entry",
        weak,
        &[("value", Type::Object)],
    );
    let known: Vec<u64> = (0..4).map(|_| b.instance(object, &[])).collect();
    for id in &known {
        b.root(Root::JniGlobal { reference: 1 }, *id);
    }
    let count = b.class("Count", object, &[("number", Type::Object)]);
    let shared = b.instance(integer, &[Value::Int(1000)]);
    b.root(Root::JniGlobal { reference: 2 }, shared);
    for (n, make) in list.iter().enumerate() {
        let target = |k: &u8| if *k == 0 { 0 } else { known[*k as usize] };
        let id = match make {
            Make::Text(n) => b.string(["", "a", "text", "\u{30c6}"][*n as usize]),
            Make::Bytes(v) => b.primitive_array(Elements::Byte(v.clone())),
            Make::Chars(v) => b.primitive_array(Elements::Char(v.clone())),
            Make::Ints(v) => b.primitive_array(Elements::Int(v.clone())),
            Make::Refs(v) => {
                let ids: Vec<u64> = v.iter().map(target).collect();
                b.object_array(refs, &ids)
            }
            Make::Box(n) => b.instance(integer, &[Value::Int(*n)]),
            Make::Pair(a, n) => b.instance(
                pair,
                &[Value::Object(target(a)), Value::Int(*n), Value::Long(0)],
            ),
            Make::Count(n) => {
                let number = match n {
                    0 => 0,
                    1 => shared,
                    n => b.instance(integer, &[Value::Int(i32::from(*n % 3))]),
                };
                b.instance(count, &[Value::Object(number)])
            }
            Make::List(size, capacity) => {
                let ids = vec![known[1]; *capacity.min(size) as usize];
                let mut ids = ids;
                ids.resize(*capacity as usize, 0);
                let array = b.object_array(refs, &ids);
                let size = i32::from(*size.min(capacity));
                b.instance(list_class, &[Value::Int(size), Value::Object(array)])
            }
            Make::Map(size, buckets) => {
                let ids: Vec<u64> = buckets.iter().map(target).collect();
                let table = b.object_array(refs, &ids);
                let values = [Value::Int(i32::from(*size)), Value::Object(table)];
                let map = b.instance(map_class, &values);
                if size % 2 == 0 {
                    b.instance(set_class, &[Value::Object(map)])
                } else {
                    map
                }
            }
            Make::Weak(key, value) => {
                let (key, value) = (target(key), target(value));
                b.instance(entry, &[Value::Object(value), Value::Object(key)])
            }
        };
        if rooted[n % rooted.len()] {
            b.root(Root::Unknown, id);
        }
    }
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), b.bytes()).expect("writing the dump");
    let options = Options {
        no_index: true,
        threads: 2,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump");
    Case { heap, _file: file }
}

/// An object, read on its own.
struct One {
    object: ObjIdx,
    class: String,
    shallow: u64,
    /// Everything in it as text.
    contents: String,
    fields: Vec<(String, Read)>,
    data: Vec<u8>,
    elements: Vec<u64>,
    len: u32,
    element: Option<BasicType>,
}

fn objects(heap: &Heap, counts: impl Fn(ObjIdx) -> bool) -> Vec<One> {
    let mut out = Vec::new();
    for object in (0..heap.len()).map(ObjIdx) {
        if heap.kind(object) == ObjectKind::Class || !counts(object) {
            continue;
        }
        let mut one = One {
            object,
            class: heap.class(heap.class_of(object)).name.clone(),
            shallow: heap.shallow(object).0,
            contents: String::new(),
            fields: Vec::new(),
            data: Vec::new(),
            elements: Vec::new(),
            len: 0,
            element: None,
        };
        match heap.object(object).expect("readable") {
            ObjectView::Instance { fields, .. } => {
                one.contents = format!("{fields:?}");
                one.fields = fields
                    .iter()
                    .map(|f| (f.name.to_owned(), f.value))
                    .collect();
            }
            ObjectView::ObjectArray { elements, .. } => {
                one.contents = format!("{elements:?}");
                one.elements = elements.iter().map(|e| e.0).collect();
            }
            ObjectView::PrimitiveArray { element, len, data } => {
                one.contents = format!("{data:?}");
                (one.element, one.len, one.data) = (Some(element), len, data.to_vec());
            }
            ObjectView::Class { .. } => {}
        }
        out.push(one);
    }
    out
}

/// Some objects with all that they refer to, directly or through others; without classes.
fn referred(heap: &Heap, some: impl Iterator<Item = ObjIdx>) -> BTreeSet<ObjIdx> {
    let mut found = BTreeSet::new();
    let mut rest: Vec<ObjIdx> = some.collect();
    while let Some(object) = rest.pop() {
        if heap.kind(object) != ObjectKind::Class && found.insert(object) {
            rest.extend(heap.outbound(object).unwrap().iter().map(|r| r.target));
        }
    }
    found
}

impl One {
    fn int(&self, name: &str) -> u64 {
        match self.fields.iter().find(|f| f.0 == name).map(|f| f.1) {
            Some(Read::Int(n)) => n as u64,
            _ => panic!("no {name}"),
        }
    }

    fn refers(&self, name: &str) -> u64 {
        match self.fields.iter().find(|f| f.0 == name).map(|f| f.1) {
            Some(Read::Reference(id)) => id.0,
            _ => panic!("no {name}"),
        }
    }

    fn is_zero(value: Read) -> bool {
        match value {
            Read::Reference(id) => id.is_null(),
            Read::Int(n) => n == 0,
            Read::Long(n) => n == 0,
            Read::Byte(n) => n == 0,
            _ => panic!("not made here"),
        }
    }
}

/// Copies and what they waste, by comparing every pair.
fn copies<'a>(list: impl Iterator<Item = &'a One>) -> (u64, u64) {
    let mut seen: Vec<&One> = Vec::new();
    let (mut count, mut bytes) = (0, 0);
    for one in list {
        if seen
            .iter()
            .any(|s| s.class == one.class && s.contents == one.contents)
        {
            count += 1;
            bytes += one.shallow;
        } else {
            seen.push(one);
        }
    }
    (count, bytes)
}

fn kind(waste: &Waste, name: &str) -> (u64, u64) {
    let found = waste.kinds.iter().find(|k| k.kind == name);
    found.map(|k| (k.objects, k.wasted.0)).expect(name)
}

/// The kinds that consist of objects which a stack has allocated.
const SITE_KINDS: [&str; 8] = [
    "duplicate_strings",
    "duplicate_arrays",
    "equal_objects",
    "duplicate_boxed_numbers",
    "boxed_fields",
    "empty_collections",
    "single_element_collections",
    "unused_slots",
];

fn is_rooted(heap: &Heap, object: ObjIdx) -> bool {
    heap.dominator(object) == heap_graph::Dominator::Root
}

/// Size of an array of references in the layout that the heap states.
fn array(heap: &Heap, len: u64) -> u64 {
    let layout = &heap.summary().layout;
    let bytes = u64::from(layout.array_header) + u64::from(layout.reference) * len;
    bytes.div_ceil(u64::from(layout.alignment)) * u64::from(layout.alignment)
}

/// Empty collections and their bytes, other collections and their unused bytes, collided entries.
fn naive_collections(list: &[One], heap: &Heap) -> [u64; 5] {
    let by_id: BTreeMap<u64, &One> = list.iter().map(|o| (heap.id(o.object).0, o)).collect();
    let inner: BTreeSet<u64> = list
        .iter()
        .filter(|o| o.class == "java.util.HashSet")
        .map(|o| o.refers("map"))
        .collect();
    let mut sums = [0; 5];
    for one in list {
        let (outer, core) = match one.class.as_str() {
            "java.util.ArrayList" => (0, one),
            "java.util.HashMap" if !inner.contains(&heap.id(one.object).0) => (0, one),
            "java.util.HashSet" => (one.shallow, by_id[&one.refers("map")]),
            _ => continue,
        };
        let is_list = core.class == "java.util.ArrayList";
        let backing = by_id[&core.refers(if is_list { "elementData" } else { "table" })];
        let size = core.int("size");
        let needed = match size {
            n if is_list => n,
            n => (4 * n).div_ceil(3).next_power_of_two(),
        };
        if size == 0 {
            sums[0] += 1;
            sums[1] += outer + core.shallow + backing.shallow;
        } else {
            let unused = backing.shallow.saturating_sub(array(heap, needed));
            sums[2] += u64::from(unused > 0);
            sums[3] += unused;
        }
        if !is_list {
            let used = backing.elements.iter().filter(|e| **e != 0).count() as u64;
            sums[4] += size.saturating_sub(used);
        }
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_figure_is_the_naive_count(
        list in makes(), wide in any::<bool>(), rooted in proptest::collection::vec(any::<bool>(), 1..5),
        all in any::<bool>(), first in proptest::option::of(0usize..40),
    ) {
        let ids = if wide { IdSize::Eight } else { IdSize::Four };
        let case = case(&list, ids, &rooted);
        let heap = &case.heap;
        // A part is what some of the objects refer to.
        let part = first.map(|first| referred(heap, (0..heap.len()).map(ObjIdx).skip(first).step_by(3)));
        let scope = match &part {
            Some(part) => Scope::Set { name: "a part".to_owned(), all: true, objects: Arc::new(Selection::of(heap, part.iter().copied())) },
            None => Scope::of_all(all),
        };
        let options = WasteOptions { scope, top: None, sites: true, ..WasteOptions::default() };
        let got = waste(heap, &options, &Control::quiet()).unwrap();
        prop_assert_eq!(got.set.as_deref(), part.as_ref().map(|_| "a part"));
        let list = objects(heap, |o| part.as_ref().map_or(all || heap.is_reachable(o), |part| part.contains(&o)));
        prop_assert_eq!(got.shallow.0, list.iter().map(|o| o.shallow).sum::<u64>());

        // Strings: by text; each owns its array.
        let texts: Vec<&One> = list.iter().filter(|o| o.class == "java.lang.String").collect();
        let owned: BTreeSet<u64> = texts.iter().map(|o| o.refers("value")).collect();
        let mut seen = BTreeSet::new();
        let mut want = (0, 0);
        for one in &texts {
            if !seen.insert(heap.string(one.object).unwrap()) {
                let array = heap.find(hprof::ObjectId(one.refers("value"))).unwrap();
                want = (want.0 + 1, want.1 + one.shallow + heap.shallow(array).0);
            }
        }
        prop_assert_eq!(kind(&got, "duplicate_strings"), want);

        let arrays = list.iter().filter(|o| o.class.ends_with("[]"));
        let arrays = arrays.filter(|o| !owned.contains(&heap.id(o.object).0));
        prop_assert_eq!(kind(&got, "duplicate_arrays"), copies(arrays));
        let others = ["Pair", "Count", "java.util.ArrayList", "java.util.HashMap", "java.util.HashSet"];
        let equal = list.iter().filter(|o| others.contains(&o.class.as_str()));
        let equal = equal.filter(|o| o.fields.iter().any(|f| !One::is_zero(f.1)));
        prop_assert_eq!(kind(&got, "equal_objects"), copies(equal));
        let boxes = list.iter().filter(|o| o.class == "java.lang.Integer");
        prop_assert_eq!(kind(&got, "duplicate_boxed_numbers"), copies(boxes));

        // A field that is never null and always a box: the boxes are one instance's or the shared one.
        let counts: Vec<&One> = list.iter().filter(|o| o.class == "Count").collect();
        let numbers: Vec<ObjIdx> = counts
            .iter()
            .filter_map(|o| heap.find(hprof::ObjectId(o.refers("number"))))
            .collect();
        let mut want = (0, 0);
        if numbers.len() == counts.len() {
            let own = counts.iter().zip(&numbers).filter(|(o, n)| {
                heap.is_reachable(o.object) && !is_rooted(heap, **n)
            });
            want = own.fold((0, 0), |sum, (_, n)| (sum.0 + 1, sum.1 + heap.shallow(*n).0));
        }
        prop_assert_eq!(kind(&got, "boxed_fields"), want);

        // What the stacks waste is what the kinds waste; here all have the same.
        for name in SITE_KINDS {
            let sites = got.sites.iter().filter(|s| s.kind == name);
            prop_assert_eq!(sites.map(|s| s.wasted.0).sum::<u64>(), kind(&got, name).1, "{}", name);
        }

        // Who holds the copies: only lists, pairs and arrays refer here, to objects that are no copies.
        prop_assert!(got.holders.iter().all(|h| h.count > 0));

        let [empty, empty_bytes, filled, unused, collided] = naive_collections(&list, heap);
        prop_assert_eq!(kind(&got, "empty_collections"), (empty, empty_bytes));
        prop_assert_eq!(kind(&got, "unused_slots"), (filled, unused));
        prop_assert_eq!(got.collections.rows.iter().map(|r| r.collided).sum::<u64>(), collided);
        for row in &got.collections.rows {
            prop_assert_eq!(row.sizes.iter().sum::<u64>(), row.objects);
        }

        // Fields that are never set.
        let mut fields: BTreeMap<(&str, &str), (u64, bool)> = BTreeMap::new();
        for one in &list {
            for (name, value) in &one.fields {
                let declared = match name.as_str() {
                    "referent" => "java.lang.ref.Reference",
                    _ => &one.class,
                };
                let sum = fields.entry((declared, name)).or_default();
                *sum = (sum.0 + 1, sum.1 || !One::is_zero(*value));
            }
        }
        let want: BTreeMap<(String, String), u64> = fields.into_iter().filter(|(_, s)| !s.1)
            .map(|((c, f), s)| ((c.to_owned(), f.to_owned()), s.0)).collect();
        let zero: BTreeMap<(String, String), u64> = got.zero_fields.iter()
            .map(|f| ((f.class.clone(), f.field.clone()), f.instances)).collect();
        prop_assert_eq!(zero, want);

        check_contents(&got, &list)?;
        check_references(&got, &list, heap)?;
    }

    #[test]
    fn a_search_finds_what_reading_every_string_finds(list in makes(), wide in any::<bool>()) {
        let ids = if wide { IdSize::Eight } else { IdSize::Four };
        let case = case(&list, ids, &[true]);
        let options = StringOptions { scope: Scope::Reachable, top: None, holders: true };
        for pattern in ["^$", "a|e", "\u{30c6}", "nothing"] {
            let pattern = regex::Regex::new(pattern).unwrap();
            let found = find(&case.heap, &pattern, &options, &Control::quiet()).unwrap();
            let want: Vec<String> = objects(&case.heap, |o| case.heap.is_reachable(o)).iter()
                .filter_map(|o| case.heap.string(o.object))
                .filter(|t| pattern.is_match(t)).collect();
            let got: Vec<String> = found.rows.into_iter().map(|r| r.text).collect();
            prop_assert_eq!(got, want);
        }
        let found = duplicates(&case.heap, &options, &Control::quiet()).unwrap();
        prop_assert_eq!(found.rows.iter().map(|r| r.wasted.0).sum::<u64>(), found.wasted.0);

        // The questions of their own give the same answers as the walk that finds waste of all kinds.
        let all = WasteOptions { top: None, ..WasteOptions::default() };
        let waste = waste(&case.heap, &all, &Control::quiet()).unwrap();
        let options = StringOptions { holders: false, ..options };
        let alone = duplicates(&case.heap, &options, &Control::quiet()).unwrap();
        prop_assert_eq!(alone, waste.strings);
        let options = CollectionOptions { scope: Scope::Reachable, top: None };
        let alone = collections(&case.heap, &options, &Control::quiet()).unwrap();
        prop_assert_eq!(alone, waste.collections);
    }
}

/// 500 records that all refer to one of two equal strings, in two fields, and an array that refers to it twice.
#[test]
fn a_copy_counts_once_for_each_field_that_holds_it() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let refs = b.object_array_class();
    let strings = [0, 1].map(|_| b.string(&"text".repeat(100)));
    b.root(Root::JniGlobal { reference: 1 }, strings[0]);
    let fields = [("city", Type::Object), ("home", Type::Object)];
    // Two loaders define the class.
    for _ in 0..2 {
        let record = b.class("Record", object, &fields);
        for _ in 0..250 {
            let one = b.instance(record, &[Value::Object(strings[1]); 2]);
            b.root(Root::JniGlobal { reference: 1 }, one);
        }
    }
    let array = b.object_array(refs, &[strings[1]; 2]);
    b.root(Root::JniGlobal { reference: 1 }, array);
    let heap = open(&b);
    let found = waste(&heap, &WasteOptions::default(), &Control::quiet()).unwrap();
    let wasted = found.strings.wasted.0;
    assert!(wasted > 400 && kind(&found, "duplicate_strings") == (1, wasted));
    let mut holders: Vec<_> = found
        .holders
        .iter()
        .map(|h| (&*h.field, h.count, h.bytes.0))
        .collect();
    holders.sort_unstable();
    let want = [
        ("Record.city", 500, wasted),
        ("Record.home", 500, wasted),
        ("java.lang.Object[]", 2, wasted),
    ];
    assert_eq!(holders, want);
}

#[test]
fn long_equal_texts_are_duplicates() {
    let mut b = Builder::new(IdSize::Eight);
    b.java_lang_object();
    let long = "x".repeat(70_000);
    let other = format!("{}y", &long[1..]);
    for text in [&long, &other, &long, "short", "short"] {
        let string = b.string(text);
        b.root(Root::Unknown, string);
    }
    // Equal to a text, but owned by no string.
    let array = b.primitive_array(Elements::Byte(long.clone().into_bytes()));
    b.root(Root::Unknown, array);
    let heap = open(&b);
    let options = StringOptions {
        scope: Scope::Reachable,
        top: None,
        holders: false,
    };
    let found = duplicates(&heap, &options, &Control::quiet()).expect("an answer");
    let rows: Vec<(u64, u64)> = found.rows.iter().map(|r| (r.length, r.count)).collect();
    assert_eq!((found.strings, found.distinct), (5, 3));
    assert_eq!(rows, [(70_000, 2), (5, 2)]);
}

fn check_contents(got: &Waste, list: &[One]) -> Result<(), TestCaseError> {
    let zero = |o: &&One| !o.data.is_empty() && o.data.iter().all(|b| *b == 0);
    let arrays = || list.iter().filter(|o| o.element.is_some());
    let want = arrays().filter(zero).map(|o| o.shallow).sum::<u64>();
    prop_assert_eq!(
        kind(got, "zero_arrays"),
        (arrays().filter(zero).count() as u64, want)
    );
    let refs: Vec<&One> = list
        .iter()
        .filter(|o| o.class == "java.lang.Object[]")
        .collect();
    let nulls = |o: &&One| !o.elements.is_empty() && o.elements.iter().all(|e| *e == 0);
    let all_null: Vec<&One> = refs.iter().copied().filter(nulls).collect();
    prop_assert_eq!(got.object_arrays.all_null, all_null.len() as u64);
    prop_assert_eq!(got.object_arrays.objects, refs.len() as u64);
    for row in &got.contents {
        let of_type: Vec<&One> = arrays().filter(|o| o.class == row.class).collect();
        let width = of_type[0].element.map_or(0, |e| e.size(8));
        prop_assert_eq!(row.objects, of_type.len() as u64);
        let mut want = [0u64; 3];
        for one in of_type.iter().filter(|o| !zero(o) && o.len > 0) {
            let values: Vec<i64> = one
                .data
                .chunks(width)
                .map(|c| match (width, row.class.as_str()) {
                    (1, _) => i64::from(c[0]),
                    (2, "char[]") => i64::from(u16::from_be_bytes([c[0], c[1]])),
                    _ => i64::from(i32::from_be_bytes([c[0], c[1], c[2], c[3]])),
                })
                .collect();
            let tail = values.iter().rev().take_while(|v| **v == 0).count();
            if tail >= values.len().div_ceil(2) {
                want[0] += 1;
            } else if values.len() > 1 && values.iter().all(|v| *v == values[0]) {
                want[1] += 1;
            }
            let fits = |v: &i64| match row.class.as_str() {
                "char[]" => *v < 256,
                "int[]" => (-32768..32768).contains(v),
                _ => false,
            };
            want[2] += u64::from(values.iter().all(fits));
        }
        prop_assert_eq!(
            [row.zero_tail, row.constant, row.narrow],
            want,
            "{}",
            row.class
        );
    }
    Ok(())
}

fn check_references(got: &Waste, list: &[One], heap: &Heap) -> Result<(), TestCaseError> {
    let entries: Vec<&One> = list
        .iter()
        .filter(|o| o.class == "java.util.WeakHashMap$Entry")
        .collect();
    prop_assert_eq!(got.references.references, [0, entries.len() as u64, 0, 0]);
    let cleared = entries.iter().filter(|o| o.refers("referent") == 0).count();
    prop_assert_eq!(got.references.cleared, cleared as u64);
    // The values made here refer to nothing, so a value holds its key only by being it.
    let held: Vec<&&One> = entries
        .iter()
        .filter(|o| o.refers("referent") != 0 && o.refers("referent") == o.refers("value"))
        .collect();
    let bytes = held.iter().map(|o| heap.retained(o.object).0).sum::<u64>();
    prop_assert_eq!(
        kind(got, "weak_maps_held_by_values"),
        (held.len() as u64, bytes)
    );
    Ok(())
}

#[test]
fn a_referent_that_its_reference_also_holds_in_another_field_is_not_only_weakly_held() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let fields = [("referent", Type::Object)];
    let reference = b.class("java/lang/ref/Reference", object, &fields);
    let weak = b.class("java/lang/ref/WeakReference", reference, &[]);
    let entry = b.class("app/Entry", weak, &[("value", Type::Object)]);
    for is_value in [true, true, false] {
        let key = b.instance(object, &[]);
        let value = if is_value { key } else { 0 };
        let entry = b.instance(entry, &[value, key].map(Value::Object));
        b.root(Root::Unknown, entry);
    }
    let heap = open(&b);
    let got = waste(&heap, &WasteOptions::default(), &Control::quiet()).expect("an answer");
    let rows: Vec<(u64, u64)> = got
        .references
        .rows
        .iter()
        .map(|r| (r.references, r.only))
        .collect();
    assert_eq!(rows, [(3, 1)]);
}

#[test]
fn entries_of_one_bucket_count_once_each() {
    const ENTRIES: u64 = 5;
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let fields = [("referent", Type::Object)];
    let reference = b.class("java/lang/ref/Reference", object, &fields);
    let weak = b.class("java/lang/ref/WeakReference", reference, &[]);
    let fields = [("value", Type::Object), ("next", Type::Object)];
    let entry = b.class("java/util/WeakHashMap$Entry", weak, &fields);
    let mut next = 0;
    for _ in 0..ENTRIES {
        let key = b.instance(object, &[]);
        next = b.instance(entry, &[key, next, key].map(Value::Object));
    }
    b.root(Root::Unknown, next);
    let heap = open(&b);
    let got = waste(&heap, &WasteOptions::default(), &Control::quiet()).expect("an answer");
    let all = heap.find(hprof::ObjectId(next)).expect("the first entry");
    assert_eq!(got.weak_maps.entries, ENTRIES);
    assert_eq!(got.weak_maps.retained, heap.retained(all));
    assert_eq!(got.weak_maps.rows[0].retained, heap.retained(all));
}

#[test]
fn sums_of_sizes_that_no_heap_can_have_do_not_wrap() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let fields = [("table", Type::Object), ("baseCount", Type::Long)];
    let map = b.class("java/util/concurrent/ConcurrentHashMap", object, &fields);
    let fields = [("capacity", Type::Long)];
    let buffer = b.class("java/nio/DirectByteBuffer", object, &fields);
    let refs = b.object_array_class();
    for _ in 0..4 {
        let table = b.object_array(refs, &[0; 4]);
        let map = b.instance(map, &[Value::Object(table), Value::Long(i64::MAX)]);
        let buffer = b.instance(buffer, &[Value::Long(i64::MAX)]);
        b.root(Root::Unknown, map);
        b.root(Root::Unknown, buffer);
    }
    let heap = open(&b);
    let got = waste(&heap, &WasteOptions::default(), &Control::quiet()).expect("an answer");
    assert_eq!(got.native.allocated_bytes.0, u64::MAX);
    let row = &got.collections.rows[0];
    assert_eq!((row.elements, row.collided), (u64::MAX, u64::MAX));
}
