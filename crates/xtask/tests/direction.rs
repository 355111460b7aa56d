//! Data only falls: the crates' dependencies against the rows of the design.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value as Json, json};
use xtask::rows::{FORBIDDEN, ROWS, crate_of, problems, row_of};

fn workspace_metadata() -> Json {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(xtask::tree::root())
        .output()
        .expect("cargo runs");
    serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON")
}

#[test]
fn every_crate_uses_only_crates_of_the_rows_above_it() {
    let metadata = workspace_metadata();
    let names: Vec<&str> = metadata["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .filter_map(|p| p["name"].as_str())
        .collect();
    assert!(
        names.contains(&"tenure-hprof") && names.contains(&"tenure"),
        "{names:?}"
    );
    assert_eq!(problems(&metadata), Vec::<String>::new());
}

#[test]
fn folder_and_crate_have_the_same_name() {
    for package in workspace_metadata()["packages"]
        .as_array()
        .expect("packages")
    {
        let manifest = package["manifest_path"]
            .as_str()
            .expect("a path")
            .replace('\\', "/");
        let folder = format!(
            "crates/{}/Cargo.toml",
            crate_of(package["name"].as_str().expect("a name"))
        );
        assert!(manifest.ends_with(&folder), "{manifest}");
    }
}

fn check(user: &str, used: &str, kind: Json, allowed: bool) {
    let metadata = json!({"packages": [
        {"name": user, "dependencies": [{"name": used, "kind": kind}]},
        {"name": used, "dependencies": []},
    ]});
    assert_eq!(
        problems(&metadata).is_empty(),
        allowed,
        "{user} -> {used} {kind}"
    );
}

#[test]
fn the_rule_knows_up_from_down_and_tests_from_code() {
    check("heap-graph", "hprof", Json::Null, true);
    check("hprof", "heap-graph", Json::Null, false);
    check("profile", "heap-graph", Json::Null, false);
    check("cli", "testkit", Json::Null, false);
    check("cli", "testkit", json!("build"), false);
    check("cli", "testkit", json!("dev"), true);
    check("testkit", "hprof", json!("dev"), false);
    check("hprof", "heap-graph", json!("dev"), true);
    check("server", "jvmti", Json::Null, false);
    check("jvmpi-bridge", "hprof", Json::Null, false);
    check("cli", "xtask", Json::Null, false);
    check("newcomer", "hprof", Json::Null, false);
}

#[test]
fn forbidden_uses_name_crates_of_the_rows_above() {
    let all: Vec<&str> = ROWS
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    for (user, used) in FORBIDDEN
        .iter()
        .flat_map(|(u, names)| names.iter().map(move |n| (u, n)))
    {
        assert!(all.contains(user) && all.contains(used), "{user} -> {used}");
        assert!(
            row_of(used) < row_of(user),
            "{user} -> {used} is forbidden by its row already"
        );
    }
}

#[test]
fn the_architecture_describes_exactly_the_crates_that_exist() {
    let path = xtask::tree::root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).expect("ARCHITECTURE.md");
    let described = text
        .lines()
        .filter_map(|line| line.strip_prefix("* **`")?.split('`').next());
    let described: BTreeSet<&str> = described.collect();
    let metadata = workspace_metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let exist: BTreeSet<&str> = packages
        .iter()
        .filter_map(|p| p["name"].as_str().map(crate_of))
        .collect();
    assert_eq!(described, exist);
    let later = text.split("## Later").nth(1).unwrap_or_default();
    for name in ROWS.iter().flat_map(|(_, names)| names.iter()) {
        assert!(
            exist.contains(name) || later.contains(&format!("`{name}`")),
            "{name} is nowhere"
        );
    }
}

/// What `cargo publish` wants of a package, and that its users get all that it is made of.
#[test]
fn published_crates_depend_on_published_crates_and_describe_themselves() {
    let metadata = workspace_metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let is_published = |package: &&Json| package["publish"].is_null();
    let published: BTreeSet<&str> = packages
        .iter()
        .filter(is_published)
        .filter_map(|p| p["name"].as_str())
        .collect();
    assert!(
        published.contains("tenure") && published.contains("tenure-hprof"),
        "{published:?}"
    );
    for package in packages.iter().filter(is_published) {
        let name = package["name"].as_str().expect("a name");
        for key in ["description", "license", "repository"] {
            assert!(package[key].is_string(), "{name} has no {key}");
        }
        if ["tenure", "tenure-hprof", "tenure-heap"].contains(&name) {
            assert!(package["readme"].is_string(), "{name} has no readme");
            for key in ["keywords", "categories"] {
                assert!(
                    package[key].as_array().is_some_and(|all| !all.is_empty()),
                    "{name} has no {key}"
                );
            }
        }
        for used in package["dependencies"].as_array().expect("dependencies") {
            let within = used["path"].is_string() && used["kind"] != "dev";
            let below = used["name"].as_str().expect("a name");
            assert!(
                !within || published.contains(below),
                "{name} needs {below}, which is not published"
            );
            assert!(
                !within || used["req"] != "*",
                "{name} names no version of {below}"
            );
        }
    }
}

/// A terminal view of a program, and a session that has no page, need no web server.
#[test]
fn a_session_and_the_terminal_view_use_no_http_library() {
    let metadata = workspace_metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let mut reached = BTreeSet::new();
    let mut next = vec!["tenure-live-session".to_owned()];
    while let Some(name) = next.pop() {
        let package = packages.iter().find(|package| package["name"] == *name);
        let uses = package.and_then(|package| package["dependencies"].as_array());
        let uses = uses
            .into_iter()
            .flatten()
            .filter(|uses| uses["kind"].is_null());
        next.extend(
            uses.filter_map(|uses| Some(uses["name"].as_str()?.to_owned()))
                .filter(|name| reached.insert(name.clone())),
        );
    }
    assert!(reached.contains("tenure-live-analysis"), "{reached:?}");
    for library in ["axum", "hyper", "tower", "tenure-server"] {
        assert!(!reached.contains(library), "{library}");
    }
    let watch = xtask::tree::root().join("crates/cli/src/watch");
    let files = std::fs::read_dir(watch).expect("a folder");
    for file in files.map(|file| file.expect("a file").path()) {
        let text = std::fs::read_to_string(&file).expect("text");
        assert!(!text.contains("server::"), "{}", file.display());
    }
}
