//! What commands print with `--json`: the types of the answers with the comments of their fields, read from the sources of
//! the crates that declare them. The reference and the JSON Schema files follow; `cargo run -p xtask --bin answers` writes them.

mod reference;
mod schema;
mod types;

pub use reference::reference;
pub use schema::schemas;
pub use types::{Body, Field, Shape, Type, Types};

/// An answer: what prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The middle of the name of its schema, `tenure.NAME/VERSION`.
    pub name: &'static str,
    /// The end of that name.
    pub version: u8,
    /// The commands, without `--json`.
    pub command: &'static str,
    /// The type, for an answer that names its schema itself; the others say it by `Say::NAME`.
    pub of: Option<&'static str>,
}

const fn answer(name: &'static str, command: &'static str) -> Answer {
    Answer {
        name,
        version: 1,
        command,
        of: None,
    }
}

const fn own(name: &'static str, command: &'static str, of: &'static str) -> Answer {
    Answer {
        name,
        version: 1,
        command,
        of: Some(of),
    }
}

impl Answer {
    /// The name of its schema.
    pub fn schema(&self) -> String {
        format!("tenure.{}/{}", self.name, self.version)
    }
}

/// All answers about files, in the order of the reference.
pub const ANSWERS: &[Answer] = &[
    answer("overview", "tenure FILE"),
    answer("summary", "summary"),
    answer("histogram", "histogram, objects --by"),
    answer("dominators", "dominators"),
    answer("dominator_groups", "dominators --by"),
    answer("top", "top"),
    answer("leaks", "leaks"),
    answer("object", "object"),
    answer("objects", "objects"),
    answer("immediate_dominators", "objects --dominators"),
    answer("contents", ""),
    answer("bitmaps", ""),
    answer("bitmap_picture", ""),
    answer("treemap", ""),
    answer("paths", "paths ID"),
    answer("merged_paths", "paths --class, objects --paths"),
    answer("roots", "roots"),
    answer("threads", "threads"),
    answer("strings", "strings --find"),
    answer("duplicate_strings", "strings"),
    answer("collections", "collections"),
    answer("waste", "waste"),
    answer("loaders", "loaders"),
    answer("properties", "properties"),
    answer("query", "query"),
    answer("query_tables", "query --tables"),
    answer("unreachable", "unreachable"),
    answer("validate", "validate"),
    answer("report", "report -o x.json"),
    answer("diff", "diff"),
    answer("check", "check"),
    Answer {
        version: 2,
        ..own("baseline", "check --write-baseline", "Baseline")
    },
    answer("secrets", "secrets"),
    answer("android", "android"),
    own("profile", "profile", "TopProfile"),
    own("profile_difference", "profile --base", "ProfileDifference"),
    own("events", "events", "EventsJson"),
    own("trail", "events --object", "TrailJson"),
    own("collectors", "collectors", "CollectorsJson"),
    own("cache", "cache", "CacheJson"),
];

/// Answers of the addresses of a watched program that are no tables, which describe themselves. They have schema files only.
pub const LIVE: &[Answer] = &[
    own("live.state", "", "Status"),
    own("live.timeline", "", "TimelineAnswer"),
    own("live.stacks", "", "Stacks"),
    own("live.options", "", "Lines"),
    own("live.source", "", "Source"),
];

/// The crates whose types answers consist of.
const CRATES: &[&str] = &[
    "hprof",
    "vmpi",
    "heap-graph",
    "live-heap",
    "profile",
    "heap-analysis",
    "heap-query",
    "report",
    "jvm-observe",
    "live-analysis",
    "live-session",
];

/// The types of this repository.
///
/// # Errors
/// A file that is not Rust.
pub fn declared() -> Result<Types, String> {
    let mut types = Types::default();
    for (path, text) in crate::tree::text_files() {
        let rest = path.strip_prefix("crates/").unwrap_or_default();
        let is_of = rest
            .split_once("/src/")
            .is_some_and(|(name, _)| CRATES.contains(&name));
        if is_of && path.ends_with(".rs") {
            types.add(&path, &text)?;
        }
    }
    Ok(types)
}

/// A document with the generated part in its place.
///
/// # Errors
/// When the document has no place for it.
pub fn put(document: &str, part: &str) -> Result<String, String> {
    let (begin, end) = ("<!-- generated: answers -->\n", "<!-- end -->\n");
    let missing = || "the document has no place for the answers".to_owned();
    let (before, rest) = document.split_once(begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}{part}{end}{after}"))
}

/// The type of an answer.
///
/// # Errors
/// When none is declared.
pub fn root<'t>(types: &'t Types, answer: &Answer) -> Result<&'t Type, String> {
    let place = match answer.name.starts_with("live.") {
        true => "crates/live-session/src/lib.rs",
        false => "crates/report/src/events/mod.rs",
    };
    let found = match answer.of {
        Some(name) => types.find(name, place),
        None => types.of_answer(answer.name),
    };
    found.ok_or_else(|| format!("tenure.{}: no type", answer.name))
}
