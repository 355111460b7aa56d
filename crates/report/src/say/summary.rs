//! Facts about the file, and whether it is complete.

use super::Say;
use crate::doc::{Block, Cell, Doc, Span, Table, number, words};
use crate::units::{plural, utc};
use heap_analysis::tables::summary::FileSummary;
use heap_analysis::tables::validate::Verdict;
use hprof::HeapTag;
use std::collections::BTreeMap;

fn counts(title: &'static str, map: &BTreeMap<String, u64>) -> Table {
    let mut table = Table::new([number("count"), words(title)]);
    for (name, count) in map {
        table.row([Cell::count(*count), Cell::value(name.clone())]);
    }
    table
}

/// The facts with a value each, for programs; unlike in a text, no value is a sentence.
fn values(of: &FileSummary) -> Table {
    let mut table = Table::new([words("name"), words("value")]);
    let mut row = |name, value| {
        table.row([Span::from(name).into(), value]);
    };
    row("format", Cell::value(of.format.clone()));
    row("id_size", Cell::count(of.id_size.into()));
    row("written", Cell::value(utc(of.timestamp_ms)));
    row("bytes", Cell::count(of.bytes));
    row("snapshot", Cell::count(of.snapshot.into()));
    row("snapshots", Cell::count(of.snapshots.into()));
    row("objects", Cell::count(of.objects.total));
    row("classes", Cell::count(of.objects.classes));
    row("instances", Cell::count(of.objects.instances));
    row("object_arrays", Cell::count(of.objects.object_arrays));
    row("primitive_arrays", Cell::count(of.objects.primitive_arrays));
    row("shallow", Cell::bytes(of.shallow));
    row("reachable_objects", Cell::count(of.reachable.objects));
    row("reachable_shallow", Cell::bytes(of.reachable.shallow));
    row(
        "parked_virtual_threads",
        Cell::count(of.parked_virtual_threads),
    );
    table
}

/// Numbers of sub-records by tag, `0x21`, with their standard names.
fn sub_records(map: &BTreeMap<String, u64>) -> Table {
    let mut table = Table::new([number("count"), words("tag"), words("sub-record")]);
    for (hex, count) in map {
        let digits = hex.strip_prefix("0x").unwrap_or(hex);
        let tag = u8::from_str_radix(digits, 16)
            .ok()
            .and_then(HeapTag::from_u8);
        let name = tag.map_or("", HeapTag::name);
        table.row([
            Cell::count(*count),
            Cell::value(hex.clone()),
            Span::from(name).into(),
        ]);
    }
    table
}

/// A note on parked virtual threads whose stacks a dump of JDK 21 does not have.
pub(super) fn without_stacks(threads: u64) -> String {
    plural(
        threads,
        "parked virtual thread whose stack the dump does not have",
        "parked virtual threads whose stacks the dump does not have",
    )
}

impl Say for FileSummary {
    const NAME: &'static str = "summary";

    fn sheet(&self) -> Doc {
        let mut doc = self.doc();
        doc.blocks.retain(|block| !matches!(block, Block::Facts(_)));
        Doc::new().table(values(self)).append(doc)
    }

    fn doc(&self) -> Doc {
        let o = &self.objects;
        let mut facts = vec![
            ("format", vec![Span::Value(self.format.clone())]),
            ("ids", vec![Span::Text(format!("{} bytes", self.id_size))]),
            ("written", vec![Span::Text(utc(self.timestamp_ms))]),
            ("file", vec![Span::Bytes(self.bytes)]),
            (
                "objects",
                vec![
                    Span::Count(o.total),
                    Span::from(", "),
                    Span::Bytes(self.shallow.0),
                    Span::Text(format!(
                        " ({}, {}, {}, {})",
                        plural(o.classes, "class", "classes"),
                        plural(o.instances, "instance", "instances"),
                        plural(o.object_arrays, "object array", "object arrays"),
                        plural(o.primitive_arrays, "primitive array", "primitive arrays"),
                    )),
                ],
            ),
            (
                "reachable",
                vec![
                    Span::Count(self.reachable.objects),
                    Span::from(", "),
                    Span::Bytes(self.reachable.shallow.0),
                ],
            ),
        ];
        if self.snapshots > 1 {
            let text = format!("{} of {}", self.snapshot, self.snapshots);
            facts.push(("snapshot", vec![Span::Text(text)]));
        }
        for note in &self.archive {
            facts.push(("archive", vec![Span::Value(note.clone())]));
        }
        if self.parked_virtual_threads > 0 {
            let text = without_stacks(self.parked_virtual_threads);
            facts.push(("threads", vec![Span::Text(text)]));
        }
        let mut doc = Doc::new()
            .heading("The dump")
            .facts(facts)
            .heading("GC roots")
            .table(counts("kind", &self.gc_roots))
            .heading("Records")
            .table(counts("record", &self.records))
            .heading("Sub-records")
            .table(sub_records(&self.sub_records));
        if !self.heaps.is_empty() {
            let mut table = Table::new([number("objects"), number("shallow"), words("heap")]);
            for (name, heap) in &self.heaps {
                table.row([
                    Cell::count(heap.objects),
                    Cell::bytes(heap.shallow),
                    Cell::value(name.clone()),
                ]);
            }
            doc = doc.heading("Android heaps").table(table);
        }
        doc
    }
}

impl Say for Verdict {
    const NAME: &'static str = "validate";

    fn doc(&self) -> Doc {
        let verdict = if self.whole {
            "The file is whole."
        } else {
            "The file is damaged. Results cover the readable part."
        };
        let mut checks = Table::new([number("count"), words("check")]);
        for check in &self.checks {
            checks.row([Cell::count(check.count), Span::from(check.what).into()]);
        }
        let mut doc = Doc::new()
            .text([Span::Strong(verdict.to_owned())])
            .table(checks);
        if self.dangling_references > 0 {
            let dangling = plural(
                self.dangling_references,
                "reference leads",
                "references lead",
            );
            doc = doc.text([Span::Text(format!(
                "{dangling} to objects that are not in the dump. A JVM with class data sharing writes some hundred of them, from arrays of archived objects."
            ))]);
        }
        if !self.findings.is_empty() {
            let mut table = Table::new([number("offset"), words("record"), words("finding")]);
            for f in &self.findings {
                table.row([
                    Span::Text(f.offset.to_string()).into(),
                    Cell::value(f.record.clone()),
                    Cell::value(f.message.clone()),
                ]);
            }
            table.omitted = self.omitted_findings;
            doc = doc.heading("Findings").table(table);
        }
        doc
    }
}
