//! The last row of the timeline in the text format of Prometheus.

use live_analysis::metrics::METRICS;
use live_session::recording::state::Live;
use std::fmt::Write;

/// The metrics page.
pub fn text(live: &Live) -> String {
    let status = live.status().borrow().clone();
    let labels = format!("pid=\"{}\",program=\"{}\"", status.pid, label(&status.name));
    let mut out = String::new();
    let mut put = |name: &str, help: &str, kind: &str, value: f64| {
        let _ = writeln!(
            out,
            "# HELP tenure_{name} {help}\n# TYPE tenure_{name} {kind}"
        );
        let _ = writeln!(out, "tenure_{name}{{{labels}}} {value}");
    };
    put(
        "up",
        "1 while the program runs.",
        "gauge",
        f64::from(u8::from(!status.ended)),
    );
    if let Some(row) = status.rows.last() {
        for metric in METRICS {
            if let Some(value) = row.get(metric.name) {
                let help = match metric.about {
                    "" => metric.title.to_owned(),
                    about => format!("{}: {about}", metric.title),
                };
                put(metric.name, &help, "gauge", value);
            }
        }
    }
    let collections = live.collections();
    put(
        "gc_collections_seen_total",
        "Collections since watching began.",
        "counter",
        collections.count as f64,
    );
    put(
        "gc_pause_seconds_seen_total",
        "Their pauses.",
        "counter",
        collections.pause_ms / 1000.0,
    );
    out
}

/// The value of a label, with the escapes of the format.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
