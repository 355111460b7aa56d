//! The reference of JSON and the schema files against the types that they follow from.

use std::collections::BTreeSet;
use xtask::answers::{ANSWERS, Body, Shape, Types, declared, put, reference, schemas};

/// What writes them.
const WRITE: &str = "cargo run -p xtask --bin answers";

#[test]
fn the_reference_of_json_is_that_of_the_types() {
    let types = declared().expect("the sources");
    let path = xtask::tree::root().join("docs/reference/json.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let part = reference(&types).expect("a type for each answer");
    assert!(put(&text, &part).expect("a place") == text, "{WRITE}");
}

#[test]
fn the_schema_files_are_those_of_the_types() {
    let types = declared().expect("the sources");
    let folder = xtask::tree::root().join("docs/reference/schema");
    for (name, schema) in schemas(&types).expect("a type for each answer") {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        let written = serde_json::from_str::<serde_json::Value>(&text).ok();
        assert!(written == Some(schema), "{name}: {WRITE}");
    }
}

#[test]
fn every_answer_that_is_reported_is_in_the_reference() {
    let types = declared().expect("the sources");
    let printed: BTreeSet<&str> = types.names().collect();
    let listed = ANSWERS.iter().filter(|answer| answer.of.is_none());
    let listed: BTreeSet<&str> = listed.map(|answer| answer.name).collect();
    assert_eq!(printed, listed);
}

#[test]
fn a_new_field_is_one_line_of_a_type() {
    let mut types = Types::default();
    let source = |more: &str| {
        format!(
            "/// Rows.\n#[derive(Serialize)]\npub struct Rows {{\n /// How many.\n pub count: u64,\n{more} \
             /// What is common.\n #[serde(flatten)]\n pub key: Key,\n}}\n\
             /// A key.\n#[derive(Serialize)]\n#[serde(untagged)]\npub enum Key {{ A {{ /// A name.\n name: String }}, \
             B {{ name: String, /// A number.\n id: Option<i64> }} }}\n"
        )
    };
    let fields = |types: &Types| {
        let rows = types.find("Rows", "a/src/rows.rs").expect("a type");
        let fields = types.members(rows).expect("an object");
        let name = |field: &xtask::answers::Field| (field.name.clone(), field.may_lack);
        fields.iter().map(name).collect::<Vec<_>>()
    };
    types.add("a/src/rows.rs", &source("")).expect("Rust");
    let named = |pairs: &[(&str, bool)]| {
        let pairs = pairs
            .iter()
            .map(|(name, lacks)| ((*name).to_owned(), *lacks));
        pairs.collect::<Vec<_>>()
    };
    let before = [("count", false), ("name", false), ("id", true)];
    assert_eq!(fields(&types), named(&before));
    let more = "/// Largest first.\n #[serde(skip_serializing_if = \"Vec::is_empty\")]\n pub largest: Vec<Bytes>,\n";
    let mut types = Types::default();
    types.add("a/src/rows.rs", &source(more)).expect("Rust");
    types
        .add(
            "a/src/bytes.rs",
            "#[derive(Serialize)]\npub struct Bytes(pub u64);",
        )
        .expect("Rust");
    let after = [
        ("count", false),
        ("largest", true),
        ("name", false),
        ("id", true),
    ];
    assert_eq!(fields(&types), named(&after));
    let bytes = types.find("Bytes", "a/src/rows.rs").expect("a type");
    assert_eq!(bytes.body, Body::As(Shape::Whole));
}
