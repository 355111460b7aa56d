//! The first screen.

use super::Say;
use super::dominators::objects_table;
use super::histogram::table;
use super::leaks::suspects_doc;
use super::summary::without_stacks;
use crate::doc::{Doc, Span};
use crate::units::{plural, utc};
use heap_analysis::tables::overview::{Facts, Overview};

/// Facts about the file.
pub fn facts_doc(facts: &Facts) -> Doc {
    let mut file = vec![
        Span::Value(facts.format.clone()),
        Span::from(", "),
        Span::Bytes(facts.bytes),
        Span::Text(format!(", {}-byte ids", facts.id_size)),
    ];
    let written = utc(facts.timestamp_ms);
    if !written.is_empty() {
        file.push(Span::Text(format!(", {written}")));
    }
    let garbage = facts.shallow.0.saturating_sub(facts.reachable_shallow.0);
    let mut rows = vec![("file", file)];
    if let Some(jvm) = &facts.jvm {
        rows.push(("JVM", vec![Span::Value(jvm.clone())]));
    }
    rows.push((
        "in use",
        vec![
            Span::StrongBytes(facts.reachable_shallow.0),
            Span::from(" in "),
            Span::Count(facts.reachable_objects),
            Span::from(" objects; unreachable "),
            Span::Bytes(garbage),
        ],
    ));
    rows.push((
        "holds",
        vec![Span::Text(format!(
            "{}, {}, {}, {}",
            plural(facts.classes, "class", "classes"),
            plural(facts.loaders, "class loader", "class loaders"),
            plural(facts.threads, "thread", "threads"),
            plural(facts.roots, "GC root", "GC roots"),
        ))],
    ));
    if facts.parked_virtual_threads > 0 {
        let threads = without_stacks(facts.parked_virtual_threads);
        let text = format!("some of the unreachable objects can be held by {threads}");
        rows.push(("missing", vec![Span::Text(text)]));
    }
    Doc::new().facts(rows)
}

impl Say for Overview {
    const NAME: &'static str = "overview";

    fn doc(&self) -> Doc {
        let mut doc = facts_doc(&self.facts)
            .heading("Classes by retained size")
            .table({
                let mut table = table(&self.classes, self.facts.reachable_shallow.0);
                table.total = None;
                table
            })
            .heading("Objects by retained size")
            .table(objects_table(&self.objects));
        doc = doc.heading("Leak suspects");
        doc = doc.append(suspects_doc(&self.leaks));
        if self.omitted_suspects > 0 {
            let text = plural(self.omitted_suspects, "more suspect", "more suspects");
            doc = doc.text([Span::Text(format!("… and {text}."))]);
        }
        doc
    }
}
