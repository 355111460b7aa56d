//! The dump of `bench/billions.py`, with fewer objects: its writer knows what each owner retains.

use crate::ran::run;
use serde_json::Value as Json;
use std::path::Path;
use std::process::Command;
use testkit::Need;
use testkit::jvm::{NO_JDK, newest_compiler};

#[test]
fn owners_retain_what_the_writer_of_the_dump_says() {
    let Some(jdk) = newest_compiler().filter(|jdk| jdk.version >= 17) else {
        return testkit::skip("a dump of known retained sizes", Need::Jdk, NO_JDK);
    };
    let dir = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/dumps/Billions.java");
    let mut java = Command::new(jdk.tool("java"));
    java.arg(source).args(["1", "d.hprof"]).current_dir(&dir);
    let written = java.output().expect("java runs");
    assert!(written.status.success(), "{written:?}");
    let truth: Json = serde_json::from_slice(&written.stdout).expect("what is true");
    // The least limit leaves nothing for the arrays, which are files then.
    let args = ["object", "d.hprof", "0x1", "--max-memory", "8M"];
    let refused = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .current_dir(&dir)
        .args(args)
        .output()
        .expect("running tenure");
    let refused = String::from_utf8_lossy(&refused.stderr);
    let least = refused.split("about ").nth(1).expect("the least limit");
    let least: u64 = least.trim().trim_end_matches('M').parse().expect("MiB");
    let least = format!("{}M", least + 1);
    for (limit, cache) in [("1G", "of-memory"), (least.as_str(), "of-files")] {
        for owner in ["ledger", "archive", "catalog"] {
            let id = format!("{:#x}", truth[owner]["id"].as_u64().expect("an id"));
            let limits = ["--max-memory", limit, "--cache-dir", cache];
            let args = [&["object", "--json", "d.hprof", &id], &limits[..]].concat();
            let answer: Json = serde_json::from_str(&run(dir.path(), &args, 0)).expect("JSON");
            assert_eq!(answer["retained"], truth[owner]["retained"], "{owner}");
        }
    }
}
