//! What `--json` prints against the files of `docs/reference/schema`, which follow from the types as `docs/reference/json.md` does.
//! What `--csv` prints is the same answer as tables.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::json_schema::{misfits, published};
use serde_json::Value;
use testkit::corpus::workspace;

/// Questions to a heap dump, with the schema of their answer; `HEAP` is the dump.
const QUESTIONS: &[(&str, &str)] = &[
    ("HEAP", "overview"),
    ("summary HEAP", "summary"),
    ("histogram HEAP", "histogram"),
    ("histogram HEAP --by package", "histogram"),
    ("histogram HEAP --by loader", "histogram"),
    ("histogram HEAP --by site", "histogram"),
    ("dominators HEAP", "dominators"),
    ("dominators HEAP --by class", "dominator_groups"),
    ("top HEAP", "top"),
    ("leaks HEAP", "leaks"),
    ("leaks HEAP --deep", "leaks"),
    ("object HEAP ID", "object"),
    ("objects HEAP class:shop.Session", "objects"),
    (
        "objects HEAP class:shop.Session --dominators",
        "immediate_dominators",
    ),
    ("objects HEAP class:shop.Session --by class", "histogram"),
    ("objects HEAP class:shop.Session --paths", "merged_paths"),
    ("paths HEAP ID", "paths"),
    ("paths HEAP --class shop.Session", "merged_paths"),
    ("roots HEAP", "roots"),
    ("threads HEAP", "threads"),
    ("strings HEAP", "duplicate_strings"),
    ("strings HEAP --find s", "strings"),
    ("collections HEAP", "collections"),
    ("waste HEAP", "waste"),
    ("loaders HEAP", "loaders"),
    ("properties HEAP", "properties"),
    ("query HEAP --tables", "query_tables"),
    ("unreachable HEAP", "unreachable"),
    ("validate HEAP", "validate"),
    ("query HEAP ALL", "query"),
    ("diff HEAP HEAP", "diff"),
    ("secrets HEAP", "secrets"),
    ("android HEAP", "android"),
    ("collectors --gc generational", "collectors"),
    ("cache ls", "cache"),
    ("events EVENTS", "events"),
    ("profile PROFILE", "profile"),
    ("profile PROFILE --base PROFILE", "profile_difference"),
    ("events EVENTS --object 0x10000020", "trail"),
    ("check HEAP --baseline base.json", "check"),
];

/// Commands that write a file, whose name is their last word, with the schema of what is in it.
const WRITTEN: &[(&str, &str)] = &[
    ("check HEAP --write-baseline base.json", "baseline"),
    ("report HEAP -o report.json", "report"),
];

fn tenure(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("tenure runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
}

/// A folder with what the questions read, and the id of an object.
fn inputs() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    let packed = workspace().join("demo/leak-small.hprof.gz");
    std::fs::write(at.join("heap.hprof"), testkit::corpus::unpacked(&packed)).expect("the dump");
    let profile = "TRACE 300001:\n\ta.B.c(B.java:3)\nCPU SAMPLES BEGIN (total = 9) Sat Nov 21 04:57:27 2026\n   1 100.00% 100.00%       9 300001 a.B.c\nCPU SAMPLES END\n";
    let text = format!("JAVA PROFILE 1.0.1, created Sat Nov 21 04:57:27 2026\n{profile}");
    std::fs::write(at.join("profile.txt"), text).expect("the profile");
    let made = tenure(
        at,
        &["collectors", "--gc", "generational", "--record", "run.vmpi"],
    );
    assert_eq!(made.0, Some(0), "{}", made.2);
    let baseline = ["check", "heap.hprof", "--write-baseline", "base.json"];
    let made = tenure(at, &baseline);
    assert_eq!(made.0, Some(0), "{}", made.2);
    let rows = tenure(
        at,
        &["objects", "heap.hprof", "class:shop.Session", "--json"],
    );
    let rows: Value = serde_json::from_str(&rows.1).expect("JSON");
    let id = rows["rows"][0]["object"].as_str().expect("an object");
    (folder, id.to_owned())
}

/// A question as arguments.
fn arguments<'a>(question: &'a str, id: &'a str, form: &'a str) -> Vec<&'a str> {
    let words = question.split(' ').map(|word| match word {
        "HEAP" => "heap.hprof",
        "EVENTS" => "run.vmpi",
        "PROFILE" => "profile.txt",
        "ID" => id,
        "ALL" => "select * from objects",
        _ => word,
    });
    words.chain([form]).collect()
}

#[test]
fn what_is_printed_is_what_the_schema_files_declare() {
    let (folder, id) = inputs();
    let at = folder.path();
    let mut problems = Vec::new();
    let written = WRITTEN.iter().map(|(question, name)| {
        let words = arguments(question, &id, "--force");
        let (code, _, error) = tenure(at, &words);
        let file = question.rsplit(' ').next().unwrap_or_default();
        let text = std::fs::read_to_string(at.join(file)).unwrap_or_default();
        (*question, *name, (code, text, error))
    });
    let printed = QUESTIONS.iter().map(|(question, name)| {
        let words = arguments(question, &id, "--json");
        (*question, *name, tenure(at, &words))
    });
    for (question, name, (code, out, error)) in written.chain(printed) {
        let Ok(answer) = serde_json::from_str::<Value>(&out) else {
            problems.push(format!("{question}: exit {code:?}, no JSON: {error}"));
            continue;
        };
        let mut found = misfits(&published(name), &answer);
        found.dedup();
        problems.extend(found.iter().map(|what| format!("{question}: {what}")));
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn a_field_that_is_not_declared_or_missing_or_of_another_kind_is_found() {
    let schema = published("roots");
    let (folder, id) = inputs();
    let out = tenure(folder.path(), &arguments("roots HEAP", &id, "--json")).1;
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(misfits(&schema, &answer), [""; 0]);
    let wrong = |change: fn(&mut Value)| {
        let mut answer = answer.clone();
        change(&mut answer);
        misfits(&schema, &answer).len()
    };
    assert_eq!(wrong(|it| it["kinds"][0]["new"] = 1.into()), 1);
    assert_eq!(wrong(|it| it["dangling"] = "1".into()), 1);
    assert_eq!(wrong(|it| it["schema"] = "tenure.roots/2".into()), 1);
    assert_eq!(wrong(|it| it["layout"]["model"] = "other".into()), 1);
    let lacks = |it: &mut Value| {
        it.as_object_mut().map(|fields| fields.remove("kinds"));
    };
    assert_eq!(wrong(lacks), 1);
}

/// The tables of CSV, each as its lines of fields.
fn tables(text: &str) -> Vec<Vec<Vec<String>>> {
    let mut tables = vec![Vec::new()];
    let (mut line, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut field)),
            '\n' if !quoted && line.is_empty() && field.is_empty() => tables.push(Vec::new()),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut field));
                let table = tables.last_mut().expect("one at least");
                table.push(std::mem::take(&mut line));
            }
            _ => field.push(c),
        }
    }
    assert!(!quoted && line.is_empty() && field.is_empty());
    tables
}

#[test]
fn answers_are_printed_as_tables_for_programs() {
    let (folder, id) = inputs();
    let at = folder.path();
    let mut without = Vec::new();
    for (question, _) in QUESTIONS {
        let (code, out, error) = tenure(at, &arguments(question, &id, "--csv"));
        let asked_json = tenure(at, &arguments(question, &id, "--json"));
        assert_eq!(code, asked_json.0, "{question}: {error}");
        assert!(
            !out.contains("\u{1b}") && !out.contains("MiB"),
            "{question}: {out}"
        );
        let found = tables(&out);
        for table in &found {
            let widths: BTreeSet<usize> = table.iter().map(Vec::len).collect();
            assert!(widths.len() <= 1, "{question}: {table:?}");
        }
        if found[0].len() < 2 {
            without.push(*question);
        }
    }
    // A heap without any of these, and profiles without a difference.
    let empty = "profile PROFILE --base PROFILE";
    assert_eq!(without, ["secrets HEAP", "android HEAP", empty]);

    // The numbers are those of JSON, all of them.
    let json = tenure(at, &["histogram", "heap.hprof", "--json"]).1;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let csv = tables(&tenure(at, &["histogram", "heap.hprof", "--csv"]).1);
    let column = |name: &str| {
        csv[0][0]
            .iter()
            .position(|title| title == name)
            .expect("a column")
    };
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!((csv.len(), csv[0].len()), (1, rows.len() + 1));
    for (row, line) in rows.iter().zip(&csv[0][1..]) {
        assert_eq!(row["class"], *line[column("class")]);
        for name in ["objects", "shallow", "retained"] {
            assert_eq!(row[name].to_string(), line[column(name)], "{row}");
        }
    }
    // The facts of a dump are sentences elsewhere.
    let json = tenure(at, &["summary", "heap.hprof", "--json"]).1;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let csv = tables(&tenure(at, &["summary", "heap.hprof", "--csv"]).1);
    let fact = |name: &str| {
        let line = csv[0].iter().find(|line| line[0] == name);
        line.map(|line| line[1].as_str()).unwrap_or_default()
    };
    assert_eq!(
        (csv.len(), &*csv[0][0]),
        (4, &["name", "value"].map(String::from)[..])
    );
    assert_eq!(json["format"], fact("format"));
    for (name, value) in [
        ("id_size", &json["id_size"]),
        ("bytes", &json["bytes"]),
        ("objects", &json["objects"]["total"]),
        ("instances", &json["objects"]["instances"]),
        ("shallow", &json["shallow"]),
        ("reachable_objects", &json["reachable"]["objects"]),
        ("reachable_shallow", &json["reachable"]["shallow"]),
    ] {
        assert_eq!(value.to_string(), fact(name), "{name}");
    }
    assert!(fact("written").starts_with("20"), "{:?}", csv[0]);
    // The suspects are sentences elsewhere.
    let json = tenure(at, &["leaks", "heap.hprof", "--json"]).1;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let suspects = json["suspects"].as_array().expect("suspects");
    let csv = tables(&tenure(at, &["leaks", "heap.hprof", "--csv"]).1);
    assert!(!suspects.is_empty() && csv[0].len() == suspects.len() + 1);
    for (suspect, line) in suspects.iter().zip(&csv[0][1..]) {
        let [_, kind, class, _, _, objects, retained, ..] = line.as_slice() else {
            panic!("{line:?}");
        };
        let facts = (&suspect["kind"], &suspect["class"]);
        assert_eq!(facts, (&kind.as_str().into(), &class.as_str().into()));
        assert_eq!(suspect["instances"].to_string(), *objects);
        assert_eq!(suspect["retained"].to_string(), *retained);
    }
    let (code, _, error) = tenure(at, &["histogram", "heap.hprof", "--csv", "--json"]);
    assert!(
        code == Some(2) && error.contains("cannot be used together"),
        "{error}"
    );
    let (code, _, error) = tenure(at, &["report", "heap.hprof", "--csv"]);
    assert!(
        code == Some(2) && error.contains("tenure export"),
        "{error}"
    );
}
