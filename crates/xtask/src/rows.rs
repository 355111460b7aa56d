//! Which crate may use which. Data only falls, so a crate may use the rows above its own and
//! nothing else; the table has every crate of the design, whether it exists yet or not.

use serde_json::Value as Json;

/// The rows from top to bottom, by name.
pub const ROWS: &[(&str, &[&str])] = &[
    ("ground", &["locks"]),
    ("words", &["vmpi", "classfile", "jvmti", "hprof"]),
    (
        "hosts",
        &[
            "vm-hotspot",
            "refheap",
            "vm-image",
            "hprof-text",
            "private-records",
        ],
    ),
    (
        "models",
        &["live-heap", "profile", "jvm-observe", "heap-graph"],
    ),
    ("answers", &["agent-core", "heap-analysis"]),
    ("questions", &["heap-query", "live-analysis"]),
    ("speech", &["report", "requests"]),
    ("sessions", &["live-session"]),
    ("serving", &["server"]),
    ("doors", &["agent", "jvmpi-bridge", "cli"]),
];

/// The crates beside the flow: no one ships them.
pub const SIDE: &[&str] = &["testkit", "hostile", "xtask"];

/// Uses that the rows would allow and the design's "must not know" column forbids.
pub const FORBIDDEN: &[(&str, &[&str])] = &[
    ("vm-hotspot", &["hprof"]),
    ("refheap", &["hprof", "jvmti", "classfile"]),
    (
        "live-heap",
        &["hprof", "jvmti", "classfile", "vm-hotspot", "refheap"],
    ),
    ("profile", &["jvmti", "classfile", "vm-hotspot", "refheap"]),
    (
        "jvm-observe",
        &["hprof", "jvmti", "classfile", "vm-hotspot", "refheap"],
    ),
    (
        "heap-graph",
        &["jvmti", "classfile", "vmpi", "vm-hotspot", "refheap"],
    ),
    (
        "agent-core",
        &["jvmti", "classfile", "vm-hotspot", "refheap", "heap-graph"],
    ),
    (
        "heap-analysis",
        &["jvmti", "classfile", "vmpi", "vm-hotspot", "refheap"],
    ),
    (
        "live-analysis",
        &["jvmti", "classfile", "vm-hotspot", "refheap", "agent-core"],
    ),
    (
        "heap-query",
        &["jvmti", "classfile", "vmpi", "vm-hotspot", "refheap"],
    ),
    (
        "report",
        &["jvmti", "classfile", "vm-hotspot", "refheap", "agent-core"],
    ),
    (
        "live-session",
        &["jvmti", "classfile", "vm-hotspot", "refheap", "agent-core"],
    ),
    (
        "server",
        &["jvmti", "classfile", "vm-hotspot", "refheap", "agent-core"],
    ),
    (
        "agent",
        &[
            "heap-graph",
            "heap-analysis",
            "heap-query",
            "report",
            "server",
            "refheap",
        ],
    ),
    (
        "jvmpi-bridge",
        &[
            "hprof",
            "heap-graph",
            "heap-analysis",
            "heap-query",
            "report",
            "server",
        ],
    ),
    ("cli", &["jvmti", "classfile", "vm-hotspot"]),
];

/// The crate, by the name of its folder, that a package of cargo holds. What is published has the name of the product
/// in front, because names such as `hprof` and `server` belong to others on crates.io.
pub fn crate_of(package: &str) -> &str {
    match package {
        "tenure" => "cli",
        "tenure-heap" => "heap-graph",
        _ => package.strip_prefix("tenure-").unwrap_or(package),
    }
}

/// The row of a crate, 0 at the top.
pub fn row_of(name: &str) -> Option<usize> {
    ROWS.iter().position(|(_, names)| names.contains(&name))
}

/// What is wrong with the dependencies among workspace members, from the output of
/// `cargo metadata --no-deps`.
pub fn problems(metadata: &Json) -> Vec<String> {
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let name = |v: &Json| crate_of(v["name"].as_str().unwrap_or_default()).to_owned();
    let members: Vec<String> = packages.iter().map(name).collect();
    let mut found = Vec::new();
    for package in packages {
        let user = name(package);
        if row_of(&user).is_none() && !SIDE.contains(&user.as_str()) {
            found.push(format!("{user} is in no row of the design"));
        }
        let dependencies = package["dependencies"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        for dependency in dependencies {
            let used = name(dependency);
            if members.contains(&used) {
                found.extend(problem_of(&user, &used, dependency["kind"].as_str()));
            }
        }
    }
    found
}

/// `kind` is `None` for an ordinary dependency, else `dev` or `build`, as cargo says it.
fn problem_of(user: &str, used: &str, kind: Option<&str>) -> Option<String> {
    let dev = kind == Some("dev");
    if used == "xtask" {
        return Some(format!("{user} uses xtask"));
    }
    if user == "testkit" {
        return Some(format!(
            "testkit uses {used}, but it must know no other crate"
        ));
    }
    if used == "testkit" {
        let is_test = dev || user == "hostile";
        return (!is_test).then(|| format!("{user} uses testkit outside its tests"));
    }
    if dev || SIDE.contains(&user) {
        return None;
    }
    if let (Some(above), Some(own)) = (row_of(used), row_of(user))
        && above >= own
    {
        return Some(format!(
            "{user} uses {used}, which is not in a row above it"
        ));
    }
    let banned = FORBIDDEN.iter().find(|(name, _)| *name == user);
    banned
        .is_some_and(|(_, names)| names.contains(&used))
        .then(|| format!("{user} uses {used}, which it must not know"))
}
