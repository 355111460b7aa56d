//! Circles between the files of a crate: a file that uses another one, which uses the first, cannot be understood
//! alone. Only `use` lines count. A `mod.rs` that uses its children makes a circle with a child that uses what the
//! `mod.rs` declares: that belongs into a file below both. `lib.rs` and `main.rs` are doors, not rooms.

use crate::source::code_only;
use std::collections::{BTreeMap, BTreeSet};

/// Crates whose files use each other in no circle. A crate is added when its last circle is gone.
pub const WITHOUT_CIRCLES: &[&str] = &[
    "agent-core",
    "classfile",
    "cli",
    "heap-analysis",
    "heap-graph",
    "heap-query",
    "hostile",
    "hprof",
    "hprof-text",
    "jvm-observe",
    "jvmti",
    "live-analysis",
    "live-session",
    "locks",
    "private-records",
    "refheap",
    "report",
    "requests",
    "server",
    "testkit",
    "vmpi",
    "xtask",
];

/// Circles that stay: the crate, the modules, and why.
pub const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "agent-core",
        "control control/decode control/words",
        "a command has two forms on the line, and each form is a file",
    ),
    (
        "agent-core",
        "options options/file_name options/parse",
        "the options are public, and what reads and completes them is not",
    ),
    (
        "agent-core",
        "output/native_heap output/native_heap/stacks",
        "the stacks are a part of the writer with a file of its own",
    ),
    (
        "cli",
        "args commands session",
        "the command line lists the commands, a command gets the session, and the session has the flags of the command line",
    ),
    (
        "hprof",
        "source source/compressed source/gzip source/mmap",
        "each file unpacks one format, with the options that the parent declares for all",
    ),
    (
        "refheap",
        "collector generational mark_compact mark_compact/collect mark_sweep reference_counting two_space_copying",
        "the parent has the trait of collectors and the list of those that implement it",
    ),
    (
        "refheap",
        "core jvmpi",
        "the core issues the events of the interface, whose calls act on the core",
    ),
    (
        "refheap",
        "script script/run",
        "a script is run on the types in which its parent reads it",
    ),
    (
        "report",
        "events events/compare",
        "a comparison is of two runs as the parent reads them",
    ),
    (
        "report",
        "say say/dominators say/dossier say/histogram say/leaks say/overview say/query say/summary say/threads",
        "each file has the words for one answer, and the parent has the trait that all implement",
    ),
    (
        "server",
        "live live/doors/routes",
        "a route of the pages of a live program opens the explorer of its dumps",
    ),
    (
        "vmpi",
        "dump dump/heap dump/monitor wire wire/batch wire/decode wire/encode wire/row",
        "a dump is a message of the wire, and has the types of values that messages have",
    ),
    (
        "xtask",
        "answers answers/reference answers/schema",
        "two documents are made of the list of answers that the parent has",
    ),
];

/// The modules of a crate, as paths with slashes, and the modules that each uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Modules that use each other in a circle, each circle once. `files` are paths below `src` and texts.
pub fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let uses = uses(files);
    let reach: BTreeMap<&str, BTreeSet<&str>> = uses
        .keys()
        .map(|module| (module.as_str(), reachable(&uses, module)))
        .collect();
    let mut found = BTreeSet::new();
    for (module, all) in reach.iter().filter(|(module, all)| all.contains(*module)) {
        let back = |other: &&&str| reach.get(**other).is_some_and(|all| all.contains(module));
        let circle: Vec<&str> = all.iter().filter(back).copied().collect();
        found.insert(circle.join(" "));
    }
    found.into_iter().collect()
}

/// All modules that a module uses, also through others.
fn reachable<'u>(uses: &'u Uses, from: &str) -> BTreeSet<&'u str> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&str> = uses
        .get(from)
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    while let Some(module) = waiting.pop() {
        if found.insert(module) {
            waiting.extend(uses.get(module).into_iter().flatten().map(String::as_str));
        }
    }
    found
}

fn uses(files: &[(&str, &str)]) -> Uses {
    let rooms: BTreeMap<String, &str> = files
        .iter()
        .filter_map(|(path, text)| {
            let name = path.strip_suffix(".rs")?;
            let is_door = ["lib", "main"].contains(&name.rsplit('/').next()?);
            let name = name.strip_suffix("/mod").unwrap_or(name);
            (!is_door).then(|| (name.to_owned(), *text))
        })
        .collect();
    let used = |module: &String, text: &str| {
        let code = code_only(text);
        // What only tests use is no part of the flow.
        let code = code.split("\nmod tests {").next().unwrap_or_default();
        let statements = code.split(';').filter_map(|it| it.split_once("use "));
        let paths = statements.flat_map(|(_, tree)| expanded(tree));
        let found = paths.filter_map(|path| room_of(&rooms, module, &path));
        found.filter(|room| room != module).collect()
    };
    let all = rooms.iter();
    all.map(|(module, text)| (module.clone(), used(module, text)))
        .collect()
}

/// The paths of a tree such as `a::{b, c::{d, e}}`.
fn expanded(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        return vec![tree.to_owned()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut part, mut parts) = (0, String::new(), Vec::new());
    for c in inner.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    let branches = parts.iter().filter(|part| !part.trim().is_empty());
    branches
        .flat_map(|part| expanded(part))
        .map(|path| format!("{prefix}{path}"))
        .collect()
}

/// The room that a path of a module leads to.
fn room_of(rooms: &BTreeMap<String, &str>, module: &str, path: &str) -> Option<String> {
    let mut parts = path.split("::").map(str::trim).peekable();
    let is_child = |name: &str| rooms.contains_key(&format!("{module}/{name}"));
    let mut at: Vec<&str> = match *parts.peek()? {
        "crate" => Vec::new(),
        "super" | "self" => module.split('/').collect(),
        name if is_child(name) => module.split('/').collect(),
        _ => return None,
    };
    while let Some(part @ ("crate" | "super" | "self")) = parts.peek().copied() {
        parts.next();
        if part == "super" {
            at.pop();
        }
    }
    let mut found = Some(at.join("/")).filter(|name| rooms.contains_key(name));
    for part in parts {
        at.push(part);
        let name = at.join("/");
        if rooms.contains_key(&name) {
            found = Some(name);
        }
    }
    found
}
