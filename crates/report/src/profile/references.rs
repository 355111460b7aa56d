//! Global references of native code, by kind and class, and the stacks that created most of them.

use crate::doc::{Cell, Span, Table, number, words};
use ::profile::Profile;
use serde::Serialize;

/// References of one kind to objects of one class, created at one stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReferenceRow {
    /// `global` or `weak`.
    pub kind: &'static str,
    /// Class of the objects.
    pub class: String,
    /// Number of references created since the recording began.
    pub created: u64,
    /// Number of references that the program deleted.
    pub deleted: u64,
    /// Number of references that exist.
    pub remaining: u64,
    /// Weak ones that exist and whose objects were freed.
    pub cleared: u64,
    /// Shallow bytes of the objects, one for each reference.
    pub bytes: u64,
    /// Milliseconds since the oldest existing one was created.
    pub oldest_ms: u64,
    /// Frames, innermost first.
    pub frames: Vec<String>,
}

/// The rows of a profile, those with most references first; `None` if they were not recorded.
pub fn references(profile: &Profile) -> Option<Vec<ReferenceRow>> {
    let table = profile.references.as_ref()?;
    let row = |row: &::profile::Reference| ReferenceRow {
        kind: if row.weak { "weak" } else { "global" },
        class: profile.names.get(row.class).to_owned(),
        created: row.created,
        deleted: row.deleted,
        remaining: row.remaining(),
        cleared: row.cleared,
        bytes: row.bytes,
        oldest_ms: row.oldest_ms,
        frames: profile.trace_names(row.trace),
    };
    let mut rows: Vec<ReferenceRow> = table.rows.iter().map(row).collect();
    rows.sort_by(|a, b| {
        b.remaining
            .cmp(&a.remaining)
            .then(b.created.cmp(&a.created))
    });
    Some(rows)
}

/// At most `top` of the rows as a table.
pub(super) fn table(rows: &[ReferenceRow], top: usize) -> Table {
    let mut table = Table::new([
        number("remaining"),
        words("kind"),
        number("created"),
        number("deleted"),
        number("cleared"),
        number("shallow"),
        words("class, made by"),
    ]);
    for row in rows.iter().take(top) {
        let by = row.frames.first().map_or("no Java code", String::as_str);
        table.row([
            Cell::count(row.remaining),
            Cell::new([Span::Text(row.kind.to_owned())]),
            Cell::count(row.created),
            Cell::count(row.deleted),
            Cell::count(row.cleared),
            Cell::bytes(hprof::Bytes(row.bytes)),
            Cell::class(row.class.clone()),
        ]);
        let mut by_line: Vec<Cell> = (0..6).map(|_| Cell::empty()).collect();
        by_line.push(Cell::class(by.to_owned()).at_depth(1));
        table.row(by_line);
    }
    table.omitted = rows.len().saturating_sub(top) as u64;
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::top;
    use crate::{Look, terminal};
    use ::profile::Metric;

    #[test]
    fn references_are_reported_with_class_and_maker() {
        let text = "TRACE 300001:\n\tdemo.Lib.hold(Lib.java:3)\n\
            JNI REFERENCES BEGIN (global = 7, weak = 0) now\n\
            rank   kind remaining   created   deleted   cleared     bytes oldest (ms) thread trace class\n\
            1 global 7 10 3 0 112 900 200001 300001 demo.Held\n\
            2 weak 0 2 2 0 0 0 0 300000 byte[]\nJNI REFERENCES END\n";
        let (profile, damage) = ::profile::read(text.as_bytes()).expect("a profile");
        assert!(damage.any_damage(), "300000 has no trace here");
        let rows = references(&profile).expect("recorded");
        assert_eq!((rows[0].remaining, rows[0].created), (7, 10));
        assert_eq!(rows[0].frames, ["demo.Lib.hold"]);
        assert_eq!((rows[1].kind, rows[1].deleted), ("weak", 2));
        let metric = Metric::References;
        let answer = top::top(&profile, metric, Some(10));
        assert_eq!((answer.total, answer.metric), (7, "jni_references"));
        let page = terminal::render(&top::doc(&answer, metric, None), &Look::default());
        assert!(
            page.contains("demo.Held") && page.contains("demo.Lib.hold"),
            "{page}"
        );
        let page = terminal::render(&top::doc(&answer, metric, Some(1)), &Look::default());
        assert!(page.contains("… 1 more row"), "{page}");
    }
}
