//! Queries of the explorer over real sockets: answers, places of errors, completion, history, an
//! end when no one waits; and the queries that views show, which give the same rows.

use crate::site::Site;
use heap_graph::{Control, Heap, Options};
use heap_query::{Cell, Limits, Session};
use serde_json::Value as Json;
use std::sync::Arc;

/// A text as part of an address.
fn encoded(text: &str) -> String {
    text.bytes().map(|b| format!("%{b:02X}")).collect()
}

fn query(text: &str) -> String {
    format!("api/v1/query?text={}", encoded(text))
}

#[test]
fn a_query_has_rows_places_proposals_and_a_history() {
    let site = Site::new();
    let answer = site.get(&query(
        "select id, class from objects where class = 'shop.Session' limit 3",
    ));
    assert_eq!(answer["schema"], "tenure.query/1");
    assert_eq!(answer["lang"], "sql");
    assert_eq!(answer["object_columns"], serde_json::json!([0]));
    assert_eq!(answer["rows"].as_array().unwrap().len(), 3);
    let all = "SELECT s FROM shop.Session s";
    let whole = format!("{}&limit=1000000", query(all));
    let sessions = site.get(&whole)["rows"].as_array().unwrap().len();
    assert!(sessions > 10);
    let cut = site.get(&format!("{}&limit=10", query(all)));
    assert_eq!(
        (&cut["cut"], cut["rows"].as_array().unwrap().len()),
        (&"rows".into(), 10)
    );
    let (_, _, csv) = site.ask("GET", &format!("{whole}&form=csv"), "");
    assert_eq!(csv.lines().count(), sessions + 1);

    // The objects of an answer are a set like any other.
    let set = encoded("sql:(select this from shop.Session)");
    let objects = site.get(&format!("api/v1/objects?set={set}&limit=5"));
    assert_eq!(objects["total"]["objects"], sessions);
    let retained = site.get(&format!(
        "api/v1/histogram?set={}",
        encoded("retained:oql:(SELECT s FROM shop.Session s)")
    ));
    let same = site.get("api/v1/histogram?set=retained:class:shop.Session");
    assert_eq!(retained["rows"], same["rows"]);
    let (status, _, body) = site.ask("GET", "api/v1/objects?set=sql:(select%201)", "");
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("no column of objects"), "{body}");

    for empty in ["", "  "] {
        let (status, _, body) = site.ask("GET", &query(empty), "");
        assert_eq!(status, 400, "{body}");
        assert!(body.contains("the query is empty"), "{body}");
    }
    let (status, _, body) = site.ask("GET", &query("select class,\n  nosuch from objects"), "");
    let fault: Json = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 400);
    assert_eq!(fault["error"]["kind"], "bad_request");
    let place = &fault["error"]["place"];
    assert_eq!(
        (&place["line"], &place["column"]),
        (&2.into(), &3.into()),
        "{body}"
    );
    assert_eq!(place["text"], "  nosuch from objects");

    let proposals = |before: &str, after: &str| {
        let path = format!(
            "api/v1/complete?before={}&after={}",
            encoded(before),
            encoded(after)
        );
        let found = site.get(&path);
        let list = found["proposals"].as_array().unwrap().clone();
        list.iter()
            .map(|p| p.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(proposals("select reta", "").contains(&"retained".to_owned()));
    assert!(proposals("select o.domi", " from objects o").contains(&"o.dominator".to_owned()));
    assert!(proposals("select x from Sess", "").contains(&"shop.Session".to_owned()));
    assert!(
        proposals("SELECT s.vis", " FROM shop.Session s")
            .iter()
            .any(|p| p.starts_with("s.vis"))
    );

    assert_eq!(site.get("api/v1/queries")["queries"], serde_json::json!([]));
    for text in ["select 1", "select 2", "select 2", "select 1"] {
        let body = serde_json::json!({ "text": text }).to_string();
        assert_eq!(site.ask("POST", "api/v1/queries", &body).0, 200);
    }
    let kept = site.get("api/v1/queries");
    let texts: Vec<&str> = kept["queries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|q| q["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["select 1", "select 2"]);
    let beside = site.file().with_extension("hprof.queries.jsonl");
    assert_eq!(std::fs::read_to_string(beside).unwrap().lines().count(), 3);
    assert_eq!(
        site.ask("POST", "api/v1/queries", "{\"text\":\" \"}").0,
        400
    );
}

const ENDLESS: &str =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

#[test]
fn a_query_ends_at_its_time_limit_and_when_no_one_waits() {
    let site = Site::new();
    let answer = site.get(&format!("{}&seconds=1", query(ENDLESS)));
    assert_eq!(answer["cut"], "time");
    let running = |wanted: usize| {
        testkit::until(|| match site.explorer.running_queries() {
            now if now == wanted => Ok(()),
            now => Err(format!("{now} queries run, not {wanted}")),
        });
    };
    running(0);
    let waiting = site.send("GET", &format!("{}&seconds=3600", query(ENDLESS)), "");
    running(1);
    drop(waiting);
    running(0);
}

/// A cell of SQL and a value of JSON as the same text.
fn cell_text(cell: &Cell) -> String {
    match cell {
        Cell::Bool(flag) => u8::from(*flag).to_string(),
        Cell::Real(n) => format!("{n:.9}"),
        other => other.to_string(),
    }
}

fn json_text(value: Option<&Json>) -> String {
    match value {
        None | Some(Json::Null) => String::new(),
        Some(Json::Bool(flag)) => u8::from(*flag).to_string(),
        Some(Json::String(text)) if text == "0x0" => String::new(),
        Some(Json::String(text)) => text.clone(),
        Some(Json::Number(n)) if n.is_f64() => format!("{:.9}", n.as_f64().unwrap()),
        Some(Json::Array(lines)) => {
            let lines = lines.iter().map(|l| json_text(Some(l)));
            lines.collect::<Vec<_>>().join("\n")
        }
        Some(Json::Object(more)) => json_text(more.get("object")),
        Some(other) => other.to_string(),
    }
}

/// View, number of the query, where the rows lie, field of the JSON and column of the query.
const SAME: &[(&str, usize, &str, &str)] = &[
    (
        "overview?",
        0,
        "/objects",
        "object=id class shallow retained",
    ),
    (
        "overview?",
        1,
        "/classes/rows",
        "class=name objects shallow retained",
    ),
    (
        "overview?",
        2,
        "/leaks/suspects",
        "kind class object retained share accumulation_point holder",
    ),
    (
        "leaks?",
        0,
        "/suspects",
        "kind class object retained share instances holder",
    ),
    (
        "leaks?threshold=1&deep=1",
        0,
        "/suspects",
        "kind class object retained accumulation_point",
    ),
    (
        "histogram?",
        0,
        "/rows",
        "class=name objects shallow retained",
    ),
    (
        "histogram?all=1&sort=shallow&limit=7&offset=3",
        0,
        "/rows",
        "class=name objects shallow",
    ),
    (
        "histogram?filter=%5Ejava.util&sort=name",
        0,
        "/rows",
        "class=name objects shallow retained",
    ),
    (
        "histogram?by=package&sort=objects",
        0,
        "/rows",
        "objects shallow retained",
    ),
    (
        "histogram?by=superclass",
        0,
        "/rows",
        "class=name objects shallow retained",
    ),
    (
        "histogram?by=loader",
        0,
        "/rows",
        "objects shallow retained",
    ),
    (
        "histogram?by=site&all=1",
        0,
        "/rows",
        "objects shallow retained",
    ),
    (
        "histogram?set=retained:class:shop.Session&by=class",
        0,
        "/rows",
        "class=name objects shallow retained",
    ),
    (
        "objects?set=class:java.lang.String&limit=20",
        0,
        "/rows",
        "object=id class shallow retained",
    ),
    (
        "objects?set=in:class:shop.Session&sort=name&limit=20",
        0,
        "/rows",
        "object=id class shallow retained",
    ),
    (
        "objects?set=unreachable&all=1&sort=shallow&limit=20",
        0,
        "/rows",
        "object=id class shallow retained",
    ),
    (
        "objects?set=sql%3A(select%20this%20from%20shop.Session)&sort=objects",
        0,
        "/rows",
        "object=id class shallow retained",
    ),
    (
        "immediate_dominators?set=class:java.lang.String",
        0,
        "/rows",
        "class dominators dominated shallow dominated_shallow",
    ),
    (
        "immediate_dominators?set=class:java.lang.String&skip=%5Ejava",
        0,
        "/rows",
        "class dominators dominated",
    ),
    (
        "merged_paths?set=class:shop.Session&top=20",
        0,
        "/nodes",
        "depth object class field targets targets_retained",
    ),
    (
        "merged_paths?set=class:shop.Session&depth=2&top=1&max_paths=3",
        0,
        "/nodes",
        "depth object class field targets targets_retained",
    ),
    (
        "quick_histogram?limit=5&offset=2&sort=objects&filter=^java",
        0,
        "/rows",
        "class=name objects shallow",
    ),
    (
        "dominators?limit=30",
        0,
        "/nodes",
        "object=id class shallow retained",
    ),
    (
        "dominators?id=MAP&limit=30",
        0,
        "/nodes",
        "object=id class shallow retained",
    ),
    (
        "dominator_groups?by=package",
        0,
        "/rows",
        "objects shallow retained",
    ),
    (
        "dominator_groups?by=class",
        0,
        "/rows",
        "class=name objects shallow retained",
    ),
    (
        "treemap?",
        0,
        "/areas",
        "parent object objects name shallow retained",
    ),
    (
        "treemap?id=MAP",
        0,
        "/areas",
        "parent object objects name shallow retained",
    ),
    ("top?", 0, "/objects", "object=id class shallow retained"),
    ("object?id=MAP", 1, "/slots", "declared_in name"),
    (
        "object?id=MAP",
        4,
        "/dominators",
        "object=id class retained field",
    ),
    ("object?id=MAP", 5, "/inbound", "object=id class retained"),
    (
        "object?id=MAP",
        6,
        "/dominated",
        "object=id class shallow retained",
    ),
    ("object?id=CLASS", 3, "/statics", "name"),
    ("object?id=CLASS", 5, "/inbound", "object=id class retained"),
    ("contents?id=MAP", 0, "/rows", "key value"),
    (
        "roots?",
        0,
        "/kinds",
        "kind records objects shallow retained",
    ),
    (
        "threads?",
        0,
        "/threads",
        "name object=id class serial daemon shallow retained",
    ),
    (
        "strings?find=visitor-1",
        0,
        "/rows",
        "object=id text=value shallow retained",
    ),
    (
        "duplicate_strings?",
        0,
        "/rows",
        "text length count bytes wasted example",
    ),
    (
        "collections?",
        0,
        "/rows",
        "class kind objects bytes elements empty unused largest",
    ),
    ("waste?", 0, "/kinds", "kind objects wasted"),
    (
        "loaders?",
        0,
        "/loaders",
        "loader object classes objects shallow retained unreachable",
    ),
    ("loaders?", 1, "/duplicates", "class count objects loaders"),
    ("properties?", 0, "/properties", "name value"),
    ("properties?", 1, "/environment", "name value"),
    ("unreachable?", 0, "/rows", "class=name objects shallow"),
    ("validate?", 0, "/checks", "what ok count"),
    ("validate?", 1, "/findings", "offset record kind message"),
];

#[test]
fn the_query_that_a_view_shows_gives_its_rows() {
    let site = Site::new();
    let heap = Heap::open(&site.file(), &Options::default(), &Control::quiet()).unwrap();
    let session = Session::open(Arc::new(heap));
    let one = |sql: &str| {
        let table = session.run(sql, None, &Limits::default()).unwrap();
        cell_text(&table.rows[0][0])
    };
    let map = one("select field(id, 'SESSIONS') from classes where name = 'shop.SessionRegistry'");
    let class = one("select id from classes where name = 'shop.SessionRegistry'");
    let mut seen = 0;
    for (view, number, place, columns) in SAME {
        let view = view.replace("MAP", &map).replace("CLASS", &class);
        let shown = site.get(&format!("api/v1/command/{view}"));
        let sql = shown["queries"][number]["sql"].as_str().unwrap();
        let table = session.run(sql, Some(heap_query::Lang::Sql), &Limits::default());
        let table = table.unwrap_or_else(|error| panic!("{view}: {error}\n{sql}"));
        let answer = site.get(&format!("api/v1/{view}"));
        let rows = answer.pointer(place).and_then(Json::as_array).unwrap();
        let pairs: Vec<(&str, &str)> = columns
            .split(' ')
            .map(|c| c.split_once('=').unwrap_or((c, c)))
            .collect();
        let want: Vec<Vec<String>> = rows
            .iter()
            .map(|row| pairs.iter().map(|p| json_text(row.get(p.0))).collect())
            .collect();
        let found: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| {
                pairs
                    .iter()
                    .map(|p| {
                        let at = table.columns.iter().position(|c| c == p.1);
                        cell_text(
                            &row[at
                                .unwrap_or_else(|| panic!("{view}: no column {} in {sql}", p.1))],
                        )
                    })
                    .collect()
            })
            .collect();
        assert_eq!(found, want, "{view}\n{sql}");
        seen += usize::from(!rows.is_empty());
    }
    assert!(
        seen + 5 > SAME.len(),
        "most of them have rows: {seen} of {}",
        SAME.len()
    );
}
