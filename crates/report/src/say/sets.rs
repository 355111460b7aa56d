//! Sets of objects: lists, their dominators, contents of collections, bitmaps, areas.

use super::Say;
use super::histogram::key_cell;
use crate::doc::{Cell, Doc, Span, Table, number, object_spans, words};
use heap_analysis::android::bitmaps::{Bitmap, Bitmaps, Picture};
use heap_analysis::collections::contents::Contents;
use heap_analysis::sets::members::{ImmediateDominators, Member, Objects};
use heap_analysis::tables::group::GroupBy;
use heap_analysis::tables::treemap::Treemap;

impl Say for Objects {
    const NAME: &'static str = "objects";

    fn doc(&self) -> Doc {
        let mut table = Table::new([number("shallow"), number("retained"), words("object")]);
        for row in &self.rows {
            table.row([
                Cell::bytes(row.object.shallow),
                Cell::bytes(row.object.retained),
                Cell::new(member_spans(row)),
            ]);
        }
        let shown = self.offset + self.rows.len() as u64;
        table.omitted = self.total.objects.saturating_sub(shown);
        let mut intro = vec![
            Span::Value(self.set.clone()),
            Span::from(": "),
            Span::Count(self.total.objects),
            Span::from(" objects, "),
            Span::Bytes(self.total.shallow.0),
        ];
        if self.offset > 0 {
            intro.extend([Span::from("; after the first "), Span::Count(self.offset)]);
        }
        intro.push(Span::from("."));
        Doc::new().text(intro).table(table)
    }
}

/// Begins an answer about a set with its name; nothing for the whole heap.
pub(super) fn of_set(set: Option<&str>) -> Doc {
    match set {
        Some(set) => Doc::new().text([Span::from("Only objects of "), Span::Value(set.to_owned())]),
        None => Doc::new(),
    }
}

/// The object, or the values of its fields if it has no value of its own.
fn member_spans(member: &Member) -> Vec<Span> {
    let mut spans = object_spans(&member.object);
    for (n, field) in member.fields.iter().enumerate() {
        spans.push(Span::Dim(if n == 0 { " " } else { ", " }.to_owned()));
        spans.push(Span::Value(format!("{}={}", field.name, field.value)));
    }
    spans
}

impl Say for ImmediateDominators {
    const NAME: &'static str = "immediate_dominators";

    fn doc(&self) -> Doc {
        let mut table = Table::new([
            number("dominators"),
            number("objects"),
            number("shallow"),
            number("objects' shallow"),
            words("class of the dominators"),
        ]);
        for row in &self.rows {
            table.row([
                Cell::count(row.dominators),
                Cell::count(row.dominated),
                Cell::bytes(row.shallow),
                Cell::bytes(row.dominated_shallow),
                key_cell(GroupBy::Class, &row.key),
            ]);
        }
        table.omitted = self.omitted_rows;
        table.when_empty = "no reachable objects in this set";
        let intro = [
            Span::from("What keeps the objects of "),
            Span::Value(self.set.clone()),
            Span::from(" alive, by class."),
        ];
        Doc::new().text(intro).table(table)
    }
}

impl Say for Contents {
    const NAME: &'static str = "contents";

    fn doc(&self) -> Doc {
        let value = |o: &Option<_>| o.as_ref().map_or(Cell::value("null"), Cell::object);
        let mut table = if self.form == "map" {
            Table::new([words("key"), words("value")])
        } else {
            Table::new([words("element")])
        };
        for row in &self.rows {
            if self.form == "map" {
                table.row([value(&row.key), value(&row.value)]);
            } else {
                table.row([value(&row.value)]);
            }
        }
        table.when_empty = "no elements, or no collection of a known kind";
        let doc = Doc::new()
            .text(crate::doc::object_spans(&self.object))
            .table(table);
        match self.more {
            true => doc.text([Span::Dim("There is more.".to_owned())]),
            false => doc,
        }
    }
}

/// Bitmaps as rows.
pub(super) fn bitmap_table(rows: &[Bitmap]) -> Table {
    let mut table = Table::new([
        number("bytes"),
        number("retained"),
        number("width"),
        number("height"),
        number("copies"),
        words("pixels"),
        words("bitmap"),
    ]);
    for row in rows {
        table.row([
            Cell::bytes(row.bytes),
            Cell::bytes(row.object.retained),
            Cell::count(row.width.unsigned_abs()),
            Cell::count(row.height.unsigned_abs()),
            Cell::count(row.copies),
            Cell::value(if row.in_heap { "heap" } else { "native" }.to_owned()),
            Cell::object(&row.object),
        ]);
    }
    table.when_empty = "no bitmaps in this heap";
    table
}

impl Say for Picture {
    const NAME: &'static str = "bitmap_picture";

    fn doc(&self) -> Doc {
        let size = format!(", {} × {}, ", self.size.0, self.size.1);
        let mut line = crate::doc::object_spans(&self.bitmap);
        line.push(Span::from(size));
        line.push(Span::from(self.format.unwrap_or("pixels not in the dump")));
        Doc::new().text(line)
    }
}

impl Say for Bitmaps {
    const NAME: &'static str = "bitmaps";

    fn doc(&self) -> Doc {
        let table = bitmap_table(&self.rows);
        let intro = [
            Span::Count(self.rows.len() as u64),
            Span::from(" bitmaps; equal ones waste "),
            Span::Bytes(self.wasted.0),
            Span::from("."),
        ];
        Doc::new().text(intro).table(table)
    }
}

impl Say for Treemap {
    const NAME: &'static str = "treemap";

    fn doc(&self) -> Doc {
        let mut table = Table::new([
            number("objects"),
            number("shallow"),
            number("retained"),
            words("area"),
        ]);
        for area in &self.areas {
            let mut depth = 0;
            let mut at = area.parent;
            while let Some(parent) = at.and_then(|p| self.areas.get(p as usize)) {
                depth += 1;
                at = parent.parent;
            }
            let mut spans = vec![match area.name.as_str() {
                "" => Span::Dim("small objects of several classes".to_owned()),
                name => Span::Class(name.to_owned()),
            }];
            if let Some(id) = area.object {
                spans.extend([Span::from(" "), Span::Object(id)]);
            }
            if let Some(value) = &area.value {
                spans.extend([Span::from(" "), Span::Value(format!("\"{value}\""))]);
            }
            table.row([
                Cell::count(area.objects),
                Cell::bytes(area.shallow),
                Cell::bytes(area.retained),
                Cell::new(spans).at_depth(depth),
            ]);
        }
        Doc::new().table(table)
    }
}
