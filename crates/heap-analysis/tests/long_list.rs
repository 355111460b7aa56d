//! Answers about the nodes of a long list: each of them takes a few steps per node, not per node of each path.

use crate::program::Program;
use heap_analysis::objects::object::{ObjectOptions, details};
use heap_analysis::paths::Exclusions;
use heap_analysis::paths::chain::CHAIN_END;
use heap_analysis::paths::merged::{EXACT_VISITS, MergedOptions, MergedPaths, to_objects};
use heap_analysis::sets::selection::Selection;
use heap_graph::{ClassIdx, Control, Heap};
use hprof::ObjectId;
use std::sync::atomic::{AtomicU64, Ordering};
use testkit::dump::Value;

const NODES: u64 = 20_000;

/// A list that a static field holds, and the ids of its first and last node.
fn list() -> (Heap, [ObjectId; 2]) {
    let mut program = Program::new();
    let node = program.class("Node", &["next"]);
    let last = program.heap.instance(node, &[Value::Object(0)]);
    let mut first = last;
    for _ in 1..NODES {
        first = program.heap.instance(node, &[Value::Object(first)]);
    }
    program.owner("Holder", &[("LIST", first)]);
    (program.open(), [ObjectId(first), ObjectId(last)])
}

/// The merged paths to all objects of a class, of which the shortest ones are searched until so many objects were visited.
fn merged(heap: &Heap, class: &str, exact: usize, control: &Control<'_>) -> MergedPaths {
    let found = heap.classes().iter().position(|c| c.name == class);
    let found = ClassIdx(found.expect("the class") as u32);
    let objects = Selection::of(heap, heap.objects_of(found));
    let options = MergedOptions {
        max_paths: usize::MAX,
        depth: 5,
        top: 10,
        exclude: Exclusions::default(),
        exact,
    };
    to_objects(heap, class, &objects, &options, control).expect("an answer")
}

#[test]
fn paths_to_all_nodes_are_merged_in_a_few_steps_per_node() {
    let (heap, _) = list();
    // Progress is reported every 1,024 steps.
    let reports = AtomicU64::new(0);
    let count = |_| {
        reports.fetch_add(1, Ordering::Relaxed);
    };
    let control = Control {
        progress: &count,
        ..Control::quiet()
    };
    let merged = merged(&heap, "Node", EXACT_VISITS, &control);
    assert_eq!((merged.followed, merged.without_path), (NODES, 0));
    let targets: Vec<u64> = merged.nodes.iter().map(|n| n.targets).collect();
    assert_eq!(targets, [NODES, NODES, NODES, NODES, NODES - 1]);
    let is_target: Vec<bool> = merged.nodes.iter().map(|n| n.is_target).collect();
    assert_eq!(is_target, [false, false, false, true, true]);
    let steps = reports.load(Ordering::Relaxed) * 1024;
    assert!(steps < 100 * NODES, "{steps} steps");
}

#[test]
fn a_node_in_the_middle_of_a_doubly_linked_list_has_a_path() {
    let mut program = Program::new();
    let node = program.class("Node", &["next", "previous"]);
    let middle = program.class("Middle", &["next", "previous"]);
    let nodes: Vec<u64> = (0..NODES)
        .map(|n| {
            let class = if n == NODES / 2 { middle } else { node };
            let none = [Value::Object(0), Value::Object(0)];
            program.heap.instance(class, &none)
        })
        .collect();
    for pair in nodes.windows(2) {
        program.heap.set_reference(pair[0], 0, pair[1]);
        program.heap.set_reference(pair[1], 1, pair[0]);
    }
    let ends = [("FIRST", nodes[0]), ("LAST", nodes[nodes.len() - 1])];
    program.owner("Holder", &ends);
    let heap = program.open();
    // Searches end long before they reach an end of the list, and no dominator holds the node directly.
    let merged = merged(&heap, "Middle", 1000, &Control::quiet());
    assert_eq!((merged.followed, merged.without_path), (1, 0));
    // Below the loader and its list of classes.
    assert_eq!(merged.nodes[2].object.value.as_deref(), Some("Holder"));
}

#[test]
fn a_long_way_to_an_object_shows_both_its_ends() {
    let (heap, [first, last]) = list();
    let at = |id| heap.find(id).expect("an object");
    let options = ObjectOptions {
        inbound: false,
        ..ObjectOptions::default()
    };
    let found = details(&heap, at(last), &options).expect("an answer");
    let ids: Vec<ObjectId> = found.dominators.iter().map(|s| s.object.object.0).collect();
    assert_eq!(ids.len(), 2 * CHAIN_END);
    // The loader, its list of classes and the class are above the nodes.
    assert_eq!(found.dominators[2].object.value.as_deref(), Some("Holder"));
    assert_eq!((ids[3], ids[ids.len() - 1]), (first, last));
    assert_eq!(found.omitted_dominators, NODES + 3 - 2 * CHAIN_END as u64);

    let short = details(&heap, at(first), &options).expect("an answer");
    assert_eq!((short.dominators.len(), short.omitted_dominators), (4, 0));
}
