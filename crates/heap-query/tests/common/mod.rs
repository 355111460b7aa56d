//! Heaps to ask.
#![allow(dead_code, reason = "each test file uses a part of it")]

use heap_graph::{Control, Heap, LayoutModel, Options};
use heap_query::{Cell, Limits, Session};
use std::sync::Arc;
use testkit::corpus;

/// A dump of the corpus, or a line that says why not.
pub fn corpus_heap(test: &str, name: &str) -> Option<Session> {
    let Some(dump) = corpus::corpus_dump(name) else {
        testkit::skip(test, "no corpus");
        return None;
    };
    Some(open(&dump.path, LayoutModel::Measured))
}

pub fn open(path: &std::path::Path, layout: LayoutModel) -> Session {
    let options = Options {
        no_index: true,
        layout,
        threads: 1,
        ..Options::default()
    };
    let heap = Heap::open(path, &options, &Control::quiet()).expect("a readable dump");
    Session::open(Arc::new(heap))
}

/// A session over a dump made by testkit.
pub fn session_of(bytes: &[u8], layout: LayoutModel) -> Session {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("writing the dump");
    open(file.path(), layout)
}

/// Rows of a query that must have an answer.
pub fn rows(session: &Session, text: &str) -> Vec<Vec<Cell>> {
    match session.run(text, None, &Limits::default()) {
        Ok(table) => table.rows,
        Err(error) => panic!("{text}: {error}"),
    }
}
