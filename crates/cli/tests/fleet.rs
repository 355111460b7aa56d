//! `export`, and the questions of `fleet/` over a folder of exported dumps.

use crate::ran::run;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::corpus::workspace;
use testkit::dump::{Elements, Heap as Builder, IdSize, Root, Type, Value};

/// A service with a registry of `n` orders in one list.
fn service(n: usize) -> Vec<u8> {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let order = heap.class("shop/Order", object, &[("lines", Type::Object)]);
    let orders: Vec<u64> = (0..n)
        .map(|_| {
            let lines = heap.primitive_array(Elements::Byte(vec![7; 100]));
            heap.instance(order, &[Value::Object(lines)])
        })
        .collect();
    let array = heap.object_array_class();
    let array = heap.object_array(array, &orders);
    let registry = heap.class("shop/Registry", object, &[]);
    heap.set_static(registry, "ORDERS", Value::Object(array));
    heap.root(Root::StickyClass, registry);
    let evil = heap.class("evil/=cmd,\"x\"", object, &[]);
    let evil = heap.instance(evil, &[]);
    heap.root(Root::Unknown, evil);
    heap.bytes()
}

/// Twenty dumps: three services, one of which grows.
fn fleet(at: &Path) {
    for n in 0..20usize {
        let (name, orders) = match n % 3 {
            0 => ("shop", 100 + 50 * n),
            1 => ("cart", 200),
            _ if n == 17 => ("mail", 2000),
            _ => ("mail", 150),
        };
        let file = format!("{name}-{n:02}.hprof");
        fs::write(at.join(&file), service(orders)).expect("the dump");
        run(
            at,
            &[
                "export",
                &file,
                "-o",
                "tables",
                "--service",
                name,
                "--no-index",
                "-q",
            ],
            0,
        );
    }
}

/// `tenure histogram` of all dumps added up, by class.
fn histograms(at: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for entry in fs::read_dir(at).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".hprof") {
            continue;
        }
        let printed = run(at, &["histogram", "--json", "--no-index", &name], 0);
        let answer: Json = serde_json::from_str(&printed).expect("JSON");
        for row in answer["rows"].as_array().expect("rows") {
            let (objects, shallow) = (row["objects"].as_u64(), row["shallow"].as_u64());
            let sum = sums
                .entry(row["class"].as_str().unwrap_or("").to_owned())
                .or_default();
            sum.0 += objects.unwrap_or(0);
            sum.1 += shallow.unwrap_or(0);
        }
    }
    sums.retain(|_, s| s.0 > 0);
    sums
}

fn check(
    totals: &[Json],
    growing: &[Json],
    leaks: &[Json],
    outliers: &[Json],
    want: &BTreeMap<String, (u64, u64)>,
) {
    let number = |j: &Json| {
        j.as_u64()
            .or_else(|| j.as_str()?.parse().ok())
            .unwrap_or(u64::MAX)
    };
    let got: BTreeMap<String, (u64, u64)> = totals
        .iter()
        .map(|r| {
            (
                r["class"].as_str().unwrap_or("").to_owned(),
                (number(&r["objects"]), number(&r["shallow"])),
            )
        })
        .collect();
    assert_eq!(&got, want);
    assert!(
        !growing.is_empty() && growing.iter().all(|r| r["service"] == "shop"),
        "{growing:?}"
    );
    assert_eq!(number(&leaks[0]["services"]), 3, "{leaks:?}");
    assert!(
        leaks[0]["title"]
            .as_str()
            .is_some_and(|t| t.contains("shop.Registry")),
        "{leaks:?}"
    );
    assert!(
        outliers.iter().any(|r| r["dump"] == "mail-17.hprof"),
        "{outliers:?}"
    );
}

fn python_has(module: &str) -> bool {
    let ran = Command::new("python3")
        .args(["-c", &format!("import {module}")])
        .output();
    ran.is_ok_and(|o| o.status.success())
}

#[test]
fn duckdb_adds_up_what_the_histograms_say() {
    if !python_has("duckdb") {
        return testkit::skip(
            "DuckDB over exported dumps",
            testkit::Need::DuckDb,
            "python3 has no module duckdb (pip install duckdb)",
        );
    }
    let dir = tempfile::tempdir().expect("a folder");
    fleet(dir.path());
    let script = workspace().join("fleet/ask.py");
    let out = Command::new("python3")
        .arg(script)
        .arg(dir.path().join("tables"))
        .arg("--json")
        .output()
        .expect("python3");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let answers: Json = serde_json::from_slice(&out.stdout).expect("JSON");
    let rows = |name: &str| answers[name].as_array().expect(name).clone();
    check(
        &rows("totals"),
        &rows("growing_classes"),
        &rows("shared_leaks"),
        &rows("outliers"),
        &histograms(dir.path()),
    );
}

#[test]
fn spark_adds_up_what_the_histograms_say() {
    if !std::env::var("TENURE_MATRIX").is_ok_and(|v| v == "all") {
        return testkit::skip(
            "Spark over exported dumps",
            testkit::Need::Matrix,
            "it takes a minute; TENURE_MATRIX=all runs it",
        );
    }
    let java = testkit::jvm::jdks().into_iter().rfind(|j| j.version == 17);
    let (true, Some(java)) = (python_has("pyspark"), java) else {
        return testkit::skip(
            "Spark over exported dumps",
            testkit::Need::Program,
            "needs JDK 17 and python3 with pyspark (pip install pyspark)",
        );
    };
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    fleet(at);
    let out = Command::new("python3")
        .arg(workspace().join("fleet/spark_job.py"))
        .args([at.join("tables"), at.join("answers")])
        .args(["--master", "local[2]"])
        .env("JAVA_HOME", &java.home)
        .output()
        .expect("python3");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let rows = |name: &str| -> Vec<Json> {
        let files = fs::read_dir(at.join("answers").join(name))
            .expect(name)
            .flatten();
        let files = files.filter(|f| f.path().extension().is_some_and(|e| e == "json"));
        let text: String = files
            .map(|f| fs::read_to_string(f.path()).expect("text"))
            .collect();
        text.lines()
            .map(|l| serde_json::from_str(l).expect("JSON"))
            .collect()
    };
    check(
        &rows("totals"),
        &rows("growing_classes"),
        &rows("shared_leaks"),
        &rows("outliers"),
        &histograms(at),
    );
}

#[test]
fn text_tables_are_whole_and_harmless() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    fs::write(at.join("a.hprof"), service(50)).expect("the dump");
    run(
        at,
        &[
            "export",
            "a.hprof",
            "-o",
            "csv",
            "--format",
            "csv",
            "--objects",
            "-q",
        ],
        0,
    );
    run(
        at,
        &["export", "a.hprof", "-o", "csv", "--format", "csv", "-q"],
        2,
    );
    let classes = fs::read_to_string(at.join("csv/classes/a.hprof.csv")).expect("a table");
    assert!(
        classes.starts_with("service,dump,timestamp_ms,class,"),
        "{classes}"
    );
    assert!(classes.contains(",\"evil.=cmd,\"\"x\"\"\","), "{classes}");
    // A row per object and per reference that is not one to a class.
    let summary: Json =
        serde_json::from_str(&run(at, &["summary", "--json", "a.hprof"], 0)).expect("JSON");
    let objects = fs::read_to_string(at.join("csv/objects/a.hprof.csv")).expect("a table");
    let reachable = summary["reachable"]["objects"].as_u64().expect("a number");
    assert_eq!(objects.lines().count() as u64, reachable + 1);
    let references = fs::read_to_string(at.join("csv/references/a.hprof.csv")).expect("a table");
    let elements = references.lines().filter(|l| l.contains(",[")).count();
    assert_eq!(elements, 50);
    // The same as JSON lines, and for a graph database.
    run(
        at,
        &[
            "export", "a.hprof", "-o", "lines", "--format", "ndjson", "--name", "x/../y", "-q",
        ],
        0,
    );
    let lines = fs::read_to_string(at.join("lines/classes/x_.._y.ndjson")).expect("a table");
    let shop = lines
        .lines()
        .map(|l| serde_json::from_str::<Json>(l).expect("JSON"));
    let order = shop
        .into_iter()
        .find(|r| r["class"] == "shop.Order")
        .expect("orders");
    assert_eq!(
        (&order["objects"], &order["dump"]),
        (&50.into(), &"x/../y".into())
    );
    run(
        at,
        &[
            "export", "a.hprof", "-o", "graph", "--format", "neo4j", "-q",
        ],
        0,
    );
    let nodes = fs::read_to_string(at.join("graph/objects/a.hprof.csv")).expect("nodes");
    assert!(
        nodes
            .lines()
            .next()
            .is_some_and(|l| l.contains("id:ID") && l.contains(":LABEL")),
        "{nodes}"
    );
    let edges = fs::read_to_string(at.join("graph/references/a.hprof.csv")).expect("edges");
    assert!(
        edges.starts_with("service:string,dump:string,timestamp_ms:long,:START_ID,:END_ID,:TYPE"),
        "{edges}"
    );
}

#[test]
fn sites_are_exported_whatever_their_serials_are() {
    let Some(dump) = testkit::corpus::corpus_dump("x-agent8-dump-b.hprof") else {
        let why = "the shared corpus is not here";
        return testkit::skip("exported sites", testkit::Need::Shared, why);
    };
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    fs::write(at.join("a.hprof"), dump.bytes()).expect("the dump");
    let args = ["export", "a.hprof", "-o", "csv", "--format", "csv", "-q"];
    run(at, &args, 0);
    let table = fs::read_to_string(at.join("csv/sites/a.hprof.csv")).expect("a table");
    let args = ["histogram", "a.hprof", "--by", "site", "--json", "-n", "0"];
    let sites: Json = serde_json::from_str(&run(at, &args, 0)).expect("JSON");
    let rows = sites["rows"].as_array().expect("rows").len();
    // Each row begins with the service; a stack has several lines.
    let exported = table
        .lines()
        .filter(|line| line.contains(",a.hprof,"))
        .count();
    assert!(rows > 1000, "{rows}");
    assert_eq!(exported, rows);
}
