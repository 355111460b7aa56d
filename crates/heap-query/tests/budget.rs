//! With a memory limit a query has the same rows in the same order, or reports the least limit that is sufficient.

use crate::common::run_with;
use heap_graph::{HeapError, LayoutModel, Options};
use heap_query::{Cell, QueryError};
use std::path::Path;
use testkit::dump::{ClassSpec, Elements, Heap as Builder, IdSize, Root, Type, Value};

/// Chains of different lengths, so that objects retain different amounts, of two classes, and some objects of a third.
fn dump() -> Builder {
    let mut b = Builder::new(IdSize::Eight).segments_of(512);
    let object = b.java_lang_object();
    let fields = [("next", Type::Object)];
    let classes = [
        b.class("One", object, &fields),
        b.class("Two", object, &fields),
    ];
    for n in 0..400usize {
        let mut below = 0;
        for k in 0..n % 13 + 1 {
            below = b.instance(classes[(n + k) % 2], &[Value::Object(below)]);
        }
        if n % 11 != 0 {
            b.root(Root::Unknown, below);
        }
    }
    let few = b.class("Few", object, &[]);
    for _ in 0..100 {
        let one = b.instance(few, &[]);
        b.root(Root::Unknown, one);
    }
    b
}

fn rows(file: &Path, query: &str, memory: Option<u64>) -> Result<Vec<Vec<Cell>>, QueryError> {
    let options = Options {
        no_index: true,
        threads: 1,
        analysis_memory: memory,
        ..Options::default()
    };
    run_with(file, &options, query)
}

#[test]
fn rows_are_the_same_with_little_memory() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), dump().bytes()).expect("writing the dump");
    for query in [
        "select class, count(*), sum(shallow) from objects group by class",
        "select distinct class from objects",
        "select id, class from objects order by class",
        "select id, retained from objects order by retained desc",
        "select id from objects where retained > 60 order by retained desc",
        "select distinct shallow, retained from objects order by 2 desc limit 5",
        "SELECT * FROM INSTANCEOF java.lang.Object",
        "select count(*) from One a join Two b on a.next = b.this",
        "select count(*), sum(b.address % 7) from objects a cross join objects b \
         where a.class = 'One' and b.class = 'Few' and a.retained > b.shallow",
    ] {
        let want = rows(file.path(), query, None).expect("rows");
        for memory in [0, 1 << 10, 8 << 10, 10 << 10, 1 << 30] {
            let got = rows(file.path(), query, Some(memory)).expect("rows with less memory");
            assert_eq!(got, want, "{query} with {memory} bytes");
        }
    }
}

/// In the plain layout a class without static fields has the size 0, so it retains as much as the only object with a size
/// that it dominates.
#[test]
fn an_object_as_large_as_its_dominator_is_a_row_once() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    for size in [20, 10] {
        let mut held = vec![b.primitive_array(Elements::Byte(vec![0; size]))];
        held.extend((0..100).map(|_| b.primitive_array(Elements::Byte(Vec::new()))));
        let constants = (1..).zip(held.into_iter().map(Value::Object));
        let class = b.class_spec(ClassSpec {
            name: &format!("Class{size}"),
            super_class: object,
            constants: constants.collect(),
            ..ClassSpec::default()
        });
        b.root(Root::Unknown, class);
    }
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), b.bytes()).expect("writing the dump");
    let rows = |analysis_memory| {
        let options = Options {
            no_index: true,
            threads: 1,
            layout: LayoutModel::Plain,
            analysis_memory,
            ..Options::default()
        };
        let query = "select retained, id from objects order by retained desc";
        let mut rows = run_with(file.path(), &options, query).expect("rows");
        let retained = |row: &[Cell]| match row[0] {
            Cell::Int(bytes) => bytes,
            _ => panic!("{row:?}"),
        };
        assert!(rows.is_sorted_by(|a, b| retained(a) >= retained(b)));
        rows.sort_by_key(|row| format!("{row:?}"));
        rows
    };
    let want = rows(None);
    assert_eq!(rows(Some(0)), want);
    assert_eq!(rows(Some(1 << 10)), want);
}

#[test]
fn columns_that_need_a_table_of_all_objects_name_the_least_limit() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), dump().bytes()).expect("writing the dump");
    for column in ["depth", "dominated_objects", "root_distance"] {
        let query = format!("select id, {column} from objects");
        let want = rows(file.path(), &query, None).expect("rows");
        let error = rows(file.path(), &query, Some(1000)).expect_err("too little memory");
        let QueryError::Heap(HeapError::Memory { least, .. }) = error else {
            panic!("{column}: {error}");
        };
        let got = rows(file.path(), &query, Some(least)).expect("enough memory");
        assert_eq!(got, want, "{column}");
    }
}
