//! With a memory limit the answers are the same, or the least limit that is sufficient is reported.

use heap_analysis::collections::stats::{CollectionOptions, collections};
use heap_analysis::paths::Exclusions;
use heap_analysis::paths::merged::{EXACT_VISITS, MergedOptions, to_objects};
use heap_analysis::sets::scope::Scope;
use heap_analysis::sets::selection::Selection;
use heap_analysis::strings::{StringOptions, duplicates, find};
use heap_analysis::waste::{WasteOptions, waste};
use heap_graph::{ClassIdx, Control, Heap, HeapError, Options};
use serde::Serialize;
use std::fmt::Debug;
use testkit::dump::{Elements, Heap as Builder, IdSize, Root, Type, Value};

/// Strings of which some are equal, some are long, and two share an array; lists and sets.
fn dump() -> Builder {
    let mut b = Builder::new(IdSize::Eight).segments_of(512);
    let object = b.java_lang_object();
    let refs = b.object_array_class();
    let fields = [("size", Type::Int), ("elementData", Type::Object)];
    let list = b.class("java/util/ArrayList", object, &fields);
    let fields = [("size", Type::Int), ("table", Type::Object)];
    let map = b.class("java/util/HashMap", object, &fields);
    let set = b.class("java/util/HashSet", object, &[("map", Type::Object)]);
    let holder = b.class("Holder", object, &[("name", Type::Object)]);
    let long = "x".repeat(70_000);
    for n in 0..300 {
        let text = match n % 50 {
            0 => long.clone(),
            1 => format!("\u{30c6}{}", n % 3),
            k => format!("text {}", k * n % 37),
        };
        let string = b.string(&text);
        let kept = b.instance(holder, &[Value::Object(string)]);
        b.root(Root::Unknown, kept);
        let array = b.object_array(refs, &vec![string; n % 7]);
        let size = Value::Int((n % 5) as i32);
        let made = b.instance(
            if n % 2 == 0 { map } else { list },
            &[size, Value::Object(array)],
        );
        let made = match n % 4 {
            0 => b.instance(set, &[Value::Object(made)]),
            _ => made,
        };
        b.root(Root::Unknown, made);
    }
    let array = b.primitive_array(Elements::Byte(long.into_bytes()));
    b.root(Root::Unknown, array);
    b
}

/// Many equal objects and nothing else.
fn equal_objects() -> Builder {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let point = b.class("Point", object, &[("x", Type::Int)]);
    for n in 0..3000 {
        let made = b.instance(point, &[Value::Int(1 + n % 7)]);
        b.root(Root::Unknown, made);
    }
    b
}

/// A list, and an array that holds other nodes of its class.
fn nodes() -> Builder {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let refs = b.object_array_class();
    let node = b.class("Node", object, &[("next", Type::Object)]);
    let mut first = 0;
    for _ in 0..3000 {
        first = b.instance(node, &[Value::Object(first)]);
    }
    b.root(Root::Unknown, first);
    let held: Vec<u64> = (0..500)
        .map(|_| b.instance(node, &[Value::Object(0)]))
        .collect();
    let array = b.object_array(refs, &held);
    b.root(Root::Unknown, array);
    b
}

/// Compares the answers with a smaller limit each time, until some were too small. What an error names must be enough.
fn same_with_less<T: Debug + PartialEq + Serialize>(
    dump: &Builder,
    answer: impl Fn(&Heap) -> Result<T, HeapError>,
) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), dump.bytes()).expect("writing the dump");
    let open = |memory| {
        let options = Options {
            no_index: true,
            threads: 2,
            analysis_memory: memory,
            ..Options::default()
        };
        Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump")
    };
    let want = answer(&open(None)).expect("an answer without a limit");
    let mut memory = 1 << 20;
    let mut refused = 0;
    while refused < 4 {
        let named = match answer(&open(Some(memory))) {
            Ok(got) => {
                assert_eq!(got, want, "with {memory} bytes");
                None
            }
            Err(HeapError::Memory { limit, least, .. }) => {
                assert!(limit == memory && least > memory, "{limit} and {least}");
                Some(least)
            }
            Err(other) => panic!("with {memory} bytes: {other}"),
        };
        if let Some(least) = named {
            let got = answer(&open(Some(least))).expect("an answer with the limit of the error");
            assert_eq!(got, want, "with {least} bytes");
            refused += 1;
        }
        memory /= 2;
        assert!(memory > 0, "never too little");
    }
}

#[test]
fn equal_strings_are_the_same_in_parts() {
    for (top, holders) in [(None, true), (Some(3), true), (Some(3), false)] {
        let options = StringOptions {
            scope: Scope::Reachable,
            top,
            holders,
        };
        same_with_less(&dump(), |heap| {
            duplicates(heap, &options, &Control::quiet())
        });
    }
}

#[test]
fn a_search_finds_the_same_in_parts() {
    let pattern = regex::Regex::new("1|x$|\u{30c6}").expect("a pattern");
    for top in [None, Some(7)] {
        let options = StringOptions {
            scope: Scope::Reachable,
            top,
            holders: false,
        };
        same_with_less(&dump(), |heap| {
            find(heap, &pattern, &options, &Control::quiet())
        });
    }
}

#[test]
fn waste_is_the_same_or_refused() {
    for sites in [false, true] {
        let options = WasteOptions {
            sites,
            ..WasteOptions::default()
        };
        same_with_less(&dump(), |heap| waste(heap, &options, &Control::quiet()));
    }
}

#[test]
fn waste_of_equal_objects_is_the_same_or_refused() {
    let options = WasteOptions::default();
    same_with_less(&equal_objects(), |heap| {
        waste(heap, &options, &Control::quiet())
    });
}

#[test]
fn collections_are_the_same_or_refused() {
    let options = CollectionOptions::default();
    same_with_less(&dump(), |heap| {
        collections(heap, &options, &Control::quiet())
    });
}

#[test]
fn the_tree_of_paths_is_the_same_or_refused() {
    for (depth, exact) in [(24, EXACT_VISITS), (24, 1000), (100_000, EXACT_VISITS)] {
        let options = MergedOptions {
            max_paths: usize::MAX,
            depth,
            top: 5,
            exclude: Exclusions::default(),
            exact,
        };
        same_with_less(&nodes(), |heap| {
            let class = heap.classes().iter().position(|c| c.name == "Node");
            let class = ClassIdx(class.expect("the class") as u32);
            let objects = Selection::of(heap, heap.objects_of(class));
            to_objects(heap, "Node", &objects, &options, &Control::quiet())
        });
    }
}
