//! SARIF 2.1.0: results of a static analysis, as code hosts show them.

use heap_analysis::compare::check::Check;
use serde_json::{Value, json};

/// One run with one result per failed check.
pub fn render(check: &Check, file: &str, version: &str) -> String {
    let failed: Vec<_> = check.checks.iter().filter(|c| !c.passed).collect();
    let results: Vec<Value> = failed
        .iter()
        .map(|c| {
            let print = c.signature.clone();
            let print = print.unwrap_or_else(|| format!("{}/{}/{}", c.rule, c.subject, c.what));
            json!({
                "ruleId": format!("tenure/{}", c.what),
                "level": "error",
                "message": {"text": crate::escape::visible(&c.message)},
                "partialFingerprints": {"tenure/v1": print},
                "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(file)}}}],
            })
        })
        .collect();
    let rules = [
        ("count", "Objects of a class"),
        ("shallow", "Shallow size"),
        ("retained", "Retained size"),
        ("leak", "Leak suspect"),
    ]
    .map(|(id, text)| json!({"id": format!("tenure/{id}"), "shortDescription": {"text": text}}));
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "tenure", "version": version, "rules": rules}},
            "results": results,
        }],
    });
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = crate::json::write_value(&mut out, &log);
    String::from_utf8_lossy(&out).into_owned()
}

/// A path as a relative URI reference.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.replace('\\', "/").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
