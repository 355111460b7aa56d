//! The examples of jhat's help page on a real dump, each against SQL that says the same.

use crate::common::{corpus_heap, rows};
use heap_query::{Cell, Lang, Limits, Session};

fn ask(session: &Session, text: &str) -> Vec<Vec<Cell>> {
    match session.run(text, Some(Lang::Jhat), &Limits::default()) {
        Ok(table) => table.rows,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// A cell as text; numbers without a fraction are whole in both languages.
fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => "null".to_owned(),
        Cell::Real(n) if n.fract() == 0.0 => format!("{n:.0}"),
        other => other.to_string(),
    }
}

/// Rows as text in any order.
fn sorted(rows: &[Vec<Cell>]) -> Vec<String> {
    let text = |row: &Vec<Cell>| row.iter().map(shown).collect::<Vec<_>>().join(", ");
    let mut rows: Vec<String> = rows.iter().map(text).collect();
    rows.sort();
    rows
}

/// Examples whose rows are those of a query in SQL, and that query.
const SAME: &[(&str, &str)] = &[
    (
        "select s from java.lang.String s where s.count >= 100",
        "select id from objects where class = 'java.lang.String' and field(id, 'count') >= 100",
    ),
    (
        "select a from [I a where a.length >= 256",
        "select id from arrays where class = 'int[]' and length >= 256",
    ),
    (
        "select file.path.value.toString() from java.io.File file",
        "select to_string(field(id, 'path.value')) from objects where class = 'java.io.File'",
    ),
    (
        "select classof(cl).name \n    from instanceof java.lang.ClassLoader cl",
        "select class_of(this) from instanceof.java.lang.ClassLoader",
    ),
    (
        "select o from instanceof CLASS o",
        "select this from instanceof.java.lang.ClassLoader",
    ),
    (
        "select heap.findClass(\"java.lang.System\").statics.props",
        "select value from fields where class = 'java.lang.System' and name = 'props'",
    ),
    (
        "select heap.findClass(\"java.lang.System\").props",
        "select value from fields where class = 'java.lang.System' and name = 'props'",
    ),
    (
        "select heap.findClass(\"java.lang.String\").fields.length",
        "select count(*) from fields where class = 'java.lang.String' and not static",
    ),
    ("select heap.findObject(\"CLASS\")", "select 'CLASS'"),
    (
        "select filter(heap.classes(), \"/java.net./(it.name)\")",
        "select id from classes where id is not null and name regexp 'java.net.'",
    ),
    (
        "select classof(o).name from instanceof java.lang.ref.Reference o",
        "select class_of(this) from instanceof.java.lang.ref.Reference",
    ),
    (
        "select heap.findClass(\"java.io.InputStream\").subclasses()",
        "with recursive below(id) as (select id from classes where superclass = 'java.io.InputStream' \
         union select c.id from classes c, below b where c.superclass_id = b.id) select id from below",
    ),
    (
        "select heap.findClass(\"java.io.BufferedInputStream\").superclasses()",
        "select id from classes where name in ('java.io.FilterInputStream', 'java.io.InputStream', 'java.lang.Object')",
    ),
    (
        "select identical(heap.findClass(\"java.lang.System\").statics.in, heap.findClass(\"java.lang.System\").statics.out)",
        "select 'false'",
    ),
    (
        "select objectid(o) from java.lang.Object o",
        "select id from objects where class = 'java.lang.Object'",
    ),
    (
        "select count(referrers(o)) from java.lang.Object o",
        "select (select count(*) from inbound(o.id) where strength not in ('weak', 'phantom')) from objects o where o.class = 'java.lang.Object'",
    ),
    (
        "select referrers(f) from java.io.File f",
        "select i.id from objects o, inbound(o.id) i where o.class = 'java.io.File' and i.strength not in ('weak', 'phantom')",
    ),
    (
        "select u from java.net.URL u where count(referrers(u)) > 2",
        "select id from objects o where class = 'java.net.URL' and (select count(*) from inbound(o.id) where strength not in ('weak', 'phantom')) > 2",
    ),
    (
        "select sizeof(o) from [I o",
        "select shallow from arrays where class = 'int[]'",
    ),
    (
        "select { name: t.name? t.name.toString() : \"null\", thread: t } \n    from instanceof java.lang.Thread t",
        "select coalesce(to_string(field(this, 'name')), 'null'), this from instanceof.java.lang.Thread",
    ),
    (
        "select p from java.util.Properties p\n    where contains(referrers(p), \"classof(it).name == 'java.lang.Class'\")",
        "select id from objects o where class = 'java.util.Properties' \
         and exists (select 1 from inbound(o.id) where class = 'java.lang.Class')",
    ),
    (
        "select count(heap.classes(), \"/java.io./(it.name)\")",
        "select count(*) from classes where id is not null and name regexp 'java.io.'",
    ),
    (
        "select filter(heap.classes(), \"/java.io./(it.name)\")",
        "select id from classes where id is not null and name regexp 'java.io.'",
    ),
    (
        "select filter(referrers(u), \"! /java.net./(classof(it).name)\")\n    from java.net.URL u",
        "select i.id from objects o, inbound(o.id) i where o.class = 'java.net.URL' and i.strength not in ('weak', 'phantom') and not i.class regexp 'java.net.'",
    ),
    (
        "select max(map(heap.objects('java.lang.String', false), 'it.count'))",
        "select max(field(id, 'count')) from objects where class = 'java.lang.String'",
    ),
    (
        "select min(map(heap.objects('java.util.Vector', false), 'it.elementData.length'))",
        "select min(array_length(field(id, 'elementData'))) from objects where class = 'java.util.Vector'",
    ),
    (
        "select sort(heap.objects('[C'), 'sizeof(lhs) - sizeof(rhs)')",
        "select id from objects where class = 'char[]'",
    ),
    (
        "select map(sort(heap.objects('[C'), 'sizeof(lhs) - sizeof(rhs)'), '{ size: sizeof(it), obj: it }')",
        "select shallow, id from objects where class = 'char[]'",
    ),
    (
        "select count(heap.objects('java.lang.String'))",
        "select count(*) from objects where class = 'java.lang.String'",
    ),
];

/// Examples that have so many rows as a query in SQL counts: what they say is text of their own.
const AS_MANY: &[(&str, &str)] = &[
    (
        "select \"<b>\" + toHtml(o) + \"</b>\" from java.lang.Object o",
        "select count(*) from objects where class = 'java.lang.Object'",
    ),
    (
        "select map(heap.findClass(\"java.io.File\").statics, \"index + '=' + toHtml(it)\")",
        "select count(*) from fields where class = 'java.io.File' and static",
    ),
    (
        "select max(heap.objects('java.lang.String'), 'lhs.count > rhs.count')",
        "select 1",
    ),
    (
        "select min(heap.objects('java.util.Vector'), 'lhs.elementData.length < rhs.elementData.length')",
        "select 1",
    ),
    (
        "select map(sort(map(heap.objects('java.lang.ClassLoader'), \n   '{ loader: it, count: it.classes.elementCount }'), 'lhs.count < rhs.count'),\n   'toHtml(it) + \"<br>\"')",
        "select count(*) from instanceof.java.lang.ClassLoader",
    ),
    (
        "select map(heap.objects('java.lang.ClassLoader'),\n      function (it) {\n         var res = '';\n         while (it != null) {\n            res += toHtml(it) + \"->\";\n            it = it.parent;\n         }\n         res += \"null\";\n         return res + \"<br>\";\n      })",
        "select count(*) from instanceof.java.lang.ClassLoader",
    ),
];

#[test]
fn the_examples_of_jhats_help_page_say_what_sql_says() {
    let Some(session) = corpus_heap("jhat_help", "eclipse-mat+mat__HeapDumpSample.hprof") else {
        return;
    };
    let one = |sql: &str| rows(&session, sql)[0][0].to_string();
    let class = one("select id from classes where name = 'java.lang.ClassLoader'");
    for (text, sql) in SAME {
        let (text, sql) = (text.replace("CLASS", &class), sql.replace("CLASS", &class));
        let found = ask(&session, &text);
        assert_eq!(
            sorted(&found),
            sorted(&rows(&session, &sql)),
            "{text}\n{sql}"
        );
    }
    for (text, sql) in AS_MANY {
        assert_eq!(ask(&session, text).len().to_string(), one(sql), "{text}");
    }
    // An unguarded pattern, as the help has it, wants strings with characters.
    let found = ask(
        &session,
        "select s.value.toString() from java.lang.String s \n    where s.value != null && /java/(s.value.toString())",
    );
    let texts = rows(
        &session,
        "select to_string(field(id, 'value')) from strings where to_string(field(id, 'value')) regexp 'java'",
    );
    assert_eq!(sorted(&found), sorted(&texts));
    let arrays = ask(
        &session,
        "select count(unique(map(heap.objects('java.lang.String'), 'it.value')))",
    );
    let different = one(
        "select count(distinct ifnull(field(id, 'value'), 'null')) from objects where class = 'java.lang.String'",
    );
    assert_eq!(sorted(&arrays), [different]);
}

#[test]
fn what_is_reached_is_summed_and_left_out_as_the_help_says() {
    let Some(session) = corpus_heap("jhat_help", "eclipse-mat+mat__HeapDumpSample.hprof") else {
        return;
    };
    let long = ask(
        &session,
        "select sum(map(reachables(p), 'sizeof(it)')) \n    from java.util.Properties p",
    );
    let short = ask(
        &session,
        "select sum(reachables(p), 'sizeof(it)') \n    from java.util.Properties p",
    );
    assert_eq!(sorted(&long), sorted(&short));
    assert!(!long.is_empty());
    let all = ask(&session, "select reachables(u) from java.net.URL u").len();
    let fewer = ask(
        &session,
        "select reachables(u, 'java.net.URL.handler') from java.net.URL u",
    )
    .len();
    assert!(fewer < all, "{fewer} of {all}");
    assert!(!ask(&session, "select reachables(p) from java.util.Properties p").is_empty());
    // All references of a class but the one to its own class.
    let referees = ask(
        &session,
        "select referees(heap.findClass(\"java.io.File\"))",
    );
    let sql = "select distinct o.id from classes c, outbound(c.id) o where c.name = 'java.io.File' and o.kind = 'static'";
    let statics = rows(&session, sql);
    for row in &statics {
        assert!(referees.contains(row), "{row:?} in {referees:?}");
    }
    assert!(!statics.is_empty());
    let paths = ask(
        &session,
        "select heap.livepaths(s) from java.lang.String s where s.count > 300",
    );
    assert!(!paths.is_empty());
    // Every property of the system, walked by hand through the table of the old Hashtable; the
    // sample has an entry without a value, on which the example of the help stops.
    let walked = ask(
        &session,
        "select map(filter(heap.findClass('java.lang.System').props.table, 'it != null'), \n            function (it) {\n                var res = \"\";\n                while (it != null) {\n                    if (it.value != null) res += it.key.value.toString() + '=' +\n                           it.value.value.toString() + '<br>';\n                    it = it.next;\n                }\n                return res;\n            });",
    );
    let text: String = walked.iter().map(|r| r[0].to_string()).collect();
    for row in rows(
        &session,
        "select name from properties where kind = 'system' and value <> ''",
    ) {
        assert!(text.contains(&row[0].to_string()), "{row:?}");
    }
}

/// The answers of jhat itself, recorded by `bench/jhat.py`.
#[test]
fn jhat_itself_has_the_same_rows() {
    let Some(session) = corpus_heap("jhat_answers", "eclipse-mat+mat__HeapDumpSample.hprof") else {
        return;
    };
    let recorded = include_str!("data/jhat_answers.txt").lines();
    for line in recorded.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let parts: Vec<&str> = line.splitn(3, '\t').collect();
        let [rows, digest, query] = parts[..] else {
            panic!("{line}");
        };
        let found = sorted(&ask(&session, query));
        let sample = &found[..found.len().min(5)];
        assert_eq!(found.len().to_string(), rows, "{query}: {sample:?}");
        assert_eq!(fnv1a(&found), digest, "{query}: {sample:?}");
    }
}

/// The digest of rows in order, a line each.
fn fnv1a(rows: &[String]) -> String {
    let bytes = rows.iter().flat_map(|row| row.bytes().chain([b'\n']));
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.fold(0xcbf2_9ce4_8422_2325, step))
}
