//! A VM that checks each call of JNI (`-Xcheck:jni`) reports nothing of the agent's.

use std::collections::BTreeSet;

use testkit::jvm::jdks;

use crate::common::MODES;

/// What the VM reports about each signal whose handler is in front of its own. The agent needs these: a fault while the VM
/// walks a stack ends the walk, not the program.
const HANDLERS: [&str; 2] = [
    "Warning: SIGSEGV handler modified!",
    "Warning: SIGBUS handler modified!",
];

/// Warnings among the lines, without the numbers in them.
fn warnings(printed: &str) -> BTreeSet<String> {
    let lines = printed.lines().filter(|line| {
        let line = line.to_ascii_lowercase();
        line.contains("warning") || line.contains("fatal error")
    });
    lines
        .map(|line| line.replace(|c: char| c.is_ascii_digit(), ""))
        .collect()
}

#[test]
fn checks_of_jni_find_nothing_in_the_agent() {
    // Of the others, some print no such warnings.
    const VERSIONS: [u32; 2] = [17, 25];
    const MORE: [&str; 4] = ["wall=10ms", "native=4k", "jni=y", "events=4k"];
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in jdks().iter().filter(|jdk| VERSIONS.contains(&jdk.version)) {
        let run = |options| {
            let ran = lab.run(jdk, options, &["-Xcheck:jni"], &["Known"]);
            let printed = ran.stdout() + &ran.stderr();
            (warnings(&printed), printed)
        };
        let (own, _) = run(None);
        for mode in MODES.iter().chain(&MORE) {
            let (found, printed) = run(Some(mode));
            let news = found.difference(&own);
            let news: Vec<_> = news
                .filter(|line| !HANDLERS.contains(&line.as_str()))
                .collect();
            let what = format!("{mode} on {}: {news:?}", jdk.full_version);
            assert!(news.is_empty(), "{what}\n{printed}");
        }
    }
}
