//! Annotations of GitHub Actions: one line per failed check (docs.github.com, workflow commands).

use heap_analysis::compare::check::Check;
use std::fmt::Write;

/// `::error file=…,title=…::message` for each failed check, a notice when all passed.
pub fn render(check: &Check, file: &str) -> String {
    let mut out = String::new();
    for c in check.checks.iter().filter(|c| !c.passed) {
        let _ = writeln!(
            out,
            "::error file={},title={}::{}",
            property(file),
            property(&c.rule),
            data(&c.message)
        );
    }
    if check.passed {
        let _ = writeln!(
            out,
            "::notice file={}::all {} heap checks passed",
            property(file),
            check.checks.len()
        );
    }
    out
}

fn data(text: &str) -> String {
    crate::escape::visible(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
