//! Places that grew or shrank from dump to dump, in programs whose growth is split: several
//! classes of one loader, several statics of one class, losses below a place that grew, trees.

use crate::program::Program;
use heap_analysis::compare::diff::{Change, Diff, DiffOptions, diff};
use heap_graph::{Control, Heap};
use testkit::dump::{Elements, Value};

fn compare(heaps: &[Heap]) -> Diff {
    let dumps: Vec<(String, &Heap)> = heaps.iter().map(|h| (String::new(), h)).collect();
    diff(&dumps, &DiffOptions::default(), &Control::quiet()).unwrap()
}

/// The holder, what is there, and how many of it.
fn place(change: &Change) -> (&str, &str, &[u64]) {
    let contents = change.holding.as_ref().or(change.contents.as_ref());
    (
        change.holder.as_deref().unwrap_or(""),
        contents.map_or("", |c| &c.label.class),
        contents.map_or(&[], |c| &c.objects),
    )
}

fn growth(of: &[Change]) -> i64 {
    of.iter().map(|c| c.growth).sum()
}

#[test]
fn growth_that_is_split_among_classes_and_statics_has_a_place_for_each() {
    let heaps = [1, 2, 3].map(|n| {
        let mut program = Program::new();
        for (owner, lists) in [("A", 1), ("B", 3)] {
            let item = program.class(&format!("{owner}$Item"), &["data"]);
            let lists: Vec<u64> = (1..=lists)
                .map(|k| {
                    let items = program.items(item, (100 * k + lists) * n);
                    program.list(&items)
                })
                .collect();
            let names = ["FIRST", "SECOND", "THIRD"];
            let statics: Vec<_> = names.into_iter().zip(lists).collect();
            program.owner(owner, &statics);
        }
        program.open()
    });
    let answer = compare(&heaps);
    let places: Vec<_> = answer.grown.iter().map(place).collect();
    assert_eq!(
        places,
        [
            ("B.THIRD", "B$Item", &[303, 606, 909][..]),
            ("B.SECOND", "B$Item", &[203, 406, 609]),
            ("B.FIRST", "B$Item", &[103, 206, 309]),
            ("A.FIRST", "A$Item", &[101, 202, 303]),
        ]
    );
    assert!(answer.grown.iter().all(|c| c.steady));
    assert_eq!(answer.omitted_grown, 0);
    let options = DiffOptions {
        top: Some(1),
        ..DiffOptions::default()
    };
    let dumps: Vec<(String, &Heap)> = heaps.iter().map(|h| (String::new(), h)).collect();
    let short = diff(&dumps, &options, &Control::quiet()).unwrap();
    assert_eq!((short.grown.len(), short.omitted_grown), (1, 3));
    // No byte is in two places, and none is missing.
    let heap = |n: usize| answer.dumps[n].shallow.0 as i64;
    assert_eq!(growth(&answer.grown), heap(2) - heap(0));
    let mut signatures: Vec<_> = answer.grown.iter().map(|c| &c.signature).collect();
    signatures.sort();
    signatures.dedup();
    assert_eq!(signatures.len(), 4);
}

#[test]
fn a_loss_below_a_place_that_grew_is_found() {
    let heaps = [1, 2, 3].map(|n| {
        let mut program = Program::new();
        let (up, down) = (
            program.class("Up", &["data"]),
            program.class("Down", &["data"]),
        );
        let items = program.items(up, 400 * n);
        let more = program.items(down, 300 * (3 - n));
        let (up, down) = (program.list(&items), program.list(&more));
        program.owner("Owner", &[("UP", up), ("DOWN", down)]);
        program.open()
    });
    let answer = compare(&heaps);
    let [grown] = &answer.grown[..] else {
        panic!("{:?}", answer.grown)
    };
    let [shrunk] = &answer.shrunk[..] else {
        panic!("{:?}", answer.shrunk)
    };
    assert_eq!(place(grown), ("Owner.UP", "Up", &[400, 800, 1200][..]));
    assert_eq!(place(shrunk), ("Owner.DOWN", "Down", &[600, 300, 0][..]));
    assert!(shrunk.steady);
    // The classes that changed most are first, whether they grew or shrank.
    let rows = answer.classes.iter().map(|c| c.class.as_str());
    let at = |class| rows.clone().position(|c| c == class).unwrap();
    assert!(at("Down") < 5, "{:?}", answer.classes);

    // Two classes in one list are two places, also if one of them grew as much as the other shrank.
    let heaps = [1, 2].map(|n| {
        let mut program = Program::new();
        let (up, down) = (
            program.class("Up", &["data"]),
            program.class("Down", &["data"]),
        );
        let mut items = program.items(up, 300 * n);
        items.extend(program.items(down, 300 * (3 - n)));
        items.push(program.array);
        items.truncate(900 + n % 2);
        let list = program.list(&items);
        program.owner("Owner", &[("LIST", list)]);
        program.open()
    });
    let answer = compare(&heaps);
    assert_eq!(
        place(&answer.grown[0]),
        ("Owner.LIST", "Up", &[300, 600][..])
    );
    assert_eq!(
        place(&answer.shrunk[0]),
        ("Owner.LIST", "Down", &[600, 300][..])
    );
}

#[test]
fn a_tree_of_entries_is_one_place_with_all_its_entries() {
    let heaps = [1, 2, 3].map(|n| {
        let mut program = Program::new();
        let item = program.class("Session", &["data"]);
        let items = program.items(item, 500 * n);
        let keys = items.into_iter().enumerate();
        let entries: Vec<_> = keys.map(|(k, item)| (format!("key {k}"), item)).collect();
        let map = program.tree(&entries);
        program.owner("Registry", &[("MAP", map)]);
        program.open()
    });
    let answer = compare(&heaps);
    let [grown] = &answer.grown[..] else {
        panic!("{:?}", answer.grown)
    };
    assert_eq!(
        place(grown),
        ("Registry.MAP", "Session", &[500, 1000, 1500][..])
    );
    assert_eq!(grown.path.last().unwrap().label.class, "java.util.TreeMap");
    let nodes = grown.contents.as_ref().unwrap();
    assert_eq!(nodes.objects, [500, 1000, 1500]);
    assert_eq!(growth(&answer.grown), nodes.growth());
}

#[test]
fn the_entry_of_a_map_that_grew_is_named() {
    let heaps = [1, 2].map(|n| {
        let mut program = Program::new();
        let item = program.class("Item", &["data"]);
        let entries: Vec<_> = [
            ("alpha", 100),
            ("beta", 400 * n),
            ("gamma", 300 * n),
            ("delta", 9),
        ]
        .into_iter()
        .map(|(key, count)| {
            let items = program.items(item, count);
            (key.to_owned(), program.list(&items))
        })
        .collect();
        let map = program.tree(&entries);
        program.owner("Tenants", &[("MAP", map)]);
        program.open()
    });
    let answer = compare(&heaps);
    let names = answer.grown.iter().map(|c| {
        let name = c.path.iter().find_map(|g| g.label.name.as_deref());
        (name.unwrap(), place(c))
    });
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            ("beta", ("Tenants.MAP", "Item", &[400, 800][..])),
            ("gamma", ("Tenants.MAP", "Item", &[300, 600]))
        ]
    );
}

#[test]
fn one_object_that_became_larger_is_a_place_among_many() {
    let heaps = [1, 2].map(|n| {
        let mut program = Program::new();
        let item = program.class("Item", &["data"]);
        let mut items = program.items(item, 500 + 5 * n);
        let data = Elements::Long(vec![0; 10_000 * n]);
        let data = program.heap.primitive_array(data);
        items.push(program.heap.instance(item, &[Value::Object(data)]));
        let list = program.list(&items);
        program.owner("Owner", &[("LIST", list)]);
        program.open()
    });
    let answer = compare(&heaps);
    let place = answer.grown[0].path.last().unwrap();
    assert_eq!(
        place.label.to_string(),
        "data → long[]",
        "{:?}",
        answer.grown
    );
}
