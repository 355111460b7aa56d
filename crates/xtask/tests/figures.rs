//! The figures of the documents against the committed runs.

use xtask::figures::{committed, with_table};
use xtask::tree::root;

#[test]
fn every_figure_is_that_of_a_committed_run() {
    let tables = committed().expect("every figure has its run");
    assert!(tables.len() > 2, "{tables:?}");
    for table in tables {
        let document = std::fs::read_to_string(root().join(&table.document)).expect("a document");
        let want = with_table(&document, &table).expect("a place for the table");
        assert!(
            document == want,
            "{}: cargo run -p xtask --bin figures",
            table.document
        );
    }
}
