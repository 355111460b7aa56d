//! Rules about files: names of machines, phrases, lengths, front doors, lints, `unsafe`.

use crate::source::{code_only, comments_only, functions, sentences_only};
use crate::words::{NAMES, PHRASES};

/// A Rust file stays under this many lines unless [`TABLES`] names it.
pub const MAX_LINES: usize = 700;

/// A function stays under this many lines unless [`TABLES`] names its file. The design requests
/// about 80; this is where a test fails.
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

/// Whether a file is a document for users, whose phrases are checked.
pub fn is_for_users(path: &str) -> bool {
    let top = [
        "README",
        "SECURITY",
        "CONTRIBUTING",
        "COMPARE",
        "CHANGELOG",
        "ARCHITECTURE",
    ];
    let is_top = path
        .strip_suffix(".md")
        .is_some_and(|name| top.contains(&name));
    is_top || path.starts_with("docs/") && path.ends_with(".md")
}

/// Phrases of [`PHRASES`] in a document, outside of code spans and code blocks. Of the changelog only
/// the part that is not released yet is checked.
pub fn phrases(path: &str, text: &str) -> Vec<String> {
    let is_changelog = path == "CHANGELOG.md";
    let released = text.match_indices("\n## ").nth(1).filter(|_| is_changelog);
    let words = prose_words(&text[..released.map_or(text.len(), |(at, _)| at)]);
    let mut found = Vec::new();
    for (phrase, better) in PHRASES {
        let wanted: Vec<&str> = phrase.split(' ').collect();
        let places = words
            .windows(wanted.len())
            .filter(|place| place.iter().map(|(_, word)| word).eq(&wanted));
        found.extend(places.map(|place| {
            let line = place[0].0;
            format!("{path}:{line}: \"{phrase}\"; better: {better}")
        }));
    }
    found
}

/// Words of [`NAMES`] in the names of Rust, JavaScript or Java code.
pub fn names(path: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let mut found = Vec::new();
    for (i, line) in code.lines().enumerate() {
        let names = line.split(|c: char| !c.is_ascii_alphanumeric());
        for word in names.flat_map(camel_words) {
            let known = NAMES
                .iter()
                .find(|(banned, _)| word.eq_ignore_ascii_case(banned));
            found.extend(known.map(|(banned, better)| {
                format!(
                    "{path}:{}: a name with \"{banned}\"; better: {better}",
                    i + 1
                )
            }));
        }
    }
    found
}

/// The words of a name in camel case; a name in capitals is one word.
fn camel_words(name: &str) -> Vec<&str> {
    let bytes = name.as_bytes();
    let is_start =
        |at: &usize| bytes[*at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
    let mut starts: Vec<usize> = (1..bytes.len()).filter(is_start).collect();
    starts.push(name.len());
    let mut from = 0;
    let word = |end: &usize| &name[std::mem::replace(&mut from, *end)..*end];
    starts.iter().map(word).collect()
}

/// Phrases of [`PHRASES`] in the comments of Rust, JavaScript or Java code.
pub fn comment_phrases(path: &str, text: &str) -> Vec<String> {
    phrases(path, &comments_only(text))
}

/// Whether the comments and names of a file are checked.
pub fn has_comments(path: &str) -> bool {
    let is_code = [".rs", ".js", ".java"]
        .iter()
        .any(|end| path.ends_with(end));
    is_code && path.starts_with("crates/")
}

/// Phrases of [`PHRASES`] in the messages, labels and help texts of Rust, JavaScript or Java code; tests at the end of a file
/// are left out.
pub fn text_phrases(path: &str, text: &str) -> Vec<String> {
    let tests = text.find("#[cfg(test)]\nmod tests");
    phrases(path, &sentences_only(&text[..tests.unwrap_or(text.len())]))
}

/// Whether the texts of a file are for users.
pub fn has_texts(path: &str) -> bool {
    let own = "crates/xtask/";
    let is_shipped = path.contains("/src/") || path.contains("/web/");
    has_comments(path) && is_shipped && !path.starts_with(own)
}

/// The words of a Markdown text outside of code, in lower case and without `'s`, with their lines.
/// An empty word stands where no phrase continues: at punctuation, code and empty lines.
fn prose_words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let mut in_block = false;
    for (i, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        if in_block || is_fence || line.is_empty() {
            words.push((i + 1, String::new()));
            continue;
        }
        let mut in_span = false;
        let ends_word = |c: char| !c.is_alphanumeric() && c != '\'';
        for piece in line.split_inclusive(ends_word) {
            let word = piece.trim_end_matches(ends_word).to_lowercase();
            if !in_span && !word.is_empty() {
                let word = word.strip_suffix("'s").unwrap_or(&word);
                words.push((i + 1, word.to_owned()));
            }
            if !piece.ends_with(' ') && piece.ends_with(ends_word) {
                words.push((i + 1, String::new()));
            }
            in_span ^= piece.ends_with('`');
        }
    }
    words
}

/// Links of a document to files that do not exist. `exists` takes a path from the root.
pub fn dead_links(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut in_block = false;
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        in_block ^= line.starts_with("```");
        let targets = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next());
        for target in targets.filter(|target| !in_block && !target.contains("://")) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let file = std::path::Path::new(folder).join(target);
            let mut parts: Vec<String> = Vec::new();
            for part in file.components() {
                match part.as_os_str().to_string_lossy() {
                    up if up == ".." => drop(parts.pop()),
                    name => parts.push(name.into_owned()),
                }
            }
            if !target.is_empty() && !exists(&parts.join("/")) {
                found.push(format!("{path}:{}: no file {target}", i + 1));
            }
        }
    }
    found
}

/// Names of source files in the tutorial, a guide or the reference: those are for users.
pub fn source_paths(path: &str, text: &str) -> Vec<String> {
    let is_source = |line: &str| line.contains("crates/") || line.contains(".rs`");
    if path.starts_with("docs/internals/") || !path.starts_with("docs/") {
        return Vec::new();
    }
    lines_where(
        path,
        text,
        "a source file; docs/internals names these",
        is_source,
    )
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

/// Rust files below `crates/` that no other file declares as a module: the compiler passes over
/// them in silence, tests included. Takes all files, by path and text.
pub fn orphans(files: &[(String, String)]) -> Vec<String> {
    let is_rust = |path: &str| path.starts_with("crates/") && path.ends_with(".rs");
    let declares = |(path, text): &(String, String), folder: &str, name: &str| {
        let parents = ["lib.rs", "main.rs", "mod.rs"].map(|parent| format!("{folder}/{parent}"));
        let beside = parents.contains(path) || *path == format!("{folder}.rs");
        beside && code_only(text).contains(&format!("mod {name};"))
            || path.ends_with(".rs") && text.contains(&format!("{name}.rs\"]"))
            || path.ends_with("/Cargo.toml") && text.contains(&format!("/{name}.rs\""))
    };
    let is_orphan = |path: &str| {
        let (folder, file) = path.rsplit_once('/').unwrap_or_default();
        let (folder, name) = match file {
            "lib.rs" | "main.rs" | "build.rs" => return false,
            "mod.rs" => folder.rsplit_once('/').unwrap_or_default(),
            _ => (folder, file.trim_end_matches(".rs")),
        };
        let stands_alone = ["examples", "bin"].iter().any(|own| folder.ends_with(own));
        // A crate with one file of tests needs no list of them.
        let is_test = folder.ends_with("/tests");
        let has_list = files
            .iter()
            .any(|(path, _)| *path == format!("{folder}/main.rs"));
        let is_own_program = stands_alone || (is_test && !has_list);
        !is_own_program && !files.iter().any(|file| declares(file, folder, name))
    };
    let paths = files
        .iter()
        .map(|(path, _)| path)
        .filter(|path| is_rust(path));
    let found = paths.filter(|path| is_orphan(path));
    found
        .map(|path| format!("{path}: no file declares this module"))
        .collect()
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

/// Crates whose code runs in the program's process: all their locks are in the table of ranks (`locks`).
pub const RANKED_CRATES: &[&str] = &[
    "vmpi",
    "classfile",
    "jvmti",
    "vm-hotspot",
    "live-heap",
    "agent-core",
    "agent",
    "jvmpi-bridge",
];

/// A lock of the standard library's in code that runs in the program: it has no rank.
pub fn locks_without_a_rank(path: &str, text: &str) -> Vec<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let is_ours = parts
        .get(1)
        .is_some_and(|name| RANKED_CRATES.contains(name));
    let is_test = parts.get(2) != Some(&"src") || path.ends_with("_tests.rs");
    if !is_ours || is_test {
        return Vec::new();
    }
    let code = code_only(text);
    let mut words = code
        .split(';')
        .filter_map(|statement| statement.split_once("std::sync::"))
        .flat_map(|(_, named)| named.split(|c: char| !c.is_alphanumeric()));
    let found = words.find(|word| ["Mutex", "RwLock", "Condvar"].contains(word));
    let problem = |word| format!("{path}: a {word} without a rank; take that of the crate `locks`");
    found.map(problem).into_iter().collect()
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
/// table of its own, when that requests a note on every block.
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
