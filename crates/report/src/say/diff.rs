//! Changes from dump to dump, and the results of rules.

use super::Say;
use crate::doc::{Cell, Doc, Span, Table, number, words};
use crate::units::plural;
use heap_analysis::compare::check::{Check, Checked};
use heap_analysis::compare::diff::{Change, Diff, GroupChange};
use hprof::Bytes;

fn first(list: &[u64]) -> u64 {
    list.first().copied().unwrap_or(0)
}

fn last(list: &[u64]) -> u64 {
    list.last().copied().unwrap_or(0)
}

fn plain(list: &[Bytes]) -> Vec<u64> {
    list.iter().map(|b| b.0).collect()
}

/// A signed size: `+1.2 MiB`.
fn moved(growth: i64) -> Cell {
    let sign = if growth < 0 { "-" } else { "+" };
    Cell::new([Span::from(sign), Span::Bytes(growth.unsigned_abs())])
}

fn moved_count(from: u64, to: u64) -> Cell {
    let sign = if to < from { "-" } else { "+" };
    Cell::new([Span::from(sign), Span::Count(to.abs_diff(from))])
}

fn label_spans(group: &GroupChange) -> Vec<Span> {
    let mut spans = Vec::new();
    if let Some(field) = &group.label.field {
        spans.push(Span::Value(field.clone()));
        spans.push(Span::from(" → "));
    }
    spans.push(Span::Class(group.label.class.clone()));
    if let Some(name) = &group.label.name {
        spans.push(Span::Value(format!(" \"{name}\"")));
    }
    spans
}

/// `is_series`: there are more than two dumps, so "at every step" has a meaning.
fn changes(doc: Doc, heading: &'static str, list: &[Change], is_series: bool) -> Doc {
    let mut doc = doc;
    for (n, change) in list.iter().enumerate() {
        let mut sentence = vec![Span::Strong(format!("{heading} {}: ", n + 1))];
        sentence.extend(moved(change.growth).spans);
        sentence.push(Span::from(if change.steady && is_series {
            ", at every step, in "
        } else {
            " in "
        }));
        if let Some(place) = change.path.last() {
            sentence.extend(label_spans(place));
        }
        if let Some(holder) = &change.holder {
            sentence.push(Span::from(" of "));
            sentence.push(Span::Strong(holder.clone()));
        }
        if let Some(contents) = change.holding.as_ref().or(change.contents.as_ref()) {
            sentence.push(Span::from(", full of "));
            sentence.push(Span::Class(contents.label.class.clone()));
            sentence.push(Span::from(" ("));
            sentence.push(Span::Count(first(&contents.objects)));
            sentence.push(Span::from(" → "));
            sentence.push(Span::Count(last(&contents.objects)));
            sentence.push(Span::from(" objects)"));
        }
        sentence.push(Span::from("."));
        let mut table = Table::new([
            number("first"),
            number("last"),
            number("growth"),
            number("objects"),
            words("path"),
        ]);
        let path = change.path.iter().chain(&change.contents);
        for (depth, group) in path.chain(&change.holding).enumerate() {
            let retained = plain(&group.retained);
            table.row([
                Span::Bytes(first(&retained)).into(),
                Span::Bytes(last(&retained)).into(),
                moved(group.growth()),
                Cell::new([
                    Span::Count(first(&group.objects)),
                    Span::from(" → "),
                    Span::Count(last(&group.objects)),
                ]),
                Cell::new(label_spans(group)).at_depth(depth),
            ]);
        }
        doc = doc.text(sentence).table(table);
    }
    doc
}

fn groups(
    doc: Doc,
    heading: &'static str,
    list: &[GroupChange],
    omitted: u64,
    newest: bool,
) -> Doc {
    if list.is_empty() {
        return doc;
    }
    let mut table = Table::new([number("objects"), number("retained"), words("group")]);
    for group in list {
        let retained = plain(&group.retained);
        let pick = |l: &[u64]| if newest { last(l) } else { first(l) };
        table.row([
            Cell::count(pick(&group.objects)),
            Span::Bytes(pick(&retained)).into(),
            Cell::new(label_spans(group)),
        ]);
    }
    table.omitted = omitted;
    doc.heading(heading).table(table)
}

/// How many places are not listed.
fn more(doc: Doc, omitted: u64) -> Doc {
    match omitted {
        0 => doc,
        _ => doc.text([Span::Text(format!(
            "… {}",
            plural(omitted, "more place", "more places")
        ))]),
    }
}

impl Say for Diff {
    const NAME: &'static str = "diff";

    fn doc(&self) -> Doc {
        let mut dumps = Table::new([number("objects"), number("shallow"), words("dump")]);
        for dump in &self.dumps {
            dumps.row([
                Cell::count(dump.objects),
                Cell::bytes(dump.shallow),
                Cell::value(dump.name.clone()),
            ]);
        }
        let mut doc = Doc::new().table(dumps);
        for dump in self.dumps.iter().filter(|d| d.unrelated) {
            doc = doc.text([
                Span::Strong("Other program: ".to_owned()),
                Span::Value(dump.name.clone()),
                Span::from(
                    " has fewer than half of its classes in common with the first dump, so what changed \
                     between them says little.",
                ),
            ]);
        }
        doc = doc.heading("What grew");
        if self.grown.is_empty() {
            doc = doc.text([Span::from("Nothing grew by more than the threshold.")]);
        }
        let is_series = self.dumps.len() > 2;
        doc = changes(doc, "Growth", &self.grown, is_series);
        doc = more(doc, self.omitted_grown);
        if !self.shrunk.is_empty() {
            doc = changes(doc.heading("What shrank"), "Loss", &self.shrunk, is_series);
            doc = more(doc, self.omitted_shrunk);
        }
        doc = groups(doc, "New at the top", &self.new, self.omitted_new, true);
        doc = groups(
            doc,
            "Gone from the top",
            &self.gone,
            self.omitted_gone,
            false,
        );
        let mut classes = Table::new([
            number("objects"),
            number("shallow"),
            number("retained"),
            number("before → after"),
            words("class"),
        ]);
        for row in &self.classes {
            let (shallow, retained) = (plain(&row.shallow), plain(&row.retained));
            let series: Vec<String> = row.objects.iter().map(u64::to_string).collect();
            let growth = |l: &[u64]| last(l) as i64 - first(l) as i64;
            classes.row([
                moved_count(first(&row.objects), last(&row.objects)),
                moved(growth(&shallow)),
                moved(growth(&retained)),
                Span::from(series.join(" → ")).into(),
                Cell::class(row.class.clone()),
            ]);
        }
        classes.omitted = self.omitted_classes;
        classes.when_empty = "no class changed";
        doc.heading("Classes").table(classes)
    }
}

impl Say for Check {
    const NAME: &'static str = "check";

    fn doc(&self) -> Doc {
        let mut table = Table::new([
            words("verdict"),
            number("found"),
            number("limit"),
            number("baseline"),
            words("rule"),
            words("about"),
        ]);
        let figure = |n: Option<u64>, what: &str| match n {
            None => Cell::empty(),
            Some(n) if what == "count" => Cell::count(n),
            Some(n) => Span::Bytes(n).into(),
        };
        for c in &self.checks {
            let verdict = if c.passed {
                Span::from("passed")
            } else {
                Span::Strong("FAILED".to_owned())
            };
            table.row([
                verdict.into(),
                // Without roots there are no leak suspects.
                figure(
                    Some(c.found).filter(|_| c.what != "leak" || c.signature.is_some()),
                    c.what,
                ),
                figure(c.limit, c.what),
                figure(c.baseline, c.what),
                Cell::value(c.rule.clone()),
                Cell::new([
                    Span::Class(c.subject.clone()),
                    Span::from(format!(", {}", c.what)),
                ]),
            ]);
        }
        table.when_empty = "there was nothing to check";
        let verdict = match (self.passed, self.checks.len()) {
            (true, 1) => "The check passed.".to_owned(),
            (false, 1) => "The check failed.".to_owned(),
            (true, count) => format!("All {count} checks passed."),
            (false, count) => format!("{} of {count} checks failed.", self.failed),
        };
        let mut doc = Doc::new().text([Span::Strong(verdict)]).table(table);
        // The figures do not explain why a leak suspect fails a rule, nor with which signature it could be allowed.
        for leak in self.checks.iter().filter(|c| !c.passed && c.what == "leak") {
            doc = doc.text([
                Span::Strong("FAILED".to_owned()),
                Span::Text(format!(": {}", leak.message)),
            ]);
        }
        // A rule about a class that does not exist passes; each of its limits has the same note.
        let mut missing: Vec<&Checked> = self.checks.iter().filter(|c| c.no_class).collect();
        missing.dedup_by_key(|c| &c.rule);
        for checked in missing {
            doc = doc.text([Span::Text(format!("{}: {}", checked.rule, checked.message))]);
        }
        doc
    }
}
