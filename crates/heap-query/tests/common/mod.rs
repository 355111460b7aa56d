//! Heaps to ask.
#![allow(dead_code, reason = "each test file uses a part of it")]

use heap_graph::{Control, Heap, LayoutModel, Options, Strength};
use heap_query::{Cell, Lang, Limits, QueryError, Session};
use std::sync::Arc;
use testkit::corpus;

/// A dump of the corpus, or a line that says why not.
pub(crate) fn corpus_heap(test: &str, name: &str) -> Option<Session> {
    corpus_heap_of(test, name, LayoutModel::Measured, Strength::All).map(Session::open)
}

/// As [`corpus_heap`], the heap alone.
pub(crate) fn corpus_heap_of(
    test: &str,
    name: &str,
    layout: LayoutModel,
    strength: Strength,
) -> Option<Arc<Heap>> {
    let Some(dump) = corpus::corpus_dump(name) else {
        testkit::skip(test, testkit::Need::Shared, "no corpus");
        return None;
    };
    Some(heap_of(&dump.path, layout, strength))
}

pub(crate) fn open(path: &std::path::Path, layout: LayoutModel) -> Session {
    Session::open(heap_of(path, layout, Strength::All))
}

fn heap_of(path: &std::path::Path, layout: LayoutModel, strength: Strength) -> Arc<Heap> {
    let options = Options {
        no_index: true,
        layout,
        strength,
        threads: 1,
        ..Options::default()
    };
    Arc::new(Heap::open(path, &options, &Control::quiet()).expect("a readable dump"))
}

/// A session over a dump made by testkit.
pub(crate) fn session_of(bytes: &[u8], layout: LayoutModel) -> Session {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("writing the dump");
    open(file.path(), layout)
}

/// Rows of a query about a heap that is opened with these options.
pub(crate) fn run_with(
    path: &std::path::Path,
    options: &Options,
    query: &str,
) -> Result<Vec<Vec<Cell>>, QueryError> {
    let heap = Heap::open(path, options, &Control::quiet()).expect("a readable dump");
    let session = Session::open(Arc::new(heap));
    Ok(session.run(query, None, &Limits::default())?.rows)
}

/// Rows of a query that must have an answer.
pub(crate) fn rows(session: &Session, text: &str) -> Vec<Vec<Cell>> {
    match session.run(text, None, &Limits::default()) {
        Ok(table) => table.rows,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// A row as text, objects by their names.
pub(crate) fn show(row: &[Cell], names: &[(u64, &str)]) -> String {
    let cells: Vec<String> = row.iter().map(|c| cell(c, names)).collect();
    cells.join(" | ")
}

fn cell(cell_: &Cell, names: &[(u64, &str)]) -> String {
    match cell_ {
        Cell::Object(id) => names
            .iter()
            .find(|n| n.0 == id.0)
            .map_or_else(|| id.to_string(), |n| n.1.to_owned()),
        Cell::List(list) => {
            let inner: Vec<String> = list.iter().map(|c| cell(c, names)).collect();
            format!("[{}]", inner.join(", "))
        }
        other => other.to_string(),
    }
}

/// A heap of which everything is known, and the names of its objects.
pub(crate) fn known() -> (Session, Vec<(u64, &'static str)>) {
    use testkit::dump::{Elements, Heap as Dump, IdSize, Root, Type, Value};
    let mut heap = Dump::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let node = heap.class(
        "a.Node",
        object,
        &[("next", Type::Object), ("n", Type::Int)],
    );
    let sub = heap.class("a.Sub", node, &[("next", Type::Object), ("l", Type::Long)]);
    let outer = heap.class("a.Outer", object, &[]);
    let inner_class = heap.class("a.Outer$Inner", object, &[]);
    let n1 = heap.instance(node, &[Value::Object(0), Value::Int(1)]);
    let n2 = heap.instance(node, &[Value::Object(n1), Value::Int(2)]);
    let own = [Value::Object(n2), Value::Long(7)];
    let above = [Value::Object(n1), Value::Int(3)];
    let s1 = heap.instance(sub, &[own, above].concat());
    let monday = heap.string("monday");
    let array_class = heap.object_array_class();
    let array = heap.object_array(array_class, &[n1, 0, monday]);
    let ints = heap.primitive_array(Elements::Int(vec![10, 20, 30]));
    let inner = heap.instance(inner_class, &[]);
    heap.set_static(node, "head", Value::Object(s1));
    for root in [object, node, sub, outer, inner_class] {
        heap.root(Root::StickyClass, root);
    }
    for root in [s1, array, ints, inner] {
        heap.root(Root::JniGlobal { reference: 1 }, root);
    }
    let names = vec![
        (n1, "n1"),
        (n2, "n2"),
        (s1, "s1"),
        (monday, "monday"),
        (array, "array"),
        (ints, "ints"),
        (inner, "inner"),
        (object, "class Object"),
        (node, "class Node"),
        (sub, "class Sub"),
    ];
    (session_of(&heap.bytes(), LayoutModel::Measured), names)
}

/// A query that is refused, with the message and its place in the text.
pub(crate) fn fails(session: &Session, lang: Lang, text: &str, place: usize, message: &str) {
    match session.run(text, Some(lang), &Limits::default()) {
        Err(QueryError::Text {
            message: printed,
            place: at,
        }) => {
            assert!(printed.contains(message), "{text}: {printed}");
            assert_eq!(at.offset, place, "{text}: {printed}");
        }
        other => panic!("{text}: {other:?}"),
    }
}
