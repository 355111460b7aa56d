//! Whatever follows what a dump holds ends when it is cancelled: at the first report of its progress.

use heap_analysis::collections::contents::contents;
use heap_analysis::collections::held::{held, size};
use heap_analysis::compare::diff::{DiffOptions, diff};
use heap_analysis::leaks::{LeakOptions, find};
use heap_analysis::pace::Pace;
use heap_analysis::paths::merged::{EXACT_VISITS, MergedOptions, to_objects};
use heap_analysis::paths::{Exclusions, PathOptions, to_roots};
use heap_analysis::sets::selection::Selection;
use heap_analysis::tables::class_paths::{ClassPathOptions, class_paths};
use heap_graph::{Control, Heap, HeapError, Options, Progress};
use hprof::ObjectId;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use testkit::dump::{Heap as Builder, IdSize, Root, Type, Value};

/// Elements of a long array.
const LONG: u64 = 5000;

/// Asserts that a question is answered, and that it ends when it is cancelled on the way.
fn check<T: std::fmt::Debug>(what: &str, ask: impl Fn(&Control<'_>) -> Result<T, HeapError>) -> T {
    let answer = ask(&Control::quiet()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let cancel = AtomicBool::new(false);
    let stopped = ask(&Control {
        progress: &|_| cancel.store(true, Ordering::Relaxed),
        cancel: &cancel,
    });
    assert!(cancel.load(Ordering::Relaxed), "{what} reports nothing");
    assert!(
        matches!(stopped, Err(HeapError::Cancelled)),
        "{what}: {stopped:?}"
    );
    answer
}

fn open(dump: &Builder) -> (tempfile::NamedTempFile, Heap) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), dump.bytes()).expect("a dump");
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("a heap");
    (file, heap)
}

#[test]
fn what_follows_references_ends_when_it_is_cancelled() {
    use Type::{Int, Object};
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let array = b.object_array_class();
    let node = b.class("Node", object, &[("next", Object)]);
    let list = [("elementData", Object), ("size", Int)];
    let list = b.class("java.util.ArrayList", object, &list);
    let entry = [("key", Object), ("value", Object), ("next", Object)];
    let entry = b.class("java.util.HashMap$Node", object, &entry);
    let map = b.class("java.util.HashMap", object, &[("table", Object)]);
    let last = b.instance(node, &[Value::Object(0)]);
    let first = b.instance(node, &[Value::Object(last)]);
    let data = b.object_array(array, &[first, last]);
    let list = b.instance(list, &[Value::Object(data), Value::Int(2)]);
    let values = [first, last, 0].map(Value::Object);
    let held = b.instance(entry, &values);
    let table = b.object_array(array, &[held]);
    let map = b.instance(map, &[Value::Object(table)]);
    for root in [first, list, map] {
        b.root(Root::StickyClass, root);
    }
    for _ in 0..60 {
        let lone = b.instance(node, &[Value::Object(0)]);
        b.root(Root::StickyClass, lone);
    }
    let (_file, heap) = open(&b);
    let at = |id| heap.find(ObjectId(id)).expect("an object");
    let whole = ClassPathOptions::default();
    let tree = check("class paths", |c| class_paths(&heap, &whole, c));
    assert_eq!(tree.total, heap.summary().reachable_shallow);
    // Nothing is so large that it is a suspect of its own, but the nodes are together.
    let options = LeakOptions {
        threshold: 50.0,
        deep: true,
    };
    let found = check("suspects", |c| find(&heap, &options, c));
    assert_eq!(found.suspects.len(), 1);
    let options = PathOptions {
        count: 1,
        exclude: Exclusions::default(),
    };
    let paths = check("paths", |c| to_roots(&heap, at(last), &options, c));
    assert_eq!(paths.paths[0].steps.len(), 2);
    let options = MergedOptions {
        max_paths: 10,
        depth: 10,
        top: 10,
        exclude: Exclusions::default(),
        exact: EXACT_VISITS,
    };
    let set = Selection::of(&heap, [at(last)]);
    let merged = check("merged paths", |c| {
        to_objects(&heap, "last", &set, &options, c)
    });
    assert_eq!(merged.nodes.len(), 2);
    let in_list = check("a list", |c| contents(&heap, at(list), 10, c));
    assert_eq!(in_list.rows.len(), 2);
    let in_map = check("a map", |c| contents(&heap, at(map), 10, c));
    assert_eq!(in_map.rows.len(), 1);
    let twice = ["before", "after"].map(|name| (name.to_owned(), &heap));
    let options = DiffOptions::default();
    let changes = check("a comparison", |c| diff(&twice, &options, c));
    assert_eq!(changes.dumps.len(), 2);
}

#[test]
fn a_long_array_of_a_collection_is_read_in_steps_and_no_further_than_the_limit() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let array = b.object_array_class();
    let element = b.instance(object, &[]);
    let data = b.object_array(array, &[element; LONG as usize]);
    let fields = [("array", Type::Object)];
    let list = b.class("java.util.concurrent.CopyOnWriteArrayList", object, &fields);
    let list = b.instance(list, &[Value::Object(data)]);
    b.root(Root::StickyClass, list);
    let (_file, heap) = open(&b);
    let long = heap.find(ObjectId(list)).expect("the list");
    let in_long = check("a list with a long array", |c| contents(&heap, long, 10, c));
    assert_eq!((in_long.rows.len(), in_long.more), (10, true));
    let count = check("its size", |c| {
        size(&heap, long, &mut Pace::new(c, "size", 0))
    });
    assert_eq!(count, Some(LONG));
    let steps = |limit: usize| {
        let reports = AtomicU64::new(0);
        let cancel = AtomicBool::new(false);
        let control = Control {
            progress: &|progress: Progress| {
                reports.fetch_max(progress.done, Ordering::Relaxed);
            },
            cancel: &cancel,
        };
        let mut pace = Pace::new(&control, "long", u64::MAX);
        held(&heap, long, limit, &mut pace).expect("read");
        reports.into_inner()
    };
    assert_eq!(steps(10), 0, "no more is read than the limit");
    assert!(
        steps(usize::MAX) > LONG - 2000,
        "a long array is read in steps"
    );
}
