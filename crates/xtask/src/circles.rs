//! Circles between the files of a crate: a file that uses another one, which uses the first, cannot be understood
//! alone. Only `use` lines count; the files that list modules (`mod.rs`, `lib.rs`) are doors, not rooms.

use crate::source::code_only;
use std::collections::{BTreeMap, BTreeSet};

/// Crates whose files use each other in no circle. A crate is added when its last circle is gone.
pub const WITHOUT_CIRCLES: &[&str] = &[
    "agent-core",
    "classfile",
    "cli",
    "heap-analysis",
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
            let last = name.rsplit('/').next()?;
            let is_door = ["mod", "lib", "main"].contains(&last);
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
    let mut at: Vec<&str> = match *parts.peek()? {
        "crate" => Vec::new(),
        "super" | "self" => module.split('/').collect(),
        _ => return None,
    };
    while let Some(part @ ("crate" | "super" | "self")) = parts.peek().copied() {
        parts.next();
        if part == "super" {
            at.pop();
        }
    }
    let mut found = None;
    for part in parts {
        at.push(part);
        let name = at.join("/");
        if rooms.contains_key(&name) {
            found = Some(name);
        }
    }
    found
}
