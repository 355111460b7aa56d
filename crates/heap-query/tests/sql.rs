//! SQL against answers that come from elsewhere: the JVM's histogram, the reference reader, the
//! naive oracles, and the same question asked in a way that no table can speed up.

use crate::common::{corpus_heap, fails, known, rows, session_of, show};
use heap_graph::LayoutModel;
use heap_query::{Cell, Cut, Lang, Limits, Session, Watch};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use testkit::dump::IdSize;
use testkit::graph::Dominator;
use testkit::shapes::{Encoding, dump_of, graphs};

fn text(cell: &Cell) -> String {
    cell.to_string()
}

fn int(cell: &Cell) -> u64 {
    match cell {
        Cell::Int(n) => *n as u64,
        other => panic!("{other:?} is no number"),
    }
}

/// Class, objects and bytes of each class by name.
fn histogram(session: &Session, sql: &str) -> BTreeMap<String, (u64, u64)> {
    rows(session, sql)
        .iter()
        .map(|r| (text(&r[0]), (int(&r[1]), int(&r[2]))))
        .collect()
}

#[test]
fn grouping_by_class_is_the_histogram_of_the_jvm_and_of_the_reference_reader() {
    let Some(session) = corpus_heap("histogram", "zoo-jdk17-g1.hprof") else {
        return;
    };
    let dump = testkit::corpus::corpus_dump("zoo-jdk17-g1.hprof").expect("the same dump");
    let want = dump.expected.expect("expected answers").histogram;
    let by_class = "select class, count(*), sum(shallow) from objects group by class";
    let found = histogram(&session, by_class);
    let empty = |n: &&String| !found.contains_key(*n) && want[*n].count > 0;
    assert_eq!(want.keys().filter(empty).count(), 0);
    for (class, (count, _)) in &found {
        // The reference reader counts class objects apart.
        if class != "java.lang.Class" {
            assert_eq!(*count, want[class].count, "{class}");
        }
    }
    let at_once = "select name, sum(objects), sum(shallow) from classes group by name having sum(objects) > 0";
    assert_eq!(found, histogram(&session, at_once));
    // Sizes: the JVM says what an object of each class takes.
    let jvm = dump.histogram.expect("the JVM's histogram");
    let row = jvm
        .iter()
        .find(|r| r.class == "java.util.HashMap$Node")
        .expect("maps");
    let (count, bytes) = found["java.util.HashMap$Node"];
    assert_eq!(bytes * row.instances, row.bytes * count);
}

#[test]
fn what_the_tables_push_down_is_what_sqlite_would_have_found() {
    let Some(session) = corpus_heap("push_down", "zoo-jdk17-g1.hprof") else {
        return;
    };
    // A plus sign keeps SQLite from handing a comparison or an order to the table.
    for (fast, slow) in [
        (
            "select id from objects where class = 'java.lang.Thread'",
            "select id from objects where +class = 'java.lang.Thread'",
        ),
        (
            "select id from objects where shallow > 1000",
            "select id from objects where +shallow > 1000",
        ),
        (
            "select id from objects where shallow between 40 and 41.5",
            "select id from objects where +shallow between 40 and 41.5",
        ),
        (
            "select id from objects where retained >= 5000 and class = 'byte[]'",
            "select id from objects where +retained >= 5000 and +class = 'byte[]'",
        ),
        (
            "select id from objects where retained > 100000.5",
            "select id from objects where +retained > 100000.5",
        ),
        (
            "select id from objects where retained < 17 and shallow = 16",
            "select id from objects where +retained < 17 and +shallow = 16",
        ),
        (
            "select id from objects where retained = 0",
            "select id from objects where +retained = 0",
        ),
        (
            "select id from objects where class = 'java.lang.thread' collate nocase",
            "select id from objects where +class = 'java.lang.thread' collate nocase",
        ),
        (
            "select class, count(*), min(shallow) from objects where retained > 64 group by class",
            "select class, count(*), min(shallow) from objects where +retained > 64 group by +class",
        ),
        (
            "select distinct class from objects where shallow > 64",
            "select distinct +class from objects where +shallow > 64",
        ),
        (
            "select distinct class from objects order by class desc limit 5",
            "select distinct +class from objects order by +class desc limit 5",
        ),
        (
            "select retained from objects order by retained desc limit 500",
            "select +retained from objects order by +retained desc limit 500",
        ),
        (
            "select retained from objects where class = 'java.lang.String' order by retained desc",
            "select +retained from objects where +class = 'java.lang.String' order by +retained desc",
        ),
        (
            "select to_id from \"references\" where from_id = (select id from objects order by retained desc limit 1)",
            "select +to_id from \"references\" where +from_id = (select id from objects order by retained desc limit 1)",
        ),
        (
            "select from_id, to_id, field from references where from_class = 'java.lang.Thread'",
            "select from_id, to_id, field from references where +from_class = 'java.lang.Thread'",
        ),
        (
            "select from_id, field, kind from references where to_class = 'java.lang.Class' and strength = 'weak'",
            "select from_id, field, kind from references where +to_class = 'java.lang.Class' and strength = 'weak'",
        ),
        (
            "select distinct r.from_id, o.id from references r join objects o on o.id = r.to_id where o.shallow > 2000",
            "select r.id, o.id from objects o, inbound(o.id) r where o.shallow > 2000",
        ),
        (
            "select from_class, kind, to_class, sum(count) from class_references group by 1, 2, 3",
            "select +from_class, kind, +to_class, count(*) from references group by 1, 2, 3",
        ),
        (
            "select o.id, c.name from objects o join classes c on c.id = o.class_id where o.shallow > 2000",
            "select o.id, c.name from objects o join classes c on +c.id = +o.class_id where +o.shallow > 2000",
        ),
        (
            "select this from java.util.HashMap where this in (select id from objects where shallow = 48)",
            "select this from java.util.HashMap where +this in (select id from objects where +shallow = 48)",
        ),
    ] {
        let ordered = fast.contains("order by");
        let get = |sql: &str| {
            let mut found: Vec<String> = rows(&session, sql).iter().map(|r| show(r, &[])).collect();
            if !ordered {
                found.sort();
            }
            found
        };
        let found = get(fast);
        assert_eq!(found, get(slow), "{fast}");
        assert!(
            !found.is_empty() || fast.contains("= 0"),
            "{fast} shows nothing"
        );
    }
    let plan = session.explain(
        "select id from objects order by retained desc limit 3",
        None,
        &Limits::default(),
    );
    let plan = format!("{:?}", plan.expect("a plan"));
    assert!(
        !plan.contains("TEMP B-TREE"),
        "the table gives the order: {plan}"
    );
}

#[test]
fn every_table_function_and_view_answers() {
    let Some(session) = corpus_heap("tables", "zoo-jdk17-g1.hprof") else {
        return;
    };
    for table in session.tables() {
        let name = &table.name;
        let of_objects = |f| {
            format!(
                "select {f}.* from objects o, {name}(o.id) {f} where o.class like 'java.util.%Map' limit 7"
            )
        };
        let sql = match table.arguments.first().map(String::as_str) {
            Some("of" | "id") if name != "treemap" => of_objects("f"),
            Some("set") => format!("select * from {name}('class:java.lang.String') limit 7"),
            Some("by") => format!("select * from {name}('class') limit 7"),
            _ => format!("select * from {name} limit 7"),
        };
        let want = match name.as_str() {
            // This dump has one allocation site: none; and it is whole, without virtual threads,
            // bitmaps.
            "sites" => 1..=1,
            "findings" | "virtual_threads" | "bitmaps" => 0..=0,
            // Answers have as many rows as they have.
            "suspects"
            | "immediate_dominators"
            | "loaders"
            | "duplicate_classes"
            | "root_kinds"
            | "thread_locals"
            | "checks" => 1..=7,
            _ => 7..=7,
        };
        let found = rows(&session, &sql).len();
        assert!(want.contains(&found), "{sql}: {found} rows");
    }
}

#[test]
fn the_names_of_other_tools_give_the_same_facts() {
    let Some(session) = corpus_heap("names", "zoo-jdk17-g1.hprof") else {
        return;
    };
    for (theirs, ours) in [
        (
            "select c.name, sum(o.self_size) from heap_graph_object o join heap_graph_class c on o.type_id = c.id where o.reachable group by 1 order by 2 desc, 1 limit 9",
            "select name, sum(reachable_shallow) from classes group by 1 order by 2 desc, 1 limit 9",
        ),
        (
            "select count(*), sum(dominated_obj_count = 1) from heap_graph_dominator_tree",
            "select count(*), sum(json_array_length(dominators(id)) = 0) from objects where reachable",
        ),
        (
            "select max(dominated_size_bytes) from heap_graph_dominator_tree where idom_id is null",
            "select max(retained) from objects",
        ),
        (
            "select count(*) from heap_graph_reference r join heap_graph_object o on o.id = r.owner_id where r.field_name = 'table'",
            "select count(*) from \"references\" where field = 'table'",
        ),
        (
            "select count(*), sum(retainedSize(this)), sum(shallowSize(this)) from java.util.HashMap",
            "select count(*), sum(retained), sum(shallow) from objects where class = 'java.util.HashMap'",
        ),
        (
            "select toString(s.this) from \"java.lang.String\" s join \"java.net.URL\" u on s.this = u.path order by 1",
            "select s.value from strings s where s.id in (select field(id, 'path') from objects where class = 'java.net.URL') order by 1",
        ),
        (
            "select count(*) from java.util.HashMap m cross apply table(getMapEntries(m.this)) e",
            "select sum(size) from java.util.HashMap",
        ),
        (
            "select count(*) from instanceof.java.util.HashMap",
            "select count(*) from objects where class_id in (with recursive s(c) as (select id from classes where name = 'java.util.HashMap' union select k.id from classes k, s where k.superclass_id = s.c) select c from s)",
        ),
        (
            "select count(*) from native.ThreadStackFrames",
            "select count(*) from frames",
        ),
    ] {
        assert_eq!(rows(&session, theirs), rows(&session, ours), "{theirs}");
    }
}

#[test]
fn functions_say_what_is_known_of_a_small_heap() {
    let (session, names) = known();
    for (sql, want) in [
        (
            "select id from outbound((select this from a.Sub)) where kind = 'field' order by field, id",
            "n1;n2",
        ),
        (
            "select field from outbound((select this from a.Sub)) where kind = 'field'",
            "next;next",
        ),
        (
            "select id, field from inbound((select this from a.Node where n = 2))",
            "s1 | next",
        ),
        (
            "select id from retained_set((select this from a.Sub))",
            "n2;s1",
        ),
        ("select id from dominators((select this from a.Sub))", "n2"),
        (
            "select id, field from path_to_root((select this from a.Node where n = 2))",
            "s1 | next;n2 | ",
        ),
        (
            "select id from dominator_path((select this from a.Node where n = 2))",
            "s1;n2",
        ),
        (
            "select field(this, 'next.next.n'), field(this, 'l') from a.Sub",
            "1 | 7",
        ),
        (
            "select field(id, '[2]'), array_length(id), length(id) from arrays where class = 'java.lang.Object[]'",
            "monday | 3 | 3",
        ),
        (
            "select length(1.0), length(1e20), length(-2.5), length(100)",
            "3 | 7 | 4 | 3",
        ),
        (
            "select to_string(id), class_of(id) from strings",
            "monday | java.lang.String",
        ),
        ("select dominator(field(this, 'next')) from a.Sub", "s1"),
        ("select this, next, n, l, next_2 from a.Sub", ""),
        ("select this, next, l, n from a.Sub", "s1 | n2 | 7 | 3"),
        (
            "select \"@class\", n from instanceof.a.Node where n > 1 order by n",
            "a.Node | 2;a.Sub | 3",
        ),
        (
            "select value from fields where class = 'a.Node' and static",
            "s1",
        ),
        (
            "select name, value from field_values where id = (select this from a.Node where n = 2)",
            "next | n1;n | 2",
        ),
    ] {
        let table = match session.run(sql, Some(Lang::Sql), &Limits::default()) {
            Ok(table) => table.rows,
            Err(error) => {
                assert!(want.is_empty(), "{sql}: {error}");
                continue;
            }
        };
        let found: Vec<String> = table.iter().map(|r| show(r, &names)).collect();
        assert_eq!(found.join(";"), want, "{sql}");
    }
}

#[test]
fn errors_point_at_the_place_and_nothing_can_be_changed() {
    let (session, _) = known();
    for (sql, place, message) in [
        ("select frm from objects", 7, "no such column"),
        (
            "select * from a.Sub s where s.absent = 1",
            28,
            "no such column",
        ),
        (
            "select * from references where frm_id = 'x'",
            31,
            "no such column",
        ),
        ("select 1; select 2", 10, "one statement"),
        ("select * from outbound", 22, "needs its argument"),
        ("select * form objects", 9, "syntax error"),
    ] {
        fails(&session, Lang::Sql, sql, place, message);
    }
    for sql in [
        "attach 'x.db' as x",
        "create table x(a)",
        "create temp view x as select 1",
        "drop view heap_graph_class",
        "insert into objects(id) values (1)",
        "delete from objects",
        "pragma journal_mode = off",
        "vacuum into 'x.db'",
        "select load_extension('x')",
        "select writefile('x', 'y')",
        "begin",
    ] {
        let result = session.run(sql, Some(Lang::Sql), &Limits::default());
        assert!(result.is_err(), "{sql}: {result:?}");
    }
}

#[test]
fn limits_cut_the_answer_and_say_so() {
    let (session, _) = known();
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n";
    let table = session.run(endless, None, &Limits::rows(10)).expect("rows");
    assert_eq!((table.rows.len(), table.cut), (10, Some(Cut::Rows)));
    let exact = session
        .run("select 1 union all select 2", None, &Limits::rows(2))
        .expect("rows");
    assert_eq!(exact.cut, None, "nothing is missing");
    let counting = format!("select count(*) from ({endless})");
    let limits = Limits {
        time: Some(Duration::from_millis(50)),
        ..Limits::default()
    };
    let table = session
        .run(&counting, None, &limits)
        .expect("no rows in time");
    assert_eq!((table.rows.len(), table.cut), (0, Some(Cut::Time)));
    // Cancelled once it has begun, by the receiver of its progress.
    let mut limits = Limits::default();
    let cancel = limits.cancel.clone();
    limits.watch = Some(Watch(std::sync::Arc::new(move |_| {
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    })));
    let scanning = format!("select count(*) from objects join ({endless})");
    let table = session
        .run(&scanning, None, &limits)
        .expect("no rows before");
    assert_eq!(table.cut, Some(Cut::Cancelled));
}

#[test]
fn the_outermost_scan_says_how_far_it_is() {
    use std::sync::{Arc, Mutex};
    let Some(session) = corpus_heap("progress", "zoo-jdk17-g1.hprof") else {
        return;
    };
    let reported = |sql: &str| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let keep = seen.clone();
        let limits = Limits {
            watch: Some(Watch(Arc::new(move |p| {
                keep.lock().expect("no panic").push(p)
            }))),
            ..Limits::default()
        };
        session.run(sql, Some(Lang::Sql), &limits).expect("rows");
        seen.lock().expect("no panic").clone()
    };
    let join = reported("select count(*) from references r join objects o on o.id = r.to_id");
    assert!(join.iter().all(|p| p.phase == "references"), "{join:?}");
    assert!(
        join.is_sorted_by_key(|p| p.done),
        "one scan reports: {join:?}"
    );
    let last = join.last().expect("a report");
    assert_eq!(last.done, last.total);
    assert!(last.total > 1 << 20, "in bytes of the dump: {last:?}");
    let one = reported("select * from objects where id = '0x1'");
    assert!(one.is_empty(), "{one:?}");
    let pass = reported("select from_class from class_references limit 1");
    let phase = pass.first().map(|p| p.phase);
    assert_eq!(phase, Some("references of classes"), "{pass:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_graph_functions_are_what_the_definitions_say(
        graph in graphs(24), arrays in any::<bool>(), pick in any::<prop::sample::Index>()
    ) {
        let encoding = if arrays { Encoding::Arrays } else { Encoding::Mixed };
        let dump = dump_of(&graph, encoding, IdSize::Eight);
        let session = session_of(&dump.heap.bytes(), LayoutModel::Plain);
        let plain = dump.heap.plain_graph();
        let dominators = plain.graph.dominators_by_data_flow();
        let retained = plain.graph.retained(&dominators);
        let id = |n: usize| format!("0x{:x}", plain.ids[n]);
        // Columns of all objects.
        let found = rows(&session, "select id, dominator, retained, reachable from objects");
        prop_assert_eq!(found.len(), plain.ids.len());
        for (n, row) in found.iter().enumerate() {
            let above = match dominators[n] {
                Some(Dominator::Node(above)) => id(above),
                _ => String::new(),
            };
            prop_assert_eq!(text(&row[0]), id(n));
            prop_assert_eq!(text(&row[1]), above);
            prop_assert_eq!(int(&row[3]) == 1, dominators[n].is_some());
            if dominators[n].is_some() {
                prop_assert_eq!(int(&row[2]), retained[n]);
            }
        }
        // The distance from a root, level by level.
        let mut distances = vec![-1i64; plain.ids.len()];
        let mut near: Vec<usize> = plain.graph.roots.clone();
        for distance in 0.. {
            near.retain(|n| distances[*n] == -1);
            if near.is_empty() {
                break;
            }
            near.iter().for_each(|n| distances[*n] = distance);
            near = near.iter().flat_map(|n| plain.graph.edges[*n].clone()).collect();
        }
        let found = rows(&session, "select root_distance from heap_graph_object");
        let found: Vec<i64> = found.iter().map(|r| match r[0] { Cell::Int(n) => n, _ => -2 }).collect();
        prop_assert_eq!(found, distances);
        // References by either end are those of the whole table.
        let all = rows(&session, "select from_id, to_id, field from references order by 1, 2, 3");
        let joined = "select r.from_id, r.to_id, r.field from objects o join references r on r.to_id = o.id order by 1, 2, 3";
        prop_assert_eq!(&all, &rows(&session, joined));
        let joined = "select r.from_id, r.to_id, r.field from objects o join references r on r.from_id = o.id order by 1, 2, 3";
        prop_assert_eq!(&all, &rows(&session, joined));
        // And what is asked of the classes at their ends, or of all of them together.
        let class = text(&rows(&session, "select class from objects order by id limit 1 offset 2")[0][0]);
        for end in ["from", "to"] {
            let fast = format!("select from_id, to_id, field from references where {end}_class = '{class}' order by 1, 2, 3");
            let slow = fast.replace("where ", "where +");
            prop_assert_eq!(rows(&session, &fast), rows(&session, &slow));
        }
        let sums = "select from_class, to_class, sum(count) from class_references group by 1, 2 order by 1, 2";
        let joined = "select a.class, b.class, count(*) from references r join objects a on a.id = +r.from_id \
                      join objects b on b.id = +r.to_id group by 1, 2 order by 1, 2";
        prop_assert_eq!(rows(&session, sums), rows(&session, joined));
        // The retained set of one object, and of two together.
        let one = pick.index(plain.ids.len());
        let set = |sql: String| -> BTreeSet<String> {
            rows(&session, &sql).iter().map(|r| text(&r[0])).collect()
        };
        let got = set(format!("select id from retained_set('{}')", id(one)));
        let mut without = plain.graph.clone();
        prop_assert_eq!(got, removed(&mut without, &[one], &id));
        let two = (one + 1) % plain.ids.len();
        let got = set(format!("SELECT AS RETAINED SET * FROM OBJECTS {}, {}", id(one), id(two)));
        let mut without = plain.graph.clone();
        prop_assert_eq!(got, removed(&mut without, &[one, two], &id));
    }

    #[test]
    fn hostile_text_is_an_error_and_no_panic(text in "\\PC{0,60}", lang in 0..3usize) {
        let session = shared();
        let limits = Limits { rows: Some(50), time: Some(Duration::from_millis(200)), ..Limits::default() };
        let _ = session.run(&text, Some([Lang::Sql, Lang::Oql, Lang::Jhat][lang]), &limits);
        let _ = session.run(&text, None, &limits);
        let _ = session.complete(&text, text.len() / 2, 10);
    }

    #[test]
    fn pieces_of_queries_in_any_order_are_no_panic(
        words in prop::collection::vec(prop::sample::select(WORDS), 1..24), lang in 0..2usize
    ) {
        let session = shared();
        let limits = Limits { rows: Some(50), time: Some(Duration::from_millis(200)), ..Limits::default() };
        let text = words.join(" ");
        let _ = session.run(&text, [Some(Lang::Sql), Some(Lang::Oql)][lang], &limits);
        let _ = session.run(&format!("SELECT {text} FROM a.Node x WHERE {text}"), Some(Lang::Oql), &limits);
        let _ = session.run(&format!("select {text} from objects"), Some(Lang::Sql), &limits);
    }
}

/// One heap for all hostile texts.
fn shared() -> &'static Session {
    static SESSION: std::sync::OnceLock<Session> = std::sync::OnceLock::new();
    SESSION.get_or_init(|| known().0)
}

const WORDS: &[&str] = &[
    "select",
    "*",
    "from",
    "a.Node",
    "x",
    "where",
    "(",
    ")",
    "x.n",
    "=",
    "1",
    "objects",
    "OBJECTS",
    "instanceof",
    "AS RETAINED SET",
    "distinct",
    "union",
    "[",
    "]",
    ":",
    "-1",
    "9999999999L",
    "0x10",
    "\"a.*\"",
    "'c'",
    "@length",
    "${snapshot}",
    ".",
    ",",
    "in",
    "not",
    "like",
    "null",
    "+",
    "/",
    "0",
    "dominators(x)",
    "toString(x)",
    "group by",
    "order by",
    "retained",
    "desc",
    "limit",
    "outbound(id)",
    "@valueArray",
    "getClasses()",
    "id",
    "field(id, 'n')",
    "count(*)",
    "implements",
    "table(",
    "apply",
];

/// What the roots no longer reach without some nodes, of what they reached before.
fn removed(
    graph: &mut testkit::graph::Graph,
    nodes: &[usize],
    id: &dyn Fn(usize) -> String,
) -> BTreeSet<String> {
    let before = graph.reachable();
    graph.roots.retain(|n| !nodes.contains(n));
    for targets in &mut graph.edges {
        targets.retain(|n| !nodes.contains(n));
    }
    let after = graph.reachable();
    let gone = (0..before.len()).filter(|n| before[*n] && !after[*n]);
    gone.map(id).collect()
}

/// What a table function works out before its first row is within the limits, too.
#[test]
fn a_table_function_ends_when_it_is_cancelled() {
    use testkit::dump::{Heap, Root, Type, Value};
    let mut b = Heap::new(IdSize::Eight);
    let object = b.java_lang_object();
    let array = b.object_array_class();
    let fields = [("elementData", Type::Object), ("size", Type::Int)];
    let list = b.class("java.util.ArrayList", object, &fields);
    let one = b.instance(object, &[]);
    let data = b.object_array(array, &[one]);
    let list = b.instance(list, &[Value::Object(data), Value::Int(1)]);
    b.root(Root::StickyClass, list);
    // Together they are a suspect.
    for _ in 0..1000 {
        let lone = b.instance(object, &[]);
        b.root(Root::StickyClass, lone);
    }
    let session = session_of(&b.bytes(), LayoutModel::Measured);
    for asked in [
        format!("select * from contents({list})"),
        format!("select * from paths({one})"),
        "select * from suspects(50)".to_owned(),
        format!("select * from merged_paths('object:{one:#x}')"),
        "select * from set_members('out:all')".to_owned(),
        "select * from set_members('dominated:all')".to_owned(),
    ] {
        let whole = session.run(&asked, Some(Lang::Sql), &Limits::default());
        assert_eq!(whole.expect("an answer").cut, None, "{asked}");
        let mut limits = Limits::default();
        let cancel = limits.cancel.clone();
        limits.watch = Some(Watch(std::sync::Arc::new(move |_| {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        })));
        let cut = session.run(&asked, Some(Lang::Sql), &limits);
        let cut = cut.map(|table| table.cut);
        assert!(matches!(cut, Ok(Some(Cut::Cancelled))), "{asked}: {cut:?}");
    }
}

/// SQLite reads a hexadecimal number; ids in the tables are texts.
#[test]
fn an_id_without_quotes_is_the_object_of_this_id() {
    let (session, names) = known();
    let id = names.iter().find(|n| n.1 == "n2").expect("an object").0;
    for (condition, found) in [
        (format!("id = {id:#x}"), "n2"),
        (format!("id in (0x0,{id:#X}) /* {id:#x} */"), "n2"),
        (format!("id = '{id:#x}'"), "n2"),
        (format!("'{id:#x}' = '{id:#x}' and class = 'a.Sub'"), "s1"),
    ] {
        let found_rows = rows(
            &session,
            &format!("select id from objects where {condition}"),
        );
        let found_rows: Vec<String> = found_rows.iter().map(|r| show(r, &names)).collect();
        assert_eq!(found_rows, [found], "{condition}");
    }
    let class = names.iter().find(|n| n.1 == "class Node").expect("it").0;
    let text = format!("select name from classes where id = {class:#x}");
    assert_eq!(show(&rows(&session, &text)[0], &[]), "a.Node");
    // A number that is no id stays one.
    let text = "select count(*) from objects where shallow < 0xffffff and 0x10 = 16";
    assert_ne!(show(&rows(&session, text)[0], &[]), "0");
}
