//! JUnit XML, the format that every build server reads.

use heap_analysis::compare::check::Check;
use std::fmt::Write;

/// One test suite, one test case per check.
pub fn render(check: &Check, file: &str) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"tenure check {}\" tests=\"{}\" failures=\"{}\" errors=\"0\">",
        xml(file),
        check.checks.len(),
        check.failed
    );
    for c in &check.checks {
        let name = format!("{}: {} {}", c.rule, c.subject, c.what);
        let _ = write!(
            out,
            " <testcase classname=\"tenure.check\" name=\"{}\"",
            xml(&name)
        );
        if c.passed {
            out.push_str("/>\n");
        } else {
            let _ = writeln!(
                out,
                ">\n  <failure type=\"{}\" message=\"{}\"/>\n </testcase>",
                c.what,
                xml(&c.message)
            );
        }
    }
    out.push_str("</testsuite>\n");
    out
}

/// Text for an attribute; what XML 1.0 forbids becomes U+FFFD.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in crate::escape::visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
