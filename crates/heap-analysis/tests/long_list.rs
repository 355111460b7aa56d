//! Answers about the nodes of a long list: each of them takes a few steps per node, not per node of each path.

use heap_analysis::objects::object::{ObjectOptions, details};
use heap_analysis::paths::Exclusions;
use heap_analysis::paths::chain::CHAIN_END;
use heap_analysis::paths::merged::{EXACT_VISITS, MergedOptions, to_objects};
use heap_analysis::sets::selection::Selection;
use heap_graph::{ClassIdx, Control, Heap, Options};
use hprof::ObjectId;
use std::sync::atomic::{AtomicU64, Ordering};
use testkit::dump::{self, ClassSpec, IdSize, Root, Type, Value};

const NODES: u64 = 20_000;

/// A list that a static field holds, and the ids of its first and last node.
fn list() -> (Heap, [ObjectId; 2], tempfile::NamedTempFile) {
    let mut heap = dump::Heap::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let node = heap.class("Node", object, &[("next", Type::Object)]);
    let last = heap.instance(node, &[Value::Object(0)]);
    let mut first = last;
    for _ in 1..NODES {
        first = heap.instance(node, &[Value::Object(first)]);
    }
    let holder = heap.class_spec(ClassSpec {
        name: "Holder",
        super_class: object,
        statics: vec![("LIST", Value::Object(first))],
        ..ClassSpec::default()
    });
    heap.root(Root::StickyClass, holder);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), heap.bytes()).expect("writing the dump");
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump");
    (heap, [ObjectId(first), ObjectId(last)], file)
}

#[test]
fn paths_to_all_nodes_are_merged_in_a_few_steps_per_node() {
    let (heap, _, _file) = list();
    let class = heap.classes().iter().position(|c| c.name == "Node");
    let class = ClassIdx(class.expect("the class") as u32);
    let objects = Selection::of(&heap, heap.objects_of(class));
    let options = MergedOptions {
        max_paths: usize::MAX,
        depth: 5,
        top: 10,
        exclude: Exclusions::default(),
        exact: EXACT_VISITS,
    };
    // Progress is reported every 1,024 steps.
    let reports = AtomicU64::new(0);
    let count = |_| {
        reports.fetch_add(1, Ordering::Relaxed);
    };
    let control = Control {
        progress: &count,
        ..Control::quiet()
    };
    let merged = to_objects(&heap, "Node", &objects, &options, &control).expect("an answer");
    assert_eq!((merged.followed, merged.without_path), (NODES, 0));
    let targets: Vec<u64> = merged.nodes.iter().map(|n| n.targets).collect();
    assert_eq!(targets, [NODES, NODES, NODES - 1, NODES - 2, NODES - 3]);
    let is_target: Vec<bool> = merged.nodes.iter().map(|n| n.is_target).collect();
    assert_eq!(is_target, [false, true, true, true, true]);
    let steps = reports.load(Ordering::Relaxed) * 1024;
    assert!(steps < 100 * NODES, "{steps} steps");
}

#[test]
fn a_long_way_to_an_object_shows_both_its_ends() {
    let (heap, [first, last], _file) = list();
    let at = |id| heap.find(id).expect("an object");
    let options = ObjectOptions {
        inbound: false,
        ..ObjectOptions::default()
    };
    let found = details(&heap, at(last), &options).expect("an answer");
    let ids: Vec<ObjectId> = found.dominators.iter().map(|s| s.object.object.0).collect();
    assert_eq!(ids.len(), 2 * CHAIN_END);
    assert_eq!(found.dominators[0].object.value.as_deref(), Some("Holder"));
    assert_eq!((ids[1], ids[ids.len() - 1]), (first, last));
    // The class is the step above the nodes.
    assert_eq!(found.omitted_dominators, NODES + 1 - 2 * CHAIN_END as u64);

    let short = details(&heap, at(first), &options).expect("an answer");
    assert_eq!((short.dominators.len(), short.omitted_dominators), (2, 0));
}
