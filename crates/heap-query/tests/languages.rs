//! The language of a query that names none.

use crate::common::known;
use heap_query::{Lang, Limits};

#[test]
fn dialects_are_recognised() {
    let (session, _) = known();
    for (query, want) in [
        (
            "select class, count(*) from objects group by class",
            Lang::Sql,
        ),
        ("select * from objects o where o.shallow > 16", Lang::Sql),
        ("select * from references", Lang::Sql),
        ("select count(*) from a.Node", Lang::Sql),
        ("select this from a.Node", Lang::Sql),
        ("select name||'x' from classes", Lang::Sql),
        ("select name from classes where name == 'a.Node'", Lang::Sql),
        (
            "select count(*) from (select class||kind from objects)",
            Lang::Sql,
        ),
        (
            "select distinct from_id||to_id from \"references\"",
            Lang::Sql,
        ),
        ("select n, \"@retained\" from \"a.Node\"", Lang::Sql),
        (
            "select n, \"@retained\" from \"a.Node\" where n > 0",
            Lang::Sql,
        ),
        ("select n, @retainedHeapSize from a.Node", Lang::Oql),
        ("select numberOfObjects, x from OBJECTS 0x0 x", Lang::Oql),
        ("select * from \"a.Node\"", Lang::Sql),
        ("SELECT * FROM a.Node", Lang::Oql),
        ("select x.n from a.Node x where x.n > 1", Lang::Oql),
        ("SELECT * FROM INSTANCEOF a.Node", Lang::Oql),
        ("SELECT * FROM OBJECTS 0", Lang::Oql),
        ("SELECT * FROM \"a\\.N.*\"", Lang::Oql),
        ("SELECT * FROM ${snapshot}.getClasses()", Lang::Oql),
    ] {
        let table = session.run(query, None, &Limits::default());
        assert_eq!(
            table.map(|t| t.lang).map_err(|e| e.to_string()),
            Ok(want),
            "{query}"
        );
    }
    assert_eq!(session.history().len(), 20);
    // Who named no language hears which one it was taken for.
    let error = session.run("select frm from objects", None, &Limits::default());
    let printed = error.expect_err("no query").to_string();
    assert!(
        printed.contains("taken for sql, the other languages are oql and jhat"),
        "{printed}"
    );
    let error = session.run(
        "select frm from objects",
        Some(Lang::Sql),
        &Limits::default(),
    );
    let printed = error.expect_err("no query").to_string();
    assert!(!printed.contains("taken for"), "{printed}");
    assert_eq!(session.complete("select x from a.S", 17, 9), ["a.Sub"]);
    assert!(
        session
            .complete("select ret", 10, 9)
            .contains(&"retained_set".to_owned())
    );
}
