//! The same script under several collectors, side by side.

use hprof::Bytes;

use super::say::{at_age, chapters};
use super::{Run, charts};
use crate::doc::{Cell, Doc, Span, Table, number, words};
use crate::html::{Section, plain_page};

fn table(runs: &[Run]) -> Table {
    let mut table = Table::new([
        number("allocated"),
        number("collections"),
        number("freed one by one"),
        number("with an arena"),
        number("moved"),
        number("moved/freed"),
        number("promoted"),
        number("after 1 gc"),
        number("present"),
        number("unreachable"),
        number("in crumbs"),
        words("collector"),
    ]);
    for run in runs {
        let totals = &run.events.totals;
        let arenas = &run.events.arenas;
        let fragmented = arenas
            .iter()
            .filter_map(|arena| arena.fragmentation.as_ref());
        let (free, crumbs) = fragmented.fold((0u64, 0.0), |(free, crumbs), one| {
            (
                free + one.free_bytes,
                crumbs + one.fragmented * one.free_bytes as f64,
            )
        });
        let survival = at_age(&run.events.survival, 1);
        let leaked = run
            .events
            .cycle_leaks
            .as_ref()
            .map_or(0, |leaks| leaks.bytes);
        let ratio = totals.moved_bytes as f64 / totals.freed_bytes.max(1) as f64;
        let single = run.freed_singly;
        table.row([
            Cell::bytes(Bytes(totals.allocated_bytes)),
            Cell::count(totals.collections),
            Cell::count(single),
            Cell::count(totals.freed_objects.saturating_sub(single)),
            Cell::bytes(Bytes(totals.moved_bytes)),
            Span::Text(format!("{ratio:.2}")).into(),
            Cell::bytes(Bytes(totals.promoted_bytes)),
            survival.map_or_else(Cell::empty, |share| Span::Share(share).into()),
            Cell::bytes(Bytes(totals.live_bytes)),
            Cell::bytes(Bytes(leaked)),
            Span::Share(crumbs / free.max(1) as f64).into(),
            Cell::value(run.collector.clone()),
        ]);
    }
    table
}

fn lead(runs: &[Run]) -> Doc {
    let mut doc = Doc::new().table(table(runs));
    for run in runs {
        if let Some(fault) = &run.stopped {
            doc = doc.text([
                Span::Value(run.collector.clone()),
                Span::from(" could not continue: "),
                Span::Value(fault.clone()),
            ]);
        }
    }
    doc.note([Span::from(
        "The same script, the same allocations. Unreachable: neither collected nor reachable at the \
         end, by a heap dump. In crumbs: free bytes that are not in the largest hole of their arena.",
    )])
}

/// One table with a row for each collector, then the arenas of each.
pub fn compare_doc(runs: &[Run]) -> Doc {
    let mut doc = lead(runs);
    for run in runs {
        doc = doc.heading(Span::Value(run.collector.clone()));
        let wanted = ["arenas", "timeline"];
        for chapter in chapters(&run.events) {
            if wanted.contains(&chapter.id) {
                doc = doc.append(chapter.doc);
            }
        }
    }
    doc
}

/// The comparison as one page.
pub fn compare_page(script: &str, runs: &[Run]) -> String {
    let sections: Vec<_> = runs
        .iter()
        .map(|run| {
            let mut doc = Doc::new();
            let all = chapters(&run.events).into_iter();
            for chapter in all.filter(|chapter| chapter.id != "timeline") {
                doc = doc.heading(chapter.title).append(chapter.doc);
            }
            Section {
                id: run.collector.clone(),
                title: run.collector.clone(),
                figure: charts::occupancy(&run.events) + &charts::survival(&run.events),
                doc,
            }
        })
        .collect();
    plain_page(script, "Collectors side by side", &lead(runs), &sections)
}
