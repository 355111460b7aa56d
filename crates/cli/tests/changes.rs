//! `diff` and `check` on a program with a known leak.

use crate::ran::tenure;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::Output;
use testkit::corpus::workspace;
use testkit::jvm::{FreshDump, NO_JDK, jdks, newest_compiler};

fn text(out: &Output) -> String {
    String::from_utf8(out.stdout.clone()).expect("text")
}

fn answer(folder: &Path, args: &[&str], code: i32) -> Json {
    let out = tenure(folder, args);
    let printed = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {printed}");
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}"))
}

/// Dumps of the program after so many leaked sessions, each from a process of its own.
fn dumps(leaked: &[&str]) -> Option<Vec<FreshDump>> {
    let found = jdks();
    let (Some(jdk), Some(_)) = (found.last(), newest_compiler()) else {
        testkit::skip("changes of a program", testkit::Need::Jdk, NO_JDK);
        return None;
    };
    let source = workspace().join("crates/cli/tests/Leak.java");
    let flags = ["-Xmx128m", "-XX:+UseSerialGC"];
    let dump = |n: &&str| jdk.dump(&source, &flags, &[n]).expect("a dump");
    Some(leaked.iter().map(dump).collect())
}

#[test]
fn the_known_leak_is_named_first_and_fails_the_build() {
    let Some(dumps) = dumps(&["1000", "6000", "12000"]) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let files: Vec<PathBuf> = dumps.iter().map(|d| d.path.clone()).collect();
    let names: Vec<&str> = files.iter().map(|f| f.to_str().expect("UTF-8")).collect();

    // Two dumps, and the series of three.
    for names in [vec![names[0], names[2]], names.clone()] {
        let mut args = vec!["diff", "--json"];
        args.extend(&names);
        let diff = answer(at, &args, 0);
        let leak = &diff["grown"][0];
        let path = leak["path"].as_array().expect("a path");
        let place = path.last().expect("a place");
        assert_eq!(
            place["class"], "java.util.concurrent.ConcurrentHashMap$Node[]",
            "{leak}"
        );
        let words: Vec<String> = path
            .iter()
            .map(|g| format!("{} {}", g["field"], g["class"]))
            .collect();
        assert!(
            words
                .iter()
                .any(|w| w == "\"sessions\" \"java.util.concurrent.ConcurrentHashMap\""),
            "{words:?}"
        );
        assert_eq!(
            leak["contents"]["class"],
            "java.util.concurrent.ConcurrentHashMap$Node"
        );
        let counts = leak["contents"]["objects"].as_array().expect("counts");
        // Nodes that collide are dominated by other nodes, so a few are further down.
        let grown = counts.last().and_then(Json::as_u64) > Some(6000);
        assert!(grown && counts.len() == names.len(), "{counts:?}");
        assert_eq!(leak["steady"], true);
        let mut classes = diff["classes"].as_array().expect("classes").iter();
        let session = classes.find(|c| c["class"] == "Leak$Session");
        let session = session.expect("sessions");
        assert_eq!(session["objects"][0], 1000);
        assert_eq!(session["objects"][names.len() - 1], 12000);
        assert_eq!(session["steady"], true);
        // The place has the same signature whatever the dumps.
        assert_eq!(leak["signature"].as_str().map(str::len), Some(16));
    }
    let printed = text(&tenure(at, &["diff", names[0], names[2]]));
    assert!(printed.contains("Growth 1: +"), "{printed}");

    the_gate(at, &names);
}

fn the_gate(at: &Path, names: &[&str]) {
    let base = [
        "check",
        names[0],
        "--write-baseline",
        "base.json",
        "--quiet",
    ];
    assert_eq!(tenure(at, &base).status.code(), Some(0));
    // A file that is there is not overwritten.
    assert_eq!(tenure(at, &base).status.code(), Some(2));
    let against = |file, code, more: &[&str]| {
        let mut args = vec!["check", file, "--baseline", "base.json"];
        args.extend(more);
        let out = tenure(at, &args);
        let printed = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(
            out.status.code(),
            Some(code),
            "{args:?}: {printed}{}",
            text(&out)
        );
        text(&out)
    };
    against(names[0], 0, &[]);
    let printed = against(names[2], 1, &[]);
    assert!(printed.contains("FAILED"), "{printed}");
    let json: Json = serde_json::from_str(&against(names[2], 1, &["--json"])).expect("JSON");
    assert_eq!(json["passed"], false);
    let checks = json["checks"].as_array().expect("checks");
    let leak = checks
        .iter()
        .find(|c| c["what"] == "leak" && c["passed"] == false);
    let title = leak.expect("a new leak")["subject"]
        .as_str()
        .expect("words");
    assert!(title.contains("Leak$Registry"), "{title}");

    // Every form says the same verdict.
    let junit = against(names[2], 1, &["--format", "junit"]);
    assert!(junit.contains("<failure type=\"leak\""), "{junit}");
    let ours = format!("failures=\"{}\"", json["failed"]);
    assert!(junit.contains(&ours), "{junit}");
    let sarif: Json =
        serde_json::from_str(&against(names[2], 1, &["--format", "sarif"])).expect("JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert_eq!(Some(results.len() as u64), json["failed"].as_u64());
    let github = against(names[2], 1, &["--format", "github"]);
    assert_eq!(github.matches("::error file=").count(), results.len());
    assert!(against(names[0], 0, &["--format", "github"]).starts_with("::notice"));
    assert!(against(names[2], 1, &["--format", "md"]).contains("FAILED"));

    let rules = "[[rule]]\nclass = 'Leak$Sess*'\ncount = 5000\n[[rule]]\nclass = 'Leak$Session'\nretained = '+50%'\n";
    std::fs::write(at.join("rules.toml"), rules).expect("rules");
    let out = answer(
        at,
        &[
            "check",
            names[2],
            "--rules",
            "rules.toml",
            "--baseline",
            "base.json",
            "--json",
        ],
        1,
    );
    assert_eq!(out["failed"], 2);
    assert_eq!(
        (&out["checks"][0]["found"], &out["checks"][0]["limit"]),
        (&12000.into(), &5000.into())
    );
    answer(
        at,
        &[
            "check",
            names[0],
            "--rules",
            "rules.toml",
            "--baseline",
            "base.json",
            "--json",
        ],
        0,
    );
    // The other name of the command, and invalid arguments.
    let out = tenure(at, &["gate", names[0], "--rules", "rules.toml"]);
    let printed = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{printed}");
    assert!(printed.contains("baseline"), "{printed}");
    std::fs::write(at.join("wrong.toml"), "[[rule]]\ncount = 'lots'\n").expect("rules");
    for args in [
        &["check", names[0]][..],
        &["check", names[0], "--rules", "wrong.toml"],
        &["check", names[0], "--baseline", "rules.toml"],
    ] {
        assert_eq!(tenure(at, args).status.code(), Some(2), "{args:?}");
    }
}
