//! Paths to what a large tree holds, whose nodes refer to their parents, as those of `java.util.TreeMap` do.

use heap_analysis::paths::Exclusions;
use heap_analysis::paths::merged::{MergedOptions, to_objects};
use heap_analysis::sets::selection::Selection;
use heap_graph::{Control, Heap, Options};
use testkit::dump::{self, ClassSpec, IdSize, Root, Type, Value};

/// Levels of the tree: more than a search within its limits goes up, as it goes down to other leaves as well.
const DEPTH: u32 = 17;

#[test]
fn everything_in_a_tree_has_a_path() {
    let mut heap = dump::Heap::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let fields = ["value", "left", "right", "parent"].map(|name| (name, Type::Object));
    let entry = heap.class("Entry", object, &fields);
    let value = heap.class("Value", object, &[("n", Type::Int)]);
    // The leaves come first, and are requested first.
    let mut nodes: Vec<u64> = (1..1 << DEPTH)
        .map(|n| {
            let value = heap.instance(value, &[Value::Int(n)]);
            heap.instance(entry, &[value, 0, 0, 0].map(Value::Object))
        })
        .collect();
    nodes.reverse();
    for (at, node) in nodes.iter().enumerate() {
        for (field, child) in [(1, 2 * at + 1), (2, 2 * at + 2)] {
            if let Some(child) = nodes.get(child) {
                heap.set_reference(*node, field, *child);
                heap.set_reference(*child, 3, *node);
            }
        }
    }
    let holder = heap.class_spec(ClassSpec {
        name: "Holder",
        super_class: object,
        statics: vec![("TREE", Value::Object(nodes[0]))],
        ..ClassSpec::default()
    });
    heap.root(Root::StickyClass, holder);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), heap.bytes()).unwrap();
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).unwrap();
    let class = heap
        .classes()
        .iter()
        .position(|class| class.name == "Value");
    let class = heap_graph::ClassIdx(class.unwrap() as u32);
    let objects = Selection::of(&heap, heap.objects_of(class));
    // Hardly any visits: no search from a leaf ends.
    let options = MergedOptions {
        max_paths: 300,
        depth: 4,
        top: 10,
        exclude: Exclusions::default(),
        exact: 100,
    };
    let merged = to_objects(&heap, "Value", &objects, &options, &Control::quiet()).unwrap();
    assert!(merged.followed > 200, "{merged:?}");
    assert_eq!(merged.without_path, 0);
    let root = &merged.nodes[0];
    assert_eq!(
        (root.object.value.as_deref(), root.targets),
        (Some("Holder"), merged.followed)
    );
}
