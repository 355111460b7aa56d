//! Leak suspects in trees and lists, and signatures that survive what grows and changes.

use crate::program::Program;
use heap_analysis::compare::baseline::Baseline;
use heap_analysis::compare::check::{Rules, check};
use heap_analysis::leaks::{LeakOptions, find};
use heap_graph::{Control, Heap};

/// A tree of sessions, and some strings of text in a second class.
fn sessions(count: usize) -> Heap {
    let mut program = Program::new();
    let item = program.class("Session", &["data"]);
    let items = program.items(item, count);
    let keys = items.into_iter().enumerate();
    let entries: Vec<_> = keys.map(|(k, item)| (format!("key {k}"), item)).collect();
    let map = program.tree(&entries);
    program.owner("Registry", &[("MAP", map)]);
    program.open()
}

#[test]
fn a_tree_accumulates_in_its_topmost_entry() {
    let heap = sessions(900);
    let leaks = find(&heap, &LeakOptions::default(), &Control::quiet()).unwrap();
    let suspect = &leaks.suspects[0];
    assert_eq!(suspect.holder.as_deref(), Some("Registry.MAP"));
    let point = suspect.accumulation_point.as_ref().unwrap();
    assert_eq!(point.class, "java.util.TreeMap$Entry");
    let entries = suspect
        .path
        .iter()
        .filter(|s| s.object.class == point.class);
    assert_eq!(entries.count(), 1);
    let class = point.of_class.as_ref().unwrap();
    assert_eq!(
        (class.class.as_str(), class.objects),
        ("java.util.TreeMap$Entry", 900)
    );
    assert_eq!(class.retained, point.retained);
    assert_eq!(class.holding.as_deref(), Some("Session"));
}

#[test]
fn a_chain_accumulates_in_its_first_node() {
    let mut program = Program::new();
    let node = program.class("Node", &["next", "item"]);
    let item = program.class("Item", &["data"]);
    let mut next = 0;
    for item in program.items(item, 300) {
        let values = [next, item].map(testkit::dump::Value::Object);
        next = program.heap.instance(node, &values);
    }
    program.owner("Owner", &[("CHAIN", next)]);
    let heap = program.open();
    let leaks = find(&heap, &LeakOptions::default(), &Control::quiet()).unwrap();
    let point = leaks.suspects[0].accumulation_point.as_ref().unwrap();
    assert_eq!(point.object.0.0, next);
    let class = point.of_class.as_ref().unwrap();
    assert_eq!((class.class.as_str(), class.objects), ("Node", 300));
}

fn is_known(before: &Heap, after: &Heap) -> bool {
    let quiet = Control::quiet();
    let rules = Rules::against_baseline(1000.0);
    let baseline = Baseline::of(before, &rules.patterns(), &quiet).unwrap();
    check(after, &rules, Some(&baseline), &quiet)
        .unwrap()
        .passed
}

#[test]
fn a_suspect_is_known_however_much_it_holds_and_of_which_class_most() {
    let trees = [500, 1000, 1500].map(sessions);
    assert!(is_known(&trees[0], &trees[1]) && is_known(&trees[0], &trees[2]));

    // Two classes in one list, of which one or the other has more memory.
    let list = |owner: &str, a, b| {
        let mut program = Program::new();
        let classes = ["A", "B"].map(|name| program.class(name, &["data"]));
        let mut items = program.items(classes[0], a);
        items.extend(program.items(classes[1], b));
        let list = program.list(&items);
        program.owner(owner, &[("LIST", list)]);
        program.open()
    };
    let few = list("Owner", 300, 200);
    assert!(is_known(&few, &list("Owner", 300, 500)));
    // The same field of another class is another place.
    assert!(!is_known(&few, &list("Other", 300, 200)));
}
