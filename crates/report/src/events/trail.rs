//! The paths of objects through a recording.

use hprof::Bytes;
use live_heap::{Fate, Trail};
use serde::Serialize;

use crate::doc::{Cell, Doc, Span, Table, number, words};
use crate::units::plural;

/// The objects that had an id, as JSON.
#[derive(Debug, Serialize)]
pub struct TrailJson<'a> {
    /// Name and version of this layout.
    pub schema: &'static str,
    /// The id.
    pub id: String,
    /// The objects that had it, in the order of allocation.
    pub objects: &'a [Trail],
    /// Whether the stream ended before its end.
    pub damaged: bool,
    /// Position and kind of the damage, as text.
    pub damage: Option<&'a str>,
}

impl<'a> TrailJson<'a> {
    /// The objects that had `id`, with the damage of the stream, if there is any.
    #[must_use]
    pub fn new(id: u64, objects: &'a [Trail], damage: Option<&'a str>) -> Self {
        Self {
            schema: "tenure.trail/1",
            id: format!("{id:#x}"),
            objects,
            damaged: damage.is_some(),
            damage,
        }
    }
}

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Born => "born",
        Fate::Moved => "moved",
        Fate::Freed => "freed",
        Fate::ArenaDeleted => "died with its arena",
        Fate::Replaced => "gone, its end was not reported",
    }
}

/// The same as text.
#[must_use]
pub fn trail_doc(id: u64, objects: &[Trail], damage: Option<&str>) -> Doc {
    let had = plural(objects.len() as u64, "object", "objects");
    let mut doc = Doc::new().text([Span::Text(format!("{had} had the id {id:#x}."))]);
    for trail in objects {
        let mut table = Table::new([
            number("collections"),
            number("allocated by then"),
            words("id"),
            words("arena"),
            words("what"),
        ]);
        for step in &trail.steps {
            table.row([
                Cell::count(u64::from(step.collections)),
                Cell::bytes(Bytes(step.at_bytes)),
                Cell::from(Span::Text(format!("{:#x}", step.id))),
                Cell::value(step.arena_name.clone()),
                Cell::from(Span::from(fate(step.fate))),
            ]);
        }
        table.omitted = trail.omitted_steps;
        doc = doc.subheading([
            Span::Class(trail.class.clone()),
            Span::from(", "),
            Span::Bytes(trail.size),
            Span::Text(format!(
                ", number {} in the order of allocation",
                trail.serial
            )),
        ]);
        if let Some(frame) = trail.frames.first() {
            let at = [Span::from("allocated at "), Span::Value(frame.clone())];
            doc = doc.text(at);
        }
        doc = doc.table(table);
    }
    match damage {
        None => doc,
        Some(damage) => doc.note([Span::Text(format!("The recording is damaged: {damage}"))]),
    }
}
