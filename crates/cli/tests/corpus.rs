//! The program on real dumps, against the answers of an independent reader: the lists that
//! docs/reference/json.md promises, in the plain layout.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::corpus::{CorpusDump, Expected, corpus};

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

fn tenure(dump: &Path, args: &[&str]) -> Vec<u8> {
    let out = Command::new(TENURE)
        .args(["--layout=plain", "--no-index", "--quiet"])
        .args(args)
        .arg(dump)
        .output()
        .expect("running tenure");
    let code = out.status.code();
    assert!(
        matches!(code, Some(0 | 4)),
        "{args:?} {}: {code:?} {}",
        dump.display(),
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}

fn json(dump: &Path, args: &[&str]) -> Json {
    serde_json::from_slice(&tenure(dump, args)).expect("JSON")
}

/// Runs a check on every dump of the corpus that has a heap and expected answers.
fn each(test: &str, check: impl Fn(&CorpusDump, &Expected)) {
    let Some(dumps) = corpus() else {
        return testkit::skip(test, testkit::Need::Shared, "the shared corpus is not here");
    };
    for dump in &dumps {
        let Some(expected) = &dump.expected else {
            continue;
        };
        if expected.objects.get("total").is_some_and(|n| *n > 0) {
            check(dump, expected);
        }
    }
}

#[test]
fn summaries_agree_with_the_independent_reader() {
    each("summaries", |dump, want| {
        let got = json(&dump.path, &["summary", "--json"]);
        assert_eq!(got["schema"], "tenure.summary/1");
        for (field, value) in [
            ("records", serde_json::to_value(&want.records)),
            ("sub_records", serde_json::to_value(&want.sub_records)),
            ("gc_roots", serde_json::to_value(&want.gc_roots)),
            ("objects", serde_json::to_value(&want.objects)),
            ("format", serde_json::to_value(&want.format)),
            ("id_size", serde_json::to_value(want.id_size)),
            ("timestamp_ms", serde_json::to_value(want.timestamp_ms)),
        ] {
            assert_eq!(got[field], value.expect("JSON"), "{field} of {}", dump.name);
        }
        let reach = &got["reachable"];
        assert_eq!(reach["objects"], want.reachable.objects, "{}", dump.name);
        assert_eq!(
            reach["shallow"], want.reachable.plain_bytes,
            "{}",
            dump.name
        );
    });
}

#[test]
fn histograms_agree_with_the_independent_reader() {
    each("histograms", |dump, want| {
        for mode in ["--all", "--no-retained"] {
            let got = json(&dump.path, &["histogram", "--json", mode]);
            let mut rows: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
            for row in got["rows"].as_array().expect("rows") {
                let number = |field: &str| row[field].as_u64().expect("a number");
                let sum = rows
                    .entry(row["class"].as_str().expect("a name"))
                    .or_default();
                *sum = (sum.0 + number("objects"), sum.1 + number("shallow"));
            }
            for (class, want) in &want.histogram {
                let got = rows.remove(class.as_str());
                let want = Some((want.count, want.plain_bytes));
                assert_eq!(got, want, "{class} in {} {mode}", dump.name);
            }
            assert!(rows.is_empty(), "{rows:?} too many in {} {mode}", dump.name);
        }
    });
}

#[test]
fn dominators_agree_with_the_independent_reader() {
    if Command::new("sha256sum").arg("--version").output().is_err() {
        return testkit::skip(
            "dominators",
            testkit::Need::Program,
            "there is no sha256sum",
        );
    }
    each("dominators", |dump, want| {
        let Some(want) = &want.dominators else {
            return;
        };
        let lines = tenure(&dump.path, &["dominators", "--tsv", "--all"]);
        let text = String::from_utf8(lines).expect("text").replace('\t', " ");
        assert_eq!(sha256(&text), want.sha256_of_all, "{}", dump.name);
    });
}

fn sha256(text: &str) -> String {
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sha256sum");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("writing to it");
    drop(stdin);
    let out = child.wait_with_output().expect("its end");
    String::from_utf8_lossy(&out.stdout[..64]).into_owned()
}

#[test]
fn every_command_answers_every_dump() {
    let Some(dumps) = corpus() else {
        return testkit::skip(
            "every command",
            testkit::Need::Shared,
            "the shared corpus is not here",
        );
    };
    let commands: [&[&str]; 13] = [
        &["overview"],
        &["leaks"],
        &["top"],
        &["threads"],
        &["roots"],
        &["strings"],
        &["loaders"],
        &["unreachable"],
        &["validate"],
        &["histogram", "--by", "package"],
        &["histogram", "--by", "superclass"],
        &["dominators", "--depth", "6"],
        &["report", "-o", "-", "--format", "html"],
    ];
    // Three VMs, not all thirty dumps: their shapes are the same.
    for name in ["modern-jdk21", "RI.hprof", "agent8-dump-b"] {
        for dump in dumps.iter().filter(|d| d.name.contains(name)) {
            for command in commands {
                let text = tenure(&dump.path, command);
                assert!(!text.is_empty(), "{command:?} of {}", dump.name);
                if command[0] != "report" {
                    let mut args = command.to_vec();
                    args.push("--json");
                    let answer = json(&dump.path, &args);
                    assert!(answer["layout"].is_object(), "{command:?}");
                }
            }
        }
    }
}

#[test]
fn every_dump_that_can_be_read_can_be_redacted() {
    let test = "redacted dumps";
    let Some(dumps) = corpus() else {
        return testkit::skip(test, testkit::Need::Shared, "the shared corpus is not here");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("redacted.hprof");
    let run = |args: &[&str]| {
        let ran = Command::new(TENURE).args(args).output();
        let ran = ran.expect("running tenure");
        let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
        (ran.status.code(), printed)
    };
    let (to, mut problems) = (out.to_string_lossy(), Vec::new());
    for dump in &dumps {
        let from = dump.path.to_string_lossy();
        let (code, _) = run(&["summary", "--json", "--no-index", &from]);
        if matches!(code, Some(0 | 4)) {
            let (redacted, printed) = run(&["redact", "--force", "--no-index", "-q", &from, &to]);
            if !matches!(redacted, Some(0 | 4)) {
                problems.push(format!("{}: {redacted:?} {printed}", dump.name));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
