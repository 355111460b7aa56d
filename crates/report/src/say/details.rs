//! One object.

use super::Say;
use super::leaks::path_table;
use crate::doc::{Cell, Doc, Span, Table, number, object_spans, words};
use crate::units::grouped;
use heap_analysis::objects::object::{ObjectDetails, Slot};

fn slot_table(title: &'static str, slots: &[Slot], omitted: u64) -> Table {
    let mut table = Table::new([number("retained"), words(title), words("value")]);
    for slot in slots {
        let name = if slot.declared_in.is_empty() {
            slot.name.clone()
        } else {
            format!("{}.{}", simple(&slot.declared_in), slot.name)
        };
        let (retained, value) = match &slot.object {
            Some(object) => (Cell::bytes(object.retained), Cell::object(object)),
            None => (Cell::empty(), Cell::value(slot.value.clone())),
        };
        table.row([retained, Cell::value(name), value]);
    }
    table.omitted = omitted;
    table
}

fn simple(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

impl Say for ObjectDetails {
    const NAME: &'static str = "object";

    fn doc(&self) -> Doc {
        let mut doc = Doc::new().facts(facts(self));
        if let Some(text) = &self.text {
            doc = doc.heading("Text").lines(vec![text.clone()]);
            if let Some(length) = self.text_length {
                doc = doc.text([Span::Dim(format!("… ({} characters)", grouped(length)))]);
            }
        }
        if !self.slots.is_empty() {
            doc =
                doc.heading("Contents")
                    .table(slot_table("field", &self.slots, self.omitted_slots));
        }
        if !self.statics.is_empty() {
            doc = doc
                .heading("Static fields")
                .table(slot_table("field", &self.statics, 0));
        }
        if let Some(count) = self.inbound_count {
            let mut table = Table::new([number("retained"), words("field"), words("of")]);
            for row in &self.inbound {
                table.row([
                    Cell::bytes(row.object.retained),
                    Cell::value(row.field.clone().unwrap_or_default()),
                    Cell::object(&row.object),
                ]);
            }
            table.omitted = count.saturating_sub(self.inbound.len() as u64);
            table.when_empty = "nothing refers to it";
            doc = doc.heading("Referred to by").table(table);
        }
        if !self.dominators.is_empty() {
            doc = doc
                .heading("Kept alive through")
                .table(path_table(&self.dominators, self.omitted_dominators));
        }
        if !self.dominated.is_empty() {
            let mut table = Table::new([number("retained"), words("object")]);
            for object in &self.dominated {
                table.row([Cell::bytes(object.retained), Cell::object(object)]);
            }
            table.omitted = self.dominated_count - self.dominated.len() as u64;
            doc = doc.heading("Keeps alive").table(table);
        }
        if !self.allocated_at.is_empty() {
            doc = doc.heading("Allocated at").lines(self.allocated_at.clone());
        }
        doc
    }
}

fn facts(details: &ObjectDetails) -> Vec<(&'static str, Vec<Span>)> {
    let class = &details.of_class;
    let state = match (details.reachable, details.roots.is_empty()) {
        (false, _) => "unreachable".to_owned(),
        (true, true) => "reachable".to_owned(),
        (true, false) => format!("GC root ({})", details.roots.join(", ")),
    };
    let mut lineage = vec![Span::Class(class.name.clone())];
    for name in &class.superclasses {
        lineage.extend([Span::from(" < "), Span::Class(name.clone())]);
    }
    let mut facts = vec![
        ("object", object_spans(&details.object)),
        (
            "size",
            vec![
                Span::from("shallow "),
                Span::Bytes(details.object.shallow.0),
                Span::from(", retained "),
                Span::Bytes(details.object.retained.0),
            ],
        ),
        ("state", vec![Span::Text(state)]),
        ("class", lineage),
        ("loader", vec![Span::Value(class.loader.clone())]),
    ];
    if let Some(heap) = &details.heap {
        facts.push(("heap", vec![Span::Value(heap.clone())]));
    }
    if class.objects > 0
        && !details
            .object
            .kind
            .eq(&heap_graph::ObjectKind::PrimitiveArray)
    {
        let text = format!(
            "{} of this class in the dump",
            crate::units::plural(class.objects, "object", "objects")
        );
        facts.push(("others", vec![Span::Text(text)]));
    }
    facts
}
