//! A recording as one HTML page.

use live_heap::Events;

use super::charts;
use super::say::{chapters, facts};
use crate::doc::Doc;
use crate::html::{Section, plain_page};

/// The page: facts, then each chapter with its chart. It has no script at all.
pub fn page(name: &str, events: &Events, damage: Option<&str>) -> String {
    let sections = chapters(events).into_iter().map(|chapter| {
        let figure = match chapter.id {
            "timeline" => charts::occupancy(events),
            "survival" => charts::survival(events),
            _ => String::new(),
        };
        // The chart shows the same as the lines for a terminal.
        let drawn = chapter.id == "timeline" && !figure.is_empty();
        Section {
            id: chapter.id.to_owned(),
            title: chapter.title.to_owned(),
            figure,
            doc: if drawn { Doc::new() } else { chapter.doc },
        }
    });
    let sections: Vec<_> = sections.collect();
    plain_page(name, "VM events", &facts(events, damage), &sections)
}
