//! `tenure query` as a user meets it: forms, exit codes, places of errors, damaged dumps.

use crate::ran::tenure;
use std::path::Path;
use std::process::Command;
use testkit::dump::{Heap, IdSize, Root, Type, Value};

fn stdout(folder: &Path, args: &[&str]) -> String {
    let output = tenure(folder, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Three nodes in a chain, and a text that would break a line of CSV.
fn dump() -> Vec<u8> {
    let mut heap = Heap::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let fields = [("next", Type::Object), ("n", Type::Int)];
    let node = heap.class("a/Node", object, &fields);
    let mut above = 0;
    for n in 1..=3 {
        above = heap.instance(node, &[Value::Object(above), Value::Int(n)]);
    }
    heap.root(Root::StickyClass, node);
    heap.set_static(node, "head", Value::Object(above));
    let text = heap.string("say \"a,b\"\u{1b}[31m");
    heap.root(Root::Unknown, text);
    heap.bytes()
}

fn folder(bytes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.hprof"), bytes).expect("writing the dump");
    folder
}

#[test]
fn one_answer_in_every_form() {
    let folder = folder(&dump());
    let ask = |args: &[&str]| stdout(folder.path(), &[&["query", "a.hprof"], args].concat());
    let words = ask(&["select class, count(*) from objects where class = 'a.Node' group by class"]);
    assert!(
        words.starts_with("class   count(*)\na.Node         3\n"),
        "{words}"
    );
    let json = ask(&["--json", "SELECT x, x.n FROM a.Node x WHERE x.n > 2"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "tenure.query/1");
    assert_eq!(json["lang"], "oql");
    assert_eq!(json["columns"], serde_json::json!(["x", "x.n"]));
    assert_eq!(json["rows"][0][1], 3);
    // The id is one that other commands take.
    let id = json["rows"][0][0].as_str().expect("an id");
    let object = stdout(folder.path(), &["object", "a.hprof", id]);
    assert!(object.contains("a.Node"), "{object}");
    let csv = ask(&["--csv", "select value, length from strings"]);
    assert_eq!(csv, "value,length\r\n\"say \"\"a,b\"\"\\u{1b}[31m\",14\r\n");
    let words = ask(&["select value from strings"]);
    assert!(
        !words.contains('\u{1b}'),
        "escape codes of the dump are shown, not sent"
    );
}

/// The id of one answer, without quotes in the next query.
#[test]
fn an_id_needs_no_quotes_in_sql() {
    let folder = folder(&dump());
    let ask = |text: &str| stdout(folder.path(), &["query", "--json", "a.hprof", text]);
    let json =
        |text: &str| -> serde_json::Value { serde_json::from_str(&ask(text)).expect("JSON") };
    let nodes = json("select id from objects where class = 'a.Node'");
    let id = nodes["rows"][1][0].as_str().expect("an id");
    let found = json(&format!("select id, class from objects where id = {id}"));
    assert_eq!(found["rows"], serde_json::json!([[id, "a.Node"]]));
}

#[test]
fn a_class_that_the_dump_does_not_have_is_named_with_a_similar_one() {
    let folder = folder(&dump());
    let ask = |args: &[&str]| tenure(folder.path(), &[&["query", "a.hprof"], args].concat());
    let note = "The dump has no class a.Nod; did you mean a.Node?";
    let query = "SELECT * FROM a.Nod n WHERE n.n > 2";
    for (form, is_error) in [(&[][..], false), (&["--json"], false), (&["--csv"], true)] {
        let output = ask(&[form, &["--lang", "oql", query]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let bytes = if is_error {
            output.stderr
        } else {
            output.stdout
        };
        let text = String::from_utf8(bytes).expect("text");
        assert!(text.contains(note), "{text}");
    }
}

#[test]
fn a_limit_that_is_no_number_of_rows_is_refused_by_name() {
    let folder = folder(&dump());
    for command in ["top", "query", "strings"] {
        for limit in ["-1", "many"] {
            let output = tenure(folder.path(), &[command, "heap.hprof", "-n", limit]);
            let printed = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{printed}");
            assert!(
                printed.contains("expected a number of rows, 0 for all"),
                "{printed}"
            );
        }
    }
}

#[test]
fn limits_and_lists() {
    let folder = folder(&dump());
    let ask = |args: &[&str]| stdout(folder.path(), &[&["query", "a.hprof"], args].concat());
    let cut = ask(&["--limit", "2", "select n from a.Node"]);
    assert!(cut.contains("more rows"), "{cut}");
    let json = ask(&["--json", "--limit", "2", "select n from a.Node"]);
    assert!(json.contains("\"cut\": \"rows\""), "{json}");
    assert!(ask(&["--tables"]).contains("dominator_path"));
    assert!(ask(&["--explain", "select * from objects where id = '0x1'"]).contains("objects"));
}

#[test]
fn temporary_files_of_sorts_and_of_json_are_limited() {
    let folder = folder(&dump());
    let numbers = "with recursive n(i) as (select 1 union all select i + 1 from n limit 200000)";
    let sorted =
        format!("{numbers} select sum(i) from (select i from n order by hex(i) limit 199999)");
    let rows = format!("{numbers} select i, hex(zeroblob(20)) from n");
    for (text, message) in [
        (
            sorted,
            "the temporary files of the query exceed their limit, 1 MiB",
        ),
        (
            rows,
            "the temporary file for the rows exceeds --max-temporary, 1048576 bytes",
        ),
    ] {
        let args = ["query", "a.hprof", &text, "--json", "--max-temporary", "1M"];
        let output = tenure(folder.path(), &args);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(printed.contains(message), "{printed}");
        assert!(!output.status.success(), "{output:?}");
    }
}

#[test]
fn a_time_limit_is_named_with_what_was_found_and_has_its_own_exit_code() {
    let folder = folder(&dump());
    let numbers = "with recursive n(i) as (select 1 union all select i+1 from n)";
    let endless = format!("{numbers} select max(i) from n");
    let late = |args: &[&str], text: &str| {
        let args = [&["query", "a.hprof", text, "--timeout", "100ms"], args].concat();
        let output = tenure(folder.path(), &args);
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (text(output.stdout), text(output.stderr))
    };
    let none = "The time limit ended the query before it found a row.";
    let (printed, _) = late(&[], &endless);
    assert!(
        printed.starts_with(none) && !printed.contains("no rows"),
        "{printed}"
    );
    let (_, noted) = late(&["--csv"], &endless);
    assert!(noted.contains(none), "{noted}");
    let some = format!("{numbers} select i from n where i < 3 or i > 1e15");
    let found =
        "The time limit ended the query: partial result, the 2 rows that were found until then.";
    let (printed, _) = late(&[], &some);
    assert!(
        printed.contains(found) && !printed.contains("no rows"),
        "{printed}"
    );
    let (printed, noted) = late(&["--csv"], &some);
    assert!(
        printed == "i\r\n1\r\n2\r\n" && noted.contains(found),
        "{noted}"
    );
    let (printed, _) = late(&["--json"], &some);
    assert!(printed.contains("\"cut\": \"time\""), "{printed}");
    for text in [
        "SELECT * FROM a.Node",
        "select n from a.Node n",
        "select n from \"a.Node\"",
        "select value from strings",
    ] {
        let output = tenure(
            folder.path(),
            &["query", "a.hprof", text, "--timeout", "0s"],
        );
        assert_eq!(output.status.code(), Some(5), "{text}: {output:?}");
        assert!(output.stdout.starts_with(none.as_bytes()), "{output:?}");
    }
}

#[test]
fn a_fault_of_the_text_is_shown_at_its_place() {
    let folder = folder(&dump());
    let output = tenure(
        folder.path(),
        &["query", "a.hprof", "select frm from objects"],
    );
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stderr).expect("text");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0].find("frm"), lines[1].find('^'), "{printed}");
    for part in [
        "no such column: frm",
        "taken for sql, the other languages are oql and jhat",
        "(line 1, column 8)",
    ] {
        assert!(lines[2].contains(part), "{printed}");
    }
    for args in [
        &["query", "a.hprof"][..],
        &["query", "a.hprof", "select 1", "--timeout", "soon"],
    ] {
        assert_eq!(
            tenure(folder.path(), args).status.code(),
            Some(2),
            "{args:?}"
        );
    }
    assert_eq!(
        tenure(folder.path(), &["query", "absent", "select 1"])
            .status
            .code(),
        Some(3)
    );
}

#[test]
fn a_wrong_query_has_the_same_exit_code_in_each_language() {
    let folder = folder(&dump());
    for (text, part) in [
        ("select * from nosuch", "taken for sql"),
        ("select * from referencs", "did you mean references?"),
        ("select count(*) from instanceof a.Node", "taken for sql"),
        ("select (", "taken for sql"),
        ("select x.@nope from a.Node x", "taken for oql"),
        ("heap.classes(", "JavaScript:"),
        ("select x from a.Node x where x.n && (", "taken for jhat"),
        ("select classof(x).y from absent.Node x", "taken for jhat"),
        ("heap.objects('absent.Node')", "taken for jhat"),
        ("", "the query is empty"),
        ("  ", "the query is empty"),
    ] {
        let output = tenure(folder.path(), &["query", "a.hprof", text]);
        assert_eq!(output.status.code(), Some(2), "{text}: {output:?}");
        let printed = String::from_utf8(output.stderr).expect("text");
        assert!(printed.contains(part), "{text}: {printed}");
    }
}

#[test]
#[cfg(unix)]
fn temporary_files_that_cannot_be_written_are_no_fault_of_the_query() {
    let folder = folder(&dump());
    // The index is written without the limit.
    stdout(folder.path(), &["summary", "a.hprof"]);
    let sorted = "with recursive n(x) as (select 1 union all select x + 1 from n where x < 200000)
                  select x from n order by hex(x) || hex('a text that makes the rows longer')";
    for (blocks, code) in [("unlimited", 0), ("100", 3)] {
        let out = Command::new("sh")
            .current_dir(folder.path())
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f $1; shift; exec \"$@\"",
                "sh",
                blocks,
            ])
            .args([env!("CARGO_BIN_EXE_tenure"), "query", "a.hprof", sorted])
            .args(["--limit", "1"])
            .output()
            .expect("running tenure");
        let printed = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{blocks}: {printed}");
        let is_named = printed.contains("temporary files of the query");
        assert_eq!(is_named, code == 3, "{blocks}: {printed}");
    }
}

#[test]
fn a_damaged_dump_is_answered_with_its_damage_named() {
    let whole = dump();
    let folder = folder(&whole[..whole.len() - 40]);
    for text in [
        "select count(*) from objects",
        "SELECT * FROM a.Node",
        "select * from references",
    ] {
        let output = tenure(folder.path(), &["query", "a.hprof", text]);
        assert_eq!(output.status.code(), Some(4), "{text}: {output:?}");
        assert!(!output.stdout.is_empty(), "{text}");
        let csv = tenure(folder.path(), &["query", "--csv", "a.hprof", text]);
        assert_eq!(csv.status.code(), Some(4), "{text}");
    }
}

#[test]
fn a_dump_is_analyzed_where_the_system_starts_no_further_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let packed = testkit::corpus::workspace().join("demo/leak-small.hprof.gz");
    std::fs::copy(&packed, folder.path().join("leak.hprof.gz")).expect("the dump of the demo");
    let dump = testkit::corpus::unpacked(&packed);
    std::fs::write(folder.path().join("leak.hprof"), dump).expect("a dump");
    let commands: [&[&str]; 9] = [
        &["report", "leak.hprof", "-o", "-", "--format", "json"],
        &["report", "leak.hprof.gz", "-o", "-", "--format", "json"],
        &["leaks", "leak.hprof"],
        &["strings", "leak.hprof"],
        &["collections", "leak.hprof"],
        &["waste", "leak.hprof", "--set", "retained:package:java.util"],
        &["unreachable", "leak.hprof"],
        &["diff", "leak.hprof", "leak.hprof.gz"],
        &[
            "query",
            "leak.hprof",
            "select count(*), sum(retained) from objects",
        ],
    ];
    for command in commands {
        let run = |stack: Option<&str>| {
            let mut tenure = Command::new(env!("CARGO_BIN_EXE_tenure"));
            tenure
                .args(command)
                .arg("--no-index")
                .current_dir(folder.path());
            if let Some(bytes) = stack {
                tenure.env("RUST_MIN_STACK", bytes);
            }
            let ran = tenure.output().expect("running tenure");
            let printed = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(
                ran.status.code(),
                Some(0),
                "{command:?}, {stack:?}: {printed}"
            );
            ran.stdout
        };
        // No thread has room for so large a stack.
        let (with, without) = (run(None), run(Some("70368744177664")));
        assert!(with == without, "{command:?}: the answers differ");
    }
}
