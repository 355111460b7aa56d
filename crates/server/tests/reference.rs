//! The generated parts of the reference against the declarations that they follow from.

use live_analysis::allocations::By;
use live_analysis::classes;
use live_analysis::instances::{self, Uniq};
use server::explorer::{describe, view_names};
use server::live::doors;
use server::reference::{parts, schemas};
use std::collections::BTreeSet;
use testkit::corpus::workspace;

/// What writes them.
const WRITE: &str = "cargo run -p tenure-server --example reference";

#[test]
fn the_reference_has_every_view_tool_and_column_as_declared() {
    for part in parts() {
        let path = workspace().join("docs/reference").join(part.document);
        let text = std::fs::read_to_string(path).expect("a document");
        let want = part.put(&text).expect("a place for it");
        assert!(text == want, "{}: {}: {WRITE}", part.document, part.name);
    }
}

/// Answers of a watched program that are no tables.
const OF_TYPES: [&str; 5] = ["state", "timeline", "stacks", "options", "source"];

#[test]
fn the_schema_files_are_those_of_the_declarations() {
    let folder = workspace().join("docs/reference/schema");
    let names: BTreeSet<String> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|file| {
            file.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        // The others follow from the types of the answers (crates/xtask/src/answers).
        .filter(|name: &String| {
            let of = name.strip_prefix("live.");
            let of = of.and_then(|name| name.strip_suffix(".json"));
            of.is_some_and(|name| !OF_TYPES.contains(&name))
        })
        .collect();
    let declared = schemas();
    let want: BTreeSet<String> = declared.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, want, "{WRITE}");
    for (name, schema) in declared {
        let text = std::fs::read_to_string(folder.join(&name)).expect("a schema");
        let written: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(written == schema, "{name}: {WRITE}");
    }
}

#[test]
fn every_view_that_is_answered_is_described_and_no_other() {
    // These are answered by the module of queries.
    let queries = ["query", "query_plan", "query_tables", "complete"];
    let answered: BTreeSet<&str> = view_names().chain(queries).collect();
    let described: BTreeSet<&str> = describe::VIEWS.iter().map(|view| view.name).collect();
    assert_eq!(answered, described);
}

/// The views are the arms of a `match`.
#[test]
fn every_view_of_a_running_program_is_described_and_no_other() {
    let path = workspace().join("crates/server/src/live/doors/views.rs");
    let text = std::fs::read_to_string(path).expect("the addresses");
    let (_, rest) = text.split_once("Ok(match view {").expect("the views");
    let (arms, _) = rest.split_once("_ => return").expect("the last arm");
    let names = arms.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("        \"")?.split_once("\" =>")?;
        Some(name)
    });
    let answered: BTreeSet<&str> = names.collect();
    let described: BTreeSet<&str> = doors::describe::VIEWS
        .iter()
        .map(|view| view.name)
        .collect();
    assert_eq!(answered, described);
}

/// The page has a title for each group, in the order of the declaration.
#[test]
fn the_page_offers_the_words_that_are_declared() {
    for (file, list, words) in [
        ("live_tables.js", "const JAVA = ", &By::WORDS[..]),
        ("live_tables.js", "const NATIVE = ", &By::NATIVE),
        ("live_tables.js", "const sources = ", &classes::SOURCES),
        ("live_objects.js", "const sources = ", &instances::SOURCES),
        ("live_objects.js", "const FORMS = ", &Uniq::WORDS),
    ] {
        let path = workspace().join("crates/server/web").join(file);
        let text = std::fs::read_to_string(path).expect("the module");
        let begin = text.find(list).expect("the list") + list.len();
        let end = text[begin..].find(";\n").expect("its end") + begin;
        let choices = text[begin..end].split("[\"").skip(1);
        let choices = choices.filter_map(|it| it.split('"').next());
        // One that is empty stands for none; numbers at the end are steps, another parameter.
        let found: BTreeSet<&str> = choices
            .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()))
            .filter(|word| !word.is_empty())
            .collect();
        let declared: BTreeSet<&str> = words.iter().copied().collect();
        assert_eq!(found, declared, "{file}: {list}");
    }
}
