//! JNI references of a real program on the live page: counted exactly, with what they retain in a
//! heap dump, written by the agent or by the VM itself.

use crate::watched::{Page, lab, run_live_of};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The native half of `References.java` and its class, of the agent's tests.
fn program(folder: &Path) -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/tests");
    let library = folder.join("libreferences.so");
    testkit::jvm::compile_agent(&sources.join("native/references.c"), &[], &library)?;
    let compiler = testkit::jvm::newest_compiler()?;
    compiler
        .compile(&sources.join("java/References.java"), 8, folder)
        .expect("compiled");
    Some(library)
}

/// The rows of a kind that a method made.
fn rows(page: &Page, kind: &str, method: &str) -> Vec<Value> {
    let (status, body) = page.ask(
        "GET",
        &format!("api/v1/references?filter=References.{method}("),
    );
    if status == 404 {
        return Vec::new(); // Nothing has come yet.
    }
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    let rows = answer["rows"].as_array().expect("rows").clone();
    rows.into_iter().filter(|row| row["kind"] == kind).collect()
}

/// Waits until a method has made so many, on all of its lines, and gives how many remain.
fn until(page: &Page, kind: &str, method: &str, created: u64) -> u64 {
    testkit::until(|| {
        page.count();
        let rows = rows(page, kind, method);
        let sum = |field: &str| -> u64 { rows.iter().filter_map(|row| row[field].as_u64()).sum() };
        if sum("created") == created {
            return Ok(sum("remaining"));
        }
        Err(format!("{method}: {rows:?}"))
    })
}

#[test]
fn references_are_counted_and_joined_with_dumps() {
    let Some(lab) = lab("JNI references") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = program(folder.path()) else {
        return;
    };
    let library = library.to_string_lossy();
    for (jdk, mode) in lab.jdks.iter().zip(["full", "sampled"].iter().cycle()) {
        if *mode == "sampled" && jdk.version < 11 {
            continue;
        }
        let at = (folder.path(), &["--record", mode][..]);
        let (mut program, page) =
            run_live_of(lab, jdk, at, (folder.path(), &["References", &library]));
        program.send("leak 7");
        program.send("pass 5");
        program.send("weak 3");
        let what = format!("{mode} on {}", jdk.full_version);
        assert_eq!(until(&page, "global", "leak", 7), 7, "{what}");
        assert_eq!(until(&page, "global", "pass", 5), 0, "{what}");
        assert_eq!(until(&page, "weak", "leakWeakly", 5), 4, "{what}");
        // A range knows what came and went in it, and what was there at its end. What was counted
        // before the first of these is known before the second.
        page.snapshot();
        let middle = page.snapshot();
        program.send("leak 2");
        assert_eq!(until(&page, "global", "leak", 9), 9, "{what}");
        let of = |range: &str| {
            let path = format!("references?filter=References.leak(&{range}={middle}");
            let row = page.json(&path)["rows"][0].clone();
            ["created", "deleted", "remaining"].map(|name| row[name].as_u64())
        };
        assert_eq!(of("from"), [Some(2), Some(0), Some(9)], "{what}");
        assert_eq!(of("to"), [Some(7), Some(0), Some(7)], "{what}");
        let leaked = &rows(&page, "global", "leak")[0];
        assert_eq!(leaked["name"], "References$Held", "{what}");
        assert_eq!(leaked["thread"], "main", "{what}");
        assert_eq!(leaked["held"], Value::Null, "{what}");
        page.command("dump");
        page.until("state", |state| state["dumps"][0]["stage"] == "ready");
        let dump = page.json("state")["dumps"][0].clone();
        assert_eq!(dump["joined"], *mode == "full", "{dump}");
        let held = &rows(&page, "global", "leak")[0];
        assert_eq!(held["held"], 9, "{held} {what}");
        // Nine objects with two longs each, which no other object holds.
        let shallow = held["bytes"].as_u64().expect("bytes");
        assert_eq!(held["retained"], shallow, "{held} {what}");
        assert_eq!(shallow, 9 * (shallow / 9), "{what}");
        assert!((16..=32).contains(&(shallow / 9)), "{held} {what}");
        let csv = page.text("api/v1/references?form=csv&filter=References.leak(");
        assert!(csv.contains("References$Held,global,9,0,9,,"), "{csv}");
        let plain = page.text("plain/references?filter=References");
        assert!(plain.contains("References.leakWeakly"), "{plain}");
    }
}
