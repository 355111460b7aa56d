//! Rules about files: names of machines, lengths, front doors, lints, `unsafe`.

use crate::source::{code_only, functions};

/// A Rust file stays under this many lines unless [`TABLES`] names it.
pub const MAX_LINES: usize = 700;

/// A function stays under this many lines unless [`TABLES`] names its file. The design asks for
/// about 80; this is where a test says no.
pub const MAX_FUNCTION_LINES: usize = 120;

/// Files that are tables or generated code and may be long.
pub const TABLES: &[&str] = &[];

/// Crates whose job is a C boundary: `unsafe` is allowed in all of their files.
pub const UNSAFE_CRATES: &[&str] = &["jvmti", "vm-hotspot", "agent", "jvmpi-bridge"];

/// Modules that may hold `unsafe` in any crate, as file or folder.
pub const UNSAFE_MODULES: &[&str] = &["raw", "mmap"];

/// Text that says on which machine a file was made, or by which registry mirror. Written in two
/// halves, so that this file does not contain it.
const MACHINE: &[(&str, &str)] = &[
    ("/wor", "k/"),
    ("/roo", "t/"),
    ("/opt/tar", "get"),
    ("index.cra", "tes.io"),
    ("static.cra", "tes.io"),
    ("arti", "factory"),
    ("pypi", ".org"),
];

/// Names of machines and mirrors in any text file.
pub fn machine_names(path: &str, text: &str) -> Vec<String> {
    let says = |line: &str| {
        MACHINE
            .iter()
            .any(|(a, b)| line.contains(&format!("{a}{b}")))
    };
    lines_where(
        path,
        text,
        "names a machine's path or a registry host",
        says,
    )
}

/// Tabs outside Makefiles, blanks at a line's end, and a missing or doubled last line break.
pub fn whitespace(path: &str, text: &str) -> Vec<String> {
    let bad = |line: &str| line.ends_with([' ', '\t', '\r']) || line.starts_with('\t');
    let mut found = lines_where(path, text, "blanks at an end or a tab", bad);
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        found.push(format!("{path}: must end with one line break"));
    }
    found
}

/// Placeholders left in code.
pub fn placeholders(path: &str, text: &str) -> Vec<String> {
    let says = |line: &str| line.contains("todo!") || line.contains("unimplemented!");
    lines_where(path, &code_only(text), "a placeholder", says)
}

/// A file or function that is too long.
pub fn lengths(path: &str, text: &str) -> Vec<String> {
    if TABLES.contains(&path) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines >= MAX_LINES {
        found.push(format!(
            "{path}: {lines} lines; split it or name it as a table"
        ));
    }
    for (line, length) in functions(&code_only(text)) {
        if length > MAX_FUNCTION_LINES {
            found.push(format!("{path}:{line}: a function of {length} lines"));
        }
    }
    found
}

/// `unsafe` outside the crates and modules that exist for it.
pub fn unsafe_in_the_wrong_place(path: &str, text: &str) -> Vec<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let in_crate = parts
        .get(1)
        .is_some_and(|name| UNSAFE_CRATES.contains(name));
    let in_module = parts
        .iter()
        .any(|p| UNSAFE_MODULES.contains(&p.trim_end_matches(".rs")));
    if in_crate || in_module {
        return Vec::new();
    }
    let word = |w: &str| w == "unsafe" || w == "unsafe_code";
    let says = |line: &str| {
        line.split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(word)
    };
    lines_where(
        path,
        &code_only(text),
        "unsafe outside the places named for it",
        says,
    )
}

/// A `lib.rs` that does not open with a sentence about the crate.
pub fn front_door(path: &str, text: &str) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    let sentence = first.strip_prefix("//! ").unwrap_or_default();
    if sentence.split_whitespace().count() >= 4 {
        return Vec::new();
    }
    vec![format!(
        "{path}: must open with a doc comment that says what the crate is"
    )]
}

/// A manifest that does not take the workspace's lints. A crate with a C boundary may have a
/// table of its own, when that asks for a note on every block.
pub fn lints(path: &str, text: &str) -> Vec<String> {
    let name = path.split('/').nth(1).unwrap_or_default();
    let shared = text.contains("[lints]\nworkspace = true");
    let own = UNSAFE_CRATES.contains(&name) && text.contains("undocumented_unsafe_blocks");
    if shared || own {
        Vec::new()
    } else {
        vec![format!("{path}: needs [lints] workspace = true")]
    }
}

fn lines_where(path: &str, text: &str, why: &str, bad: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = text.lines().enumerate().filter(|(_, line)| bad(line));
    lines
        .map(|(i, _)| format!("{path}:{}: {why}", i + 1))
        .collect()
}
