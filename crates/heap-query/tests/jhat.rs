//! jhat's OQL: the frame around the JavaScript, the examples of jhat's help, and VisualVM's additions.

use crate::common::{corpus_heap, fails, known, rows, show};
use heap_query::{Cell, Cut, Lang, Limits, QueryError, Session};
use proptest::prelude::*;
use std::time::Duration;

fn ask(session: &Session, text: &str) -> Vec<Vec<Cell>> {
    match session.run(text, Some(Lang::Jhat), &Limits::default()) {
        Ok(table) => table.rows,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Each text with its rows, joined; no rows for names that do not exist.
fn check(table: &[(&str, &str)]) {
    let (session, names) = known();
    for (text, want) in table {
        match session.run(text, Some(Lang::Jhat), &Limits::default()) {
            Ok(table) => {
                let found: Vec<String> = table.rows.iter().map(|r| show(r, &names)).collect();
                assert_eq!(found.join(";"), *want, "{text}");
            }
            Err(QueryError::Run(printed)) => {
                assert!(
                    printed.contains("is not defined") && want.is_empty(),
                    "{text}: {printed}"
                );
            }
            Err(other) => panic!("{text}: {other}"),
        }
    }
}

#[test]
fn objects_of_the_heap_are_wrapped_objects_of_javascript() {
    check(&[
        ("select x from a.Node x", "n1;n2"),
        ("select x from instanceof a.Node x", "n1;n2;s1"),
        ("select x from instanceof a.Node x where x.n > 1", "n2;s1"),
        ("select x from a.Node x where x.next", "n2"),
        ("select x from a.Node x where x.n - 1", "n2"),
        ("select x.next from a.Node x", "n1"),
        ("select [x, x.n] from a.Node x", "n1;1;n2;2"),
        (
            "select { o: x, twice: x.n * 2 } from a.Node x",
            "n1 | 2;n2 | 4",
        ),
        ("select s.next.next.n from a.Sub s", "1"),
        ("select s.l + s.n from a.Sub s", "10"),
        ("select a[1] from [I a where a.length >= 3", "20"),
        ("select a.length from [Ljava.lang.Object; a", "3"),
        ("select map(a, 'it') from int[] a", "10;20;30"),
        (
            "select s.toString() from java.lang.String s where /^mon/(s.toString())",
            "monday",
        ),
        (
            "select s from java.lang.String s where s.toString().length == 6",
            "monday",
        ),
        ("select heap.findClass('a.Node').statics.head", "s1"),
        ("select classof(s).name from a.Sub s", "a.Sub"),
        ("select classof(s).superclass.name from a.Sub s", "a.Node"),
        (
            "select map(classof(s).fields, 'it.name + it.signature') from a.Sub s",
            "nextL;lJ",
        ),
        (
            "select heap.findClass('a.Sub').isSubclassOf('a.Node')",
            "true",
        ),
        (
            "select heap.findClass('a.Node').isSuperclassOf('a.Sub')",
            "true",
        ),
        (
            "select map(heap.findClass('a.Node').subclasses(), 'it.name')",
            "a.Sub",
        ),
        (
            "select map(heap.findClass('a.Sub').superclasses(), 'it.name')",
            "a.Node;java.lang.Object",
        ),
        ("select count(heap.objects('a.Node'))", "3"),
        ("select count(heap.objects('a.Node', false))", "2"),
        ("select heap.objects('a.Node', false, 'it.n == 2')", "n2"),
        (
            "select filter(heap.classes(), '/^a[.]S/(it.name)')",
            "class Sub",
        ),
        ("select referrers(x) from a.Node x where x.n == 2", "s1"),
        ("select referees(x) from a.Node x where x.n == 2", "n1"),
        ("select refers(s, s.next) from a.Sub s", "true"),
        ("select reachables(s) from a.Sub s", "n1;n2"),
        ("select reachables(s, 'a.Node.next') from a.Sub s", "n2"),
        ("select livepaths_[0] from a.Sub s", ""),
        (
            "select heap.livepaths(x)[0] from a.Node x where x.n == 2",
            "s1;n2",
        ),
        ("select root(s).type from a.Sub s", "JNI_GLOBAL"),
        (
            "select identical(s.next, heap.findObject(objectid(s.next))) from a.Sub s",
            "true",
        ),
        (
            "select s.next == heap.findObject(s.next.id) from a.Sub s",
            "true",
        ),
        (
            "select sizeof(s) + ':' + rsizeof(s) + ':' + rootDistance(s.next) from a.Sub s",
            "32:56:1",
        ),
    ]);
}

#[test]
fn functions_take_code_as_text_and_as_functions() {
    check(&[
        ("select contains([1, 2], 'it == 2')", "true"),
        ("select sort([3, 1, 2])", "1;2;3"),
        ("select sort([3, 1, 2], 'rhs - lhs')", "3;2;1"),
        (
            "select sort([3, 1, 2], function(a, b) { return b - a; })",
            "3;2;1",
        ),
        ("select top([3, 1, 2, 5], 'rhs - lhs', 2)", "5;3"),
        (
            "select [max([3, 1]), min([3, 1]), sum([3, 1]), length([3, 1]), sum([3, 1], 'it * 2')]",
            "3;1;4;2;8",
        ),
        ("select max(['a', 'ccc'], 'lhs.length > rhs.length')", "ccc"),
        ("select concat([1], [2])", "1;2"),
        ("select unique([1, 1, 2], 'it')", "1;2"),
        ("select null", ""),
        ("select describe", ""),
        (
            "var n = 0; heap.forEachObject(function(o) { n++; }, 'a.Node'); n",
            "3",
        ),
        ("1 + 1", "2"),
        ("toArray(heap.classes()).length > 3", "true"),
        (
            "toHtml(heap.findClass('a.Sub')).indexOf('class a.Sub @ 0x')",
            "0",
        ),
    ]);
}

#[test]
fn the_frame_is_checked_at_its_places() {
    let (session, _) = known();
    for (text, place, message) in [
        ("select", 6, "nothing is selected"),
        ("select from a.Node x", 7, "nothing is selected"),
        ("select x from", 13, "a class"),
        ("select x from a.Node", 20, "a name"),
        ("select x from a.Node where x", 21, "a name"),
        ("select x from a.Node x whre x.n", 23, "where expected"),
        ("select x from a.Node x where", 28, "nothing after where"),
        ("select x from a.Absent x", 14, "no class a.Absent"),
    ] {
        fails(&session, Lang::Jhat, text, place, message);
    }
}

#[test]
fn a_script_reaches_nothing_but_the_heap_and_is_stopped() {
    let (session, _) = known();
    let limits = Limits {
        time: Some(Duration::from_millis(100)),
        ..Limits::default()
    };
    for text in [
        "for (;;) {}",
        "select (function f() { return f; while (1) {} })()",
        "while (true) { 1 + 1 }",
    ] {
        let table = session.run(text, Some(Lang::Jhat), &limits);
        let cut = table.map(|t| t.cut);
        assert!(matches!(cut, Ok(Some(Cut::Time) | None)), "{text}: {cut:?}");
    }
    for text in [
        "std.open('x', 'w')",
        "os.exec(['x'])",
        "require('fs')",
        "import('fs').x.y",
        "(function f() { f(); })()",
        "'x'.repeat(1 << 30).repeat(9)",
        "select x.n.y.z from a.Node x",
        "heap.findClass('a.Node').name = 1; throw 'x'",
        "new Array(1e9).fill({})",
    ] {
        let limits = Limits {
            time: Some(Duration::from_secs(5)),
            ..Limits::default()
        };
        let result = session.run(text, Some(Lang::Jhat), &limits);
        let stopped = matches!(&result, Ok(t) if t.cut == Some(Cut::Time));
        assert!(result.is_err() || stopped, "{text}: {result:?}");
    }
}

/// A scan has a buffer that the memory limit of JavaScript does not include.
#[test]
fn a_scan_is_given_back_at_its_end_and_unfinished_ones_are_limited() {
    let each = |body: &str| format!("var n = 0; for (var i = 0; i < 5000; i++) {{ {body} }} n");
    let any = "function (it) { return true; }";
    let first = format!("if (contains(heap.objects('a.Node'), {any})) n++;");
    let of_class = format!("if (contains(heap.findClass('a.Node').instances(), {any})) n++;");
    let for_each = format!("heap.forEachObject({any}, 'a.Node'); heap.forEachClass({any}); n++;");
    let not_begun = "heap.objects('a.Node'); n++;";
    for body in [&first, &of_class, &for_each, not_begun] {
        check(&[(&each(body), "5000")]);
    }
    let (session, _) = known();
    let unfinished = each("heap.objects('a.Node').next();");
    let result = session.run(&unfinished, Some(Lang::Jhat), &Limits::default());
    let printed = result.expect_err("too many").to_string();
    assert_eq!(printed, "more than 4096 unfinished scans of the heap");
}

/// The examples of jhat's help page, and how many rows each has by another way.
#[test]
fn the_examples_of_jhats_help_run_on_a_real_dump() {
    let Some(session) = corpus_heap("jhats_help", "eclipse-mat+mat__HeapDumpSample.hprof") else {
        return;
    };
    let strings = "from objects where class = 'java.lang.String'";
    for (text, sql) in [
        ("select s from java.lang.String s where s.count >= 100", format!("select count(*) {strings} and field(id, 'count') >= 100")),
        ("select a from [I a where a.length >= 256", "select count(*) from arrays where class = 'int[]' and length >= 256".into()),
        ("select s.value.toString() from java.lang.String s where s.value != null && /java/(s.value.toString())",
         "select count(*) from strings s where to_string(field(s.id, 'value')) regexp 'java'".into()),
        ("select {instance: s, content: s.toString()} from java.lang.String s where /java/(s.toString())",
         "select count(*) from strings where value regexp 'java'".into()),
        ("select file.path.toString() from java.io.File file", "select count(*) from objects where class = 'java.io.File' and field(id, 'path') is not null".into()),
        ("select classof(cl).name from instanceof java.lang.ClassLoader cl", "select count(*) from instanceof.java.lang.ClassLoader".into()),
        ("select heap.findClass(\"java.lang.System\").statics.props", "select 1".into()),
        ("select heap.findClass(\"java.lang.String\").fields.length", "select 1".into()),
        ("select filter(heap.classes(), \"/java[.]net[.]/(it.name)\")", "select count(*) from classes where instr(name, 'java.net.') > 0 and id is not null".into()),
        ("select map(sort(heap.objects('[C'), 'sizeof(rhs) - sizeof(lhs)'), \"{ size: sizeof(it), obj: it }\")", "select count(*) from objects where class = 'char[]'".into()),
        ("select count(heap.classes(), \"/java[.]io[.]/(it.name)\")", "select 1".into()),
        ("select length(heap.classes())", "select 1".into()),
        ("select sum(map(heap.objects('java.lang.String'), 'sizeof(it)'))", "select 1".into()),
        ("select unique(map(heap.objects('java.lang.String', false), 'it.count'))", format!("select count(distinct field(id, 'count')) {strings}")),
        ("select heap.livepaths(s).length from java.lang.Thread s", "select count(*) from objects where class = 'java.lang.Thread'".into()),
        ("select heap.roots()", "select count(*) from roots".into()),
    ] {
        let want = match rows(&session, &sql).first().and_then(|r| r.first()) {
            Some(Cell::Int(n)) => *n as usize,
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(ask(&session, text).len(), want, "{text}\n{sql}");
    }
    let bytes = ask(
        &session,
        "select sum(map(heap.objects('java.lang.String'), 'sizeof(it)'))",
    );
    let want = rows(&session, &format!("select sum(shallow) {strings}"));
    assert_eq!(bytes, want);
}

#[test]
fn javascript_is_recognised() {
    let (session, _) = known();
    for text in [
        "select s from java.lang.String s where s.toString() == 'monday'",
        "select a from [I a",
        "heap.classes()",
        "select heap.findClass('a.Node')",
        "select { a: x } from a.Node x",
        "select s from java.lang.String s where s.value.length >= 6",
    ] {
        let table = session.run(text, None, &Limits::default()).map(|t| t.lang);
        assert_eq!(table.map_err(|e| e.to_string()), Ok(Lang::Jhat), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn pieces_of_scripts_in_any_order_are_no_panic_and_end(
        words in prop::collection::vec(prop::sample::select(SCRIPT), 1..24)
    ) {
        let limits = Limits { rows: Some(50), time: Some(Duration::from_millis(50)), ..Limits::default() };
        let text = words.join(" ");
        let session = known().0;
        for text in [text.clone(), format!("select {text} from instanceof a.Node x where {text}")] {
            let _ = session.run(&text, Some(Lang::Jhat), &limits);
        }
    }
}

const SCRIPT: &[&str] = &[
    "heap",
    ".",
    "objects(",
    "classes()",
    "forEachObject(",
    "findClass(\"a.Node\")",
    "statics",
    "x",
    "x.next",
    "map(",
    "filter(",
    "sort(",
    "unique(",
    "reachables(x)",
    "referrers(x)",
    "'it'",
    "'lhs - rhs'",
    "function (it) { return it; }",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    "=>",
    "==",
    "+",
    "/a+/(x)",
    "while (true)",
    "throw",
    "null",
    "1e309",
    "new Array(1e9)",
    "'x'.repeat(1e8)",
    "JSON.stringify(",
    "this",
    "...",
    "`${x}`",
];

/// The clock has to stop a loop of QuickJS's own functions, too: without that each of these runs for minutes.
#[test]
fn a_long_loop_of_a_built_in_function_ends_with_the_query() {
    let (session, _) = known();
    for text in [
        "new Array(2 ** 31).reverse()",
        "new Array(2 ** 31).sort()",
        "new Array(2 ** 32 - 1).join('x')",
        "new Array(2 ** 32 - 1).toReversed()",
        "new Array(2 ** 32 - 1).slice(1).length",
        "new Array(2 ** 32 - 1).copyWithin(0, 5)",
        "new Array(2 ** 32 - 2).unshift(1)",
        "[new Array(2 ** 32 - 1)].flat()",
        "[].concat(new Array(2 ** 32 - 1))",
        "new Set(new Array(2 ** 32 - 1)).size",
        "Array.prototype.reverse.call({ length: 2 ** 32 - 1 })",
        "Array.from({ length: 2 ** 32 - 1 })",
        "Array.prototype.slice.call(Object.setPrototypeOf(new Array(2 ** 32 - 1), null))",
        "JSON.stringify(new Array(2 ** 32 - 1)).length",
        "new Uint8Array(1 << 24).sort().length",
        "new Array(4e6).fill(0).map((e, i) => i % 1000).sort().length",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    ] {
        let limits = Limits {
            time: Some(Duration::ZERO),
            ..Limits::default()
        };
        let table = session.run(text, Some(Lang::Jhat), &limits);
        let cut = table.map(|t| t.cut);
        assert!(matches!(cut, Ok(Some(Cut::Time))), "{text}: {cut:?}");
    }
    let cancelled = Limits::default();
    let flag = &cancelled.cancel;
    flag.store(true, std::sync::atomic::Ordering::Relaxed);
    let table = session.run("new Array(2 ** 31).reverse()", Some(Lang::Jhat), &cancelled);
    assert_eq!(table.expect("no rows").cut, Some(Cut::Cancelled));
    let long = "'a'.repeat(1 << 26)";
    for (text, message) in [
        (
            format!("{long}.indexOf('a'.repeat(1 << 25) + 'b')"),
            "a search for a text of 33554433 characters in one of 67108864 exceeds the limit",
        ),
        (
            format!("{long}.split('a'.repeat(1 << 25) + 'b')"),
            "exceeds the limit for the product, 2147483648",
        ),
        (
            format!("{long}.normalize()"),
            "normalize accepts at most 65536 characters",
        ),
        (
            "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })".to_owned(),
            "an array has at most 4294967295 elements",
        ),
    ] {
        let result = session.run(&text, Some(Lang::Jhat), &Limits::default());
        let printed = result.expect_err("a limit").to_string();
        assert!(printed.contains(message), "{text}: {printed}");
    }
}

#[test]
fn bounded_functions_have_the_results_of_the_language() {
    check(&[
        ("[3, 1, 10, undefined, 2].sort().join()", "1,10,2,3,"),
        ("[3, 1, 2].sort((a, b) => b - a).join()", "3,2,1"),
        (
            "Array.from(new Float64Array([NaN, 2, -1]).sort()).join()",
            "-1,2,NaN",
        ),
        ("new BigInt64Array([3n, 1n]).sort().join()", "1,3"),
        (
            "(function () { return Array.prototype.slice.call(arguments, 1).join() })(1, 2, 3)",
            "2,3",
        ),
        ("Array.prototype.join.call('abc', '-')", "a-b-c"),
        ("Array.from({ length: 2 }, (e, i) => i).join()", "0,1"),
        ("Array.from(new Set([1, 1, 2])).join()", "1,2"),
        (
            "[1, [2, [3]]].flat().length + ',' + [1].concat([2, 3], 4).join()",
            "3,1,2,3,4",
        ),
        ("[...[1, , 3].entries()].join()", "0,1,1,,2,3"),
        (
            "'a.b.c'.split('.').join() + 'abc'.split() + 'a-b'.replace('-', '+')",
            "a,b,cabca+b",
        ),
        (
            "'a1b22'.replace(/\\d+/g, (d) => '<' + d + '>') + 'xyx'.lastIndexOf('x')",
            "a<1>b<22>2",
        ),
        (
            "[].reverse.name + Object.keys([1]).join() + ('foo' in []) + [].foo",
            "reverse0falseundefined",
        ),
    ]);
}
