//! The repository's files against the house rules, and each rule against a file that breaks it.

use xtask::tidy;
use xtask::tree::text_files;
use xtask::words::PHRASES;

type Rule = fn(&str, &str) -> Vec<String>;

fn check(rule: Rule, wanted: impl Fn(&str) -> bool) {
    let files = text_files();
    let looked_at: Vec<_> = files.iter().filter(|(path, _)| wanted(path)).collect();
    assert!(!looked_at.is_empty(), "the rule looks at nothing");
    let problems: Vec<String> = looked_at
        .iter()
        .flat_map(|(path, text)| rule(path, text))
        .collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

fn rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn manifest(path: &str) -> bool {
    path.starts_with("crates/") && path.ends_with("/Cargo.toml")
}

/// Recorded outputs of other programs keep their bytes.
fn written_by_us(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let known = [
        ".rs", ".md", ".toml", ".sh", ".java", ".py", ".yml", ".html", ".css", ".js",
    ];
    known.iter().any(|end| name.ends_with(end)) || name == "x" || path == ".ci/run"
}

fn breaks(rule: Rule, path: &str, text: &str) {
    assert_eq!(rule(path, text).len(), 1, "{path}: {text:?}");
}

fn keeps(rule: Rule, path: &str, text: &str) {
    assert_eq!(rule(path, text), Vec::<String>::new(), "{path}: {text:?}");
}

#[test]
fn no_file_names_a_machine_or_a_registry_host() {
    breaks(
        tidy::machine_names,
        "a.md",
        &format!("see {}", ["/ro", "ot/x"].concat()),
    );
    keeps(
        tidy::machine_names,
        "a.md",
        "see crates/hprof\nand https://crates.io/crates/hprof",
    );
    check(tidy::machine_names, |_| true);
}

#[test]
fn text_files_have_clean_ends_and_no_tabs() {
    breaks(tidy::whitespace, "a.rs", "let a = 1; \n");
    breaks(tidy::whitespace, "a.rs", "\tlet a = 1;\n");
    breaks(tidy::whitespace, "a.rs", "fn main() {}");
    keeps(tidy::whitespace, "a.rs", "fn main() {}\n");
    check(tidy::whitespace, written_by_us);
}

#[test]
fn documents_use_the_words_of_the_field() {
    for (phrase, _) in PHRASES {
        let broken = phrase.replacen(' ', "\n", 1);
        for text in [
            format!("A planted {phrase}, here.\n"),
            format!("A planted\n{}\n", broken.to_uppercase()),
            format!("| `code` | {phrase} |\n"),
        ] {
            let found = tidy::phrases("docs/a.md", &text);
            let names_it = found.iter().any(|f| f.contains(&format!("\"{phrase}\"")));
            assert!(names_it, "{text:?}: {found:?}");
        }
        keeps(tidy::phrases, "docs/a.md", &format!("`{phrase}`\n"));
        let block = format!("```\n{phrase}\n```\nGood words.\n");
        keeps(tidy::phrases, "docs/a.md", &block);
    }
    breaks(
        tidy::phrases,
        "README.md",
        "```sh\nls\n```\nThe peer's `id`.\n",
    );
    keeps(
        tidy::phrases,
        "README.md",
        "The storyteller. It says. No peering.\n",
    );
    let log = "# Changelog\n\n## Unreleased\n\nNew.\n\n## 0.1.0\n\nNobody.\n";
    keeps(tidy::phrases, "CHANGELOG.md", log);
    breaks(tidy::phrases, "CHANGELOG.md", &log.replace("New", "Nobody"));
    for wanted in ["README.md", "CHANGELOG.md", "docs/reference/live.md"] {
        assert!(tidy::is_for_users(wanted), "{wanted}");
    }
    check(tidy::phrases, tidy::is_for_users);
}

#[test]
fn comments_use_the_words_of_the_field() {
    let code = |comment: &str| format!("fn none() {{}}\n{comment}\nlet found = \"nobody\";\n");
    for comment in [
        "// As nobody said.",
        "/// What was\n/// kept.",
        "//! Nobody.",
    ] {
        breaks(tidy::comment_phrases, "a.rs", &code(comment));
    }
    keeps(tidy::comment_phrases, "a.rs", &code("/// See `nobody`."));
    assert!(tidy::has_comments("crates/server/web/dom.js"));
    assert!(!tidy::has_comments("crates/server/Cargo.toml"));
    check(tidy::comment_phrases, tidy::has_comments);
}

#[test]
fn names_in_code_use_the_words_of_the_field() {
    let names = [
        "fn was_told() {}",
        "let saidSo = 1;",
        "struct BirthTimes;",
        "const NOBODY: u8 = 1;",
    ];
    for code in names {
        breaks(tidy::names, "a.rs", code);
    }
    for code in [
        "let tellers = 1;",
        "say(\"nobody\"); // As told.",
        "fn unsaid() {}",
    ] {
        keeps(tidy::names, "a.rs", code);
    }
    check(tidy::names, tidy::has_comments);
}

#[test]
fn texts_for_users_use_the_words_of_the_field() {
    let code = |text: &str| format!("fn none() {{ say(\"{text}\") }} // As told.\n");
    breaks(tidy::text_phrases, "a.rs", &code("As nobody said."));
    breaks(tidy::text_phrases, "a.rs", &code("What was \\\n    kept."));
    for text in ["nobody", "The {peer} is connected.", "See `nobody`."] {
        keeps(tidy::text_phrases, "a.rs", &code(text));
    }
    assert!(tidy::has_texts("crates/server/web/dom.js"));
    assert!(!tidy::has_texts("crates/server/tests/views.rs"));
    check(tidy::text_phrases, tidy::has_texts);
}

#[test]
fn no_placeholder_is_left_in_code() {
    breaks(tidy::placeholders, "a.rs", "fn f() { todo!() }");
    keeps(tidy::placeholders, "a.rs", "// no todo!() here\n");
    check(tidy::placeholders, rust);
}

#[test]
fn files_and_functions_stay_short_unless_they_are_tables() {
    breaks(tidy::lengths, "a.rs", &"// line\n".repeat(tidy::MAX_LINES));
    let body = "    f();\n".repeat(tidy::MAX_FUNCTION_LINES);
    breaks(tidy::lengths, "a.rs", &format!("fn f() {{\n{body}}}\n"));
    keeps(tidy::lengths, "a.rs", "fn f() {}\n");
    check(tidy::lengths, rust);
}

#[test]
fn no_rust_file_is_left_out_of_the_build() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let mut files = vec![
        file("crates/a/src/lib.rs", "mod b;\n"),
        file("crates/a/src/b.rs", "mod c;\n// mod d;\n"),
        file("crates/a/src/b/c.rs", ""),
        file("crates/a/tests/main.rs", "mod e;\n"),
        file("crates/a/tests/e/mod.rs", ""),
        file("crates/b/tests/alone.rs", ""),
    ];
    assert_eq!(tidy::orphans(&files), Vec::<String>::new());
    files.push(file("crates/a/src/b/d.rs", ""));
    files.push(file("crates/a/tests/f.rs", ""));
    assert_eq!(tidy::orphans(&files).len(), 2);
    let problems = tidy::orphans(&text_files());
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn all_locks_of_the_agents_have_a_rank() {
    let (ours, test) = ("crates/agent/src/a.rs", "crates/agent/tests/a.rs");
    let rule = tidy::locks_without_a_rank;
    breaks(rule, ours, "use std::sync::{\n    Arc, Condvar,\n};\n");
    breaks(rule, ours, "static A: std::sync::Mutex<u8> = b();\n");
    for (path, text) in [
        (ours, "use std::sync::Arc;\nuse locks::{Mutex, Rank};\n"),
        (test, "use std::sync::Mutex;\n"),
        ("crates/server/src/a.rs", "use std::sync::Mutex;\n"),
    ] {
        keeps(rule, path, text);
    }
    check(rule, rust);
}

#[test]
fn unsafe_is_only_where_the_design_names_it() {
    let text = "fn f() { unsafe { g() } }";
    breaks(
        tidy::unsafe_in_the_wrong_place,
        "crates/report/src/html.rs",
        text,
    );
    breaks(
        tidy::unsafe_in_the_wrong_place,
        "crates/report/src/lib.rs",
        "#![allow(unsafe_code)]",
    );
    keeps(
        tidy::unsafe_in_the_wrong_place,
        "crates/report/src/html.rs",
        "// unsafe\n\"unsafe\";",
    );
    keeps(
        tidy::unsafe_in_the_wrong_place,
        "crates/hprof/src/source/mmap.rs",
        text,
    );
    keeps(
        tidy::unsafe_in_the_wrong_place,
        "crates/heap-graph/src/raw/column.rs",
        text,
    );
    keeps(
        tidy::unsafe_in_the_wrong_place,
        "crates/agent/src/entry.rs",
        text,
    );
    breaks(
        tidy::unsafe_in_the_wrong_place,
        "crates/agent-core/src/lib.rs",
        text,
    );
    check(tidy::unsafe_in_the_wrong_place, |path| {
        rust(path) && path.starts_with("crates/")
    });
}

#[test]
fn every_crate_opens_with_what_it_is() {
    breaks(tidy::front_door, "crates/a/src/lib.rs", "//! a\n");
    breaks(tidy::front_door, "crates/a/src/lib.rs", "pub mod b;\n");
    keeps(
        tidy::front_door,
        "crates/a/src/lib.rs",
        "//! Bytes to records and back.\n",
    );
    check(tidy::front_door, |path| {
        path.starts_with("crates/") && path.ends_with("src/lib.rs")
    });
}

#[test]
fn every_crate_takes_the_lints_of_the_house() {
    breaks(tidy::lints, "crates/report/Cargo.toml", "[package]\n");
    breaks(
        tidy::lints,
        "crates/report/Cargo.toml",
        "[lints.clippy]\nundocumented_unsafe_blocks = \"warn\"\n",
    );
    keeps(
        tidy::lints,
        "crates/jvmti/Cargo.toml",
        "[lints.clippy]\nundocumented_unsafe_blocks = \"warn\"\n",
    );
    keeps(
        tidy::lints,
        "crates/report/Cargo.toml",
        "[lints]\nworkspace = true\n",
    );
    check(tidy::lints, manifest);
}

#[test]
fn links_of_documents_lead_to_files() {
    let exists = |path: &str| xtask::tree::root().join(path).exists();
    let text = "[a](../README.md) ![b](../no.png)\n[c](https://example.com)\n";
    let found = tidy::dead_links("docs/x.md", text, exists);
    assert_eq!(found, ["docs/x.md:1: no file ../no.png"]);
    let documents = text_files();
    let documents = documents.iter().filter(|(path, _)| path.ends_with(".md"));
    let problems: Vec<String> = documents
        .flat_map(|(path, text)| tidy::dead_links(path, text, exists))
        .collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn documents_for_users_name_no_source_files() {
    let text = "see `crates/hprof/src/tag.rs`\n";
    breaks(tidy::source_paths, "docs/guides/a.md", text);
    keeps(tidy::source_paths, "docs/internals/a.md", text);
    check(tidy::source_paths, |path| path.ends_with(".md"));
}
