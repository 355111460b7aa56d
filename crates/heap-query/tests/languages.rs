//! The language of a query that names none.

use crate::common::{corpus_heap, fails, known, session_of, show};
use heap_graph::LayoutModel;
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
        ("select to_string(this), n from a.Node", Lang::Sql),
        ("select to_string(x.this) from a.Node x", Lang::Sql),
        ("select length('x'), n from a.Node", Lang::Sql),
        ("select x.this from a.Node x where x.n = 1", Lang::Sql),
        ("select toHex(x.n), toString(x) from a.Node x", Lang::Oql),
        ("select x from a.Node x where (x.n = 1)", Lang::Oql),
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
    assert_eq!(session.history().len(), 26);
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

#[test]
fn what_sqlite_accepts_is_sql_and_attributes_are_mats() {
    let (session, _) = known();
    for (query, lang, row) in [
        ("select 'a'||'b'", Lang::Sql, "ab"),
        ("select max(1,2)||'x'", Lang::Sql, "2x"),
        ("select 'a\nb' || 'a'||char(10)||'b'", Lang::Sql, "a\nba\nb"),
        ("select 'it''s' == \"it's\"", Lang::Sql, "1"),
        ("select 'heap.' || 'function'", Lang::Sql, "heap.function"),
        ("select n||'x' from a.Node where n == 2", Lang::Sql, "2x"),
        ("select x.n from a.Node x where x.n == 2", Lang::Sql, "2"),
        (
            "select class||kind from [objects] where class = 'a.Sub'",
            Lang::Sql,
            "a.Subinstance",
        ),
        (
            "select distinct classof(s).@name from instanceof a.Node s where s.n > 2",
            Lang::Oql,
            "a.Sub",
        ),
        ("select classof(s).@name from a.Sub s", Lang::Oql, "a.Sub"),
        (
            "select x.n from a.Node x where /a.No/(classof(x).name) && x.n == 2",
            Lang::Jhat,
            "2",
        ),
        (
            "select x.n from a.Node x where /a.No/(classof(x).name)",
            Lang::Jhat,
            "1",
        ),
        ("select 4/(2)", Lang::Sql, "2"),
        (
            "select classof(s).name from a.Sub s where s.l == 7",
            Lang::Jhat,
            "a.Sub",
        ),
        (
            "select x.n from a.Node x where x == heap.findObject(objectid(x)) && x.n == 2",
            Lang::Jhat,
            "2",
        ),
    ] {
        let table = session.run(query, None, &Limits::default());
        let found = table.map(|t| (t.lang, show(&t.rows[0], &[])));
        let found = found.map_err(|e| e.to_string());
        assert_eq!(found, Ok((lang, row.to_owned())), "{query}");
    }
    let two = "select 'a\nb', 'a'||char(10)||'b'";
    let two = session.run(two, None, &Limits::default()).expect("rows");
    assert_eq!(show(&two.rows[0], &[]), "a\nb | a\nb");
    // JavaScript would answer `a` and ignore the rest.
    for (query, part) in [
        (
            "select 'a'||absent",
            "no such column: absent; the text was taken for sql",
        ),
        (
            "select 'a'||absent(1)",
            "no such function: absent; the text was taken for sql",
        ),
        ("select x.@n( from a.Node x", "the text was taken for oql"),
        ("heap.absent(", "the text was taken for jhat"),
        (
            "select absent(x) from a.Node x where x.n => 1",
            "the text was taken for jhat",
        ),
        (
            "select * from clases",
            "no such table: clases; did you mean classes?; the text was taken for sql",
        ),
        (
            "select * from nosuch_at_all",
            "no such table: nosuch_at_all; the text was taken for sql",
        ),
        (
            "select count(*) from instanceof a.Node",
            "no such table: instanceof (in SQL, instanceof.\"a.B\" is",
        ),
    ] {
        let error = session.run(query, None, &Limits::default());
        let printed = error.expect_err(query).to_string();
        assert!(printed.contains(part), "{query}: {printed}");
    }
    fails(
        &session,
        Lang::Sql,
        "select * from clases c",
        14,
        "classes?",
    );
}

/// The queries whose answers by jhat and MAT are recorded.
#[test]
fn recorded_queries_keep_their_language() {
    let Some(session) = corpus_heap("languages", "eclipse-mat+mat__HeapDumpSample.hprof") else {
        return;
    };
    let jhat = include_str!("data/jhat_answers.txt");
    let mat = include_str!("data/mat_answers.txt");
    let mut other = Vec::new();
    let mut count = 0;
    for (lang, texts) in [(Lang::Jhat, jhat), (Lang::Oql, mat)] {
        for line in texts.lines().filter(|line| !line.starts_with('#')) {
            let text = line.splitn(3, '\t').nth(2).unwrap_or_default();
            let is_query = text.contains(' ') && text.to_lowercase().starts_with("select");
            if !is_query {
                continue;
            }
            count += 1;
            let plan = session.explain(text, None, &Limits::default());
            if plan.map_or(Lang::Sql, |plan| plan.lang) != lang {
                other.push(text);
            }
        }
    }
    assert_eq!(count, 90);
    // These are queries of MAT, too, or have no sign of JavaScript.
    assert_eq!(
        other,
        [
            "select s from java.lang.String s where s.count >= 100",
            "select file.path.value.toString() from java.io.File file",
            "select o from instanceof java.lang.ClassLoader o",
            "select refers(t, t.name) from instanceof java.lang.Thread t where t.name != null",
            "select o from instanceof java.util.AbstractMap o",
        ]
    );
}

#[test]
fn a_text_without_a_query_is_named_as_empty() {
    let (session, _) = known();
    for text in ["", "  \n ", ";", "-- select 1", "/* nothing */ ;"] {
        for lang in [None, Some(Lang::Sql)] {
            let error = session.run(text, lang, &Limits::default());
            let printed = error.expect_err(text).to_string();
            assert!(printed.starts_with("the query is empty"), "{printed}");
            let error = session.explain(text, lang, &Limits::default());
            let printed = error.expect_err(text).to_string();
            assert!(printed.starts_with("the query is empty"), "{printed}");
        }
    }
}

#[test]
fn the_error_of_a_regular_expression_is_one_line() {
    let (session, _) = known();
    for (lang, text) in [
        (Lang::Sql, "select 'x' regexp '(a' from objects"),
        (
            Lang::Sql,
            "select * from immediate_dominators('class:a.Node', '(a')",
        ),
        (
            Lang::Oql,
            "SELECT * FROM a.Node x WHERE toString(x) LIKE \"(a\"",
        ),
        (Lang::Oql, "SELECT * FROM \"(a\""),
    ] {
        let error = session.run(text, Some(lang), &Limits::default());
        let error = error.expect_err(text).to_string();
        assert!(
            error.contains("bad pattern \"(a\": unclosed group"),
            "{text}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{text}: {error}");
    }
}

/// Obfuscated programs have classes of all short names, `as` and `in` among them.
#[test]
fn classes_named_as_keywords_do_not_hide_the_keywords() {
    use testkit::dump::{Heap, IdSize, Root};
    let mut heap = Heap::new(IdSize::Four);
    let object = heap.java_lang_object();
    for name in ["select", "as", "FROM", "in", "is", "by", "desc", "id", "a"] {
        let class = heap.class(name, object, &[]);
        let one = heap.instance(class, &[]);
        heap.root(Root::StickyClass, one);
    }
    let session = session_of(&heap.bytes(), LayoutModel::Measured);
    let text = "select class as c, count(*) from objects where class in ('as', 'by') \
                and id is not null group by class order by c desc";
    for lang in [None, Some(Lang::Sql)] {
        let table = session.run(text, lang, &Limits::default()).expect("rows");
        let found: Vec<String> = table.rows.iter().map(|row| show(row, &[])).collect();
        assert_eq!(
            (table.lang, found.join(";")),
            (Lang::Sql, "by | 1;as | 1".to_owned())
        );
    }
    for text in ["\"as\"", "\"FROM\"", "instanceof.as", "a", "desc"] {
        let text = format!("select \"@class\" from {text}");
        let table = session.run(&text, Some(Lang::Sql), &Limits::default());
        assert_eq!(table.expect("an object").rows.len(), 1, "{text}");
    }
}
