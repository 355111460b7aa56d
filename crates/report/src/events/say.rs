//! A recording as text and tables.

use hprof::Bytes;
use live_heap::answer::{ArenaRow, GroupRow};
use live_heap::{Events, Point};

use crate::doc::{Cell, Doc, Span, Table, number, words};
use crate::say::Chapter;
use crate::units::{grouped, human_bytes, plural};

/// The complete document; `damage` describes what is wrong with the stream.
pub fn doc(events: &Events, damage: Option<&str>) -> Doc {
    let mut whole = facts(events, damage);
    for chapter in chapters(events) {
        whole = whole.heading(chapter.title).append(chapter.doc);
    }
    whole
}

/// Facts about the sender of the stream, and the totals.
pub(super) fn facts(events: &Events, damage: Option<&str>) -> Doc {
    let (stream, totals) = (&events.stream, &events.totals);
    let mut rows = vec![
        (
            "VM",
            vec![
                Span::Value(stream.vm.clone()),
                Span::from(", "),
                Span::Value(stream.collector.clone()),
            ],
        ),
        (
            "allocated",
            vec![
                Span::Bytes(totals.allocated_bytes),
                Span::from(" in "),
                Span::Count(totals.allocated_objects),
                Span::from(" objects"),
            ],
        ),
        (
            "present",
            vec![
                Span::StrongBytes(totals.live_bytes),
                Span::from(" in "),
                Span::Count(totals.live_objects),
                Span::from(" objects not collected"),
            ],
        ),
        (
            "collections",
            vec![
                Span::Count(totals.collections),
                Span::from("; moved "),
                Span::Bytes(totals.moved_bytes),
                Span::from(" in "),
                Span::Count(totals.moves),
                Span::from(" moves"),
            ],
        ),
    ];
    if totals.promoted_objects > 0 {
        rows.push((
            "promoted",
            vec![
                Span::Bytes(totals.promoted_bytes),
                Span::from(", of which "),
                Span::Bytes(totals.premature_bytes),
                Span::from(" died within three collections"),
            ],
        ));
    }
    if stream.sample_interval > 0 {
        rows.push((
            "sampled",
            vec![
                Span::from("one object reported in "),
                Span::Bytes(stream.sample_interval),
                Span::from("; bytes are estimates, objects those reported"),
            ],
        ));
    }
    let mut doc = Doc::new().facts(rows);
    if stream.stable_ids {
        doc = doc.note([Span::from(
            "Ids do not change when objects move, so neither moves nor promotion are reported.",
        )]);
    }
    if stream.full_gc_frees {
        doc = doc.note([Span::Text(format!(
            "This collector reports freed objects only after a collection of the whole heap. Only these \
             collections are counted here, also in ages; an object that another one freed is present \
             until the next of them. {} reported nothing.",
            plural(
                stream.pauses,
                "other collection or pause",
                "other collections or pauses"
            )
        ))]);
    }
    for (name, count) in &stream.lost {
        doc = doc.text([Span::Text(format!(
            "{} of {name} dropped: the agent's limit of tracked objects or of memory was reached, or the \
             reader was too slow.",
            plural(*count, "event", "events")
        ))]);
    }
    let odd = stream.unknown_ids + stream.reused_ids;
    if odd > 0 {
        doc = doc.text([Span::Text(format!(
            "{} the events before: {} about objects that are not live, {} about new objects whose ids \
             live objects have.",
            plural(odd, "event contradicts", "events contradict"),
            grouped(stream.unknown_ids),
            grouped(stream.reused_ids)
        ))]);
    }
    match damage {
        Some(damage) => doc.text([Span::Text(format!(
            "The recording is damaged; results cover the part before the damage. {damage}"
        ))]),
        None => doc,
    }
}

/// The parts in the order of a page.
pub fn chapters(events: &Events) -> Vec<Chapter> {
    let chapter = |id, title, doc| Chapter { id, title, doc };
    let mut list = vec![
        chapter("arenas", "Arenas", arenas(&events.arenas)),
        chapter("timeline", "Occupancy over allocation", timeline(events)),
        chapter("survival", "Survival", survival(events)),
        chapter(
            "classes",
            "Classes",
            groups(&events.classes, events.omitted_classes, false),
        ),
        chapter(
            "sites",
            "Allocation sites",
            groups(&events.sites, events.omitted_sites, true),
        ),
        chapter("collections", "Collections", collections(events)),
        chapter("ages", "Present objects by age", ages(events)),
        chapter("moves", "Moves per object", moves(events)),
    ];
    if events
        .arenas
        .iter()
        .any(|arena| arena.fragmentation.is_some())
    {
        list.push(chapter("holes", "Holes", holes(&events.arenas)));
    }
    if events.cycle_leaks.is_some() {
        list.push(chapter(
            "cycles",
            "Unreachable and not collected",
            cycles(events),
        ));
    }
    list.extend(super::dumps::chapters(&events.dumps));
    list
}

fn arenas(rows: &[ArenaRow]) -> Doc {
    let mut table = Table::new([
        number("objects"),
        number("bytes"),
        number("capacity"),
        number("allocated in"),
        number("moved in"),
        number("soon freed"),
        number("deleted"),
        words("arena"),
    ]);
    for row in rows {
        let capacity = if row.capacity > 0 {
            Cell::bytes(Bytes(row.capacity))
        } else {
            Cell::empty()
        };
        let mut name = vec![
            Span::Value(row.name.clone()),
            Span::Dim(format!(" {}", row.arena)),
        ];
        if row.old {
            name.push(Span::Dim(" promoted into".into()));
        }
        table.row([
            Cell::count(row.objects),
            Cell::bytes(Bytes(row.bytes)),
            capacity,
            Cell::bytes(Bytes(row.allocated_bytes)),
            Cell::bytes(Bytes(row.entered_bytes)),
            Cell::bytes(Bytes(row.soon_freed_bytes)),
            Cell::count(row.deletions),
            Cell::new(name),
        ]);
    }
    Doc::new().table(table)
}

/// Bars of different heights.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const WIDTH: usize = 64;

fn timeline(events: &Events) -> Doc {
    let samples = &events.timeline;
    let end = samples.last().map_or(0, |sample| sample.at_bytes);
    let mut lines = Vec::new();
    for arena in &events.arenas {
        let of = |sample: &live_heap::Sample| {
            sample.bytes.get(arena.arena as usize).copied().unwrap_or(0)
        };
        let peak = samples.iter().map(of).max().unwrap_or(0);
        // A column shows the maximum in the arena during its part of the recording.
        let mut columns = vec![0u64; WIDTH];
        let mut last = 0;
        for sample in samples {
            let share = sample.at_bytes as f64 / end.max(1) as f64;
            let at = ((share * WIDTH as f64) as usize).min(WIDTH - 1);
            for gap in columns.iter_mut().take(at + 1).skip(last + 1) {
                *gap = (*gap).max(of(sample));
            }
            columns[at] = columns[at].max(of(sample));
            last = at;
        }
        let bar = |bytes: &u64| BARS[(*bytes as f64 / peak.max(1) as f64 * 8.0).ceil() as usize];
        let drawn: String = columns.iter().map(bar).collect();
        lines.push(format!(
            "{drawn}  {} at most in {}",
            human_bytes(peak),
            arena.name
        ));
    }
    Doc::new().lines(lines).note([
        Span::from("Each column is 1/64 of the "),
        Span::Bytes(end),
        Span::from(" allocated; each line has its own height."),
    ])
}

/// The curve's value at an age: that of the last point not beyond it; `None` beyond the observed ages.
pub(super) fn at_age(points: &[Point], age: u64) -> Option<f64> {
    let last = points.last()?;
    if age > last.age && last.alive > 0.0 {
        return None;
    }
    let after = points.partition_point(|point| point.age <= age);
    Some(points[after.checked_sub(1)?].alive)
}

fn survival(events: &Events) -> Doc {
    let mut table = Table::new([
        number("seen so old"),
        number("live longer"),
        words("collections"),
    ]);
    for point in events.survival.iter().skip(1) {
        table.row([
            Cell::count(point.at_risk),
            Cell::share(point.alive),
            Cell::count(point.age),
        ]);
    }
    table.when_empty = "No collection has finished.";
    let mut bytes = Table::new([
        number("seen so old"),
        number("live longer"),
        words("allocated since"),
    ]);
    let steps = events.survival_bytes.windows(2);
    let changes = steps
        .filter(|pair| pair[0].alive > pair[1].alive)
        .map(|pair| &pair[1]);
    for point in changes {
        bytes.row([
            Cell::count(point.at_risk),
            Cell::share(point.alive),
            Cell::bytes(Bytes(point.age)),
        ]);
    }
    bytes.when_empty = "Nothing has died.";
    Doc::new().table(table).table(bytes)
}

fn share_at(points: &[Point], age: u64) -> Cell {
    at_age(points, age).map_or_else(Cell::empty, |share| Span::Share(share).into())
}

fn groups(rows: &[GroupRow], omitted: u64, sites: bool) -> Doc {
    let mut table = Table::new([
        number("objects"),
        number("allocated"),
        number("present"),
        number("after 1 gc"),
        number("after 3"),
        number("after 10"),
        number("promoted"),
        number("too early"),
        words(if sites { "allocated at" } else { "class" }),
    ]);
    for row in rows {
        table.row([
            Cell::count(row.allocated_objects),
            Cell::bytes(Bytes(row.allocated_bytes)),
            Cell::bytes(Bytes(row.live_bytes)),
            share_at(&row.survival, 1),
            share_at(&row.survival, 3),
            share_at(&row.survival, 10),
            Cell::bytes(Bytes(row.promoted_bytes)),
            Cell::bytes(Bytes(row.premature_bytes)),
            Cell::class(row.name.clone()),
        ]);
    }
    table.omitted = omitted;
    Doc::new().table(table)
}

/// Number of rows in the table of collections.
const COLLECTIONS: usize = 40;

fn collections(events: &Events) -> Doc {
    let mut table = Table::new([
        number("gc"),
        number("at"),
        number("freed"),
        number("freed bytes"),
        number("moved bytes"),
        number("moved/live"),
        number("moved again"),
        number("after"),
        words("kind"),
    ]);
    let skipped = events.collections.len().saturating_sub(COLLECTIONS);
    for one in &events.collections[skipped..] {
        table.row([
            Cell::count(u64::from(one.number)),
            Cell::bytes(Bytes(one.at_bytes)),
            Cell::count(one.freed_objects),
            Cell::bytes(Bytes(one.freed_bytes)),
            Cell::bytes(Bytes(one.moved_bytes)),
            Span::Text(format!("{:.2}", one.moved_to_live())).into(),
            Cell::count(one.moved_again),
            Cell::bytes(Bytes(one.bytes_after)),
            Span::from(one.kind).into(),
        ]);
    }
    table.omitted = skipped as u64 + events.omitted_collections;
    Doc::new().table(table)
}

fn ages(events: &Events) -> Doc {
    let mut table = Table::new([
        number("objects"),
        number("bytes"),
        number("share"),
        words("collections survived"),
    ]);
    for row in &events.ages {
        let share = row.bytes as f64 / events.totals.live_bytes.max(1) as f64;
        table.row([
            Cell::count(row.objects),
            Cell::bytes(Bytes(row.bytes)),
            Cell::share(share),
            Cell::count(u64::from(row.age)),
        ]);
    }
    Doc::new().table(table)
}

fn moves(events: &Events) -> Doc {
    let mut table = Table::new([number("objects"), number("share"), words("moved")]);
    let numbered = events.moves.iter().enumerate();
    for (times, objects) in numbered.filter(|(_, objects)| **objects > 0) {
        let times = match times {
            8 => "8 times or more".to_owned(),
            0 => "never".to_owned(),
            times => plural(times as u64, "time", "times"),
        };
        let share = *objects as f64 / events.totals.allocated_objects.max(1) as f64;
        table.row([
            Cell::count(*objects),
            Cell::share(share),
            Span::Text(times).into(),
        ]);
    }
    Doc::new().table(table)
}

fn holes(rows: &[ArenaRow]) -> Doc {
    let mut table = Table::new([
        number("holes"),
        number("free"),
        number("largest"),
        number("in crumbs"),
        words("arena"),
    ]);
    let mut lines = Vec::new();
    for row in rows {
        let Some(holes) = &row.fragmentation else {
            continue;
        };
        table.row([
            Cell::count(holes.holes),
            Cell::bytes(Bytes(holes.free_bytes)),
            Cell::bytes(Bytes(holes.largest_hole)),
            Cell::share(holes.fragmented),
            Cell::value(row.name.clone()),
        ]);
        let bar = |share: &f64| BARS[(share * 8.0).ceil().clamp(0.0, 8.0) as usize];
        let drawn: String = holes.map.iter().map(bar).collect();
        lines.push(format!("|{drawn}| {}", row.name));
    }
    Doc::new().table(table).lines(lines)
}

fn cycles(events: &Events) -> Doc {
    let Some(leaks) = &events.cycle_leaks else {
        return Doc::new();
    };
    if leaks.objects == 0 {
        return Doc::new().text([Span::from("Everything in the heap dump is reachable.")]);
    }
    let mut table = Table::new([
        number("objects"),
        number("bytes"),
        words("class"),
        words("allocated at"),
    ]);
    for row in &leaks.rows {
        let site = row.frames.first().map_or("(no stack)", String::as_str);
        table.row([
            Cell::count(row.objects),
            Cell::bytes(Bytes(row.bytes)),
            Cell::class(row.class.clone()),
            Cell::class(site),
        ]);
    }
    Doc::new()
        .text([
            Span::Count(leaks.objects),
            Span::from(" objects, "),
            Span::Bytes(leaks.bytes),
            Span::from(", are neither collected nor reachable; "),
            Span::Count(leaks.in_cycles),
            Span::from(" of them lie in "),
            Span::Text(plural(leaks.cycles, "cycle", "cycles")),
            Span::from(" that nothing outside refers to."),
        ])
        .table(table)
}
