//! The dumps of a recording in words.

use hprof::Bytes;
use live_heap::dumps::{DumpedClass, Dumps, HeapDumpRow, Moment, MonitorDumpRow, ObjectDumpRow};

use crate::doc::{Cell, Doc, Span, Table, number, words};
use crate::say::Chapter;

/// One chapter for each kind of dump in the recording.
pub(super) fn chapters(dumps: &Dumps) -> Vec<Chapter> {
    let mut list = Vec::new();
    let mut chapter = |id, title, doc| list.push(Chapter { id, title, doc });
    if !dumps.heap.is_empty() {
        chapter("heap_dumps", "Heap dumps", heap(dumps));
    }
    if !dumps.objects.is_empty() {
        chapter("object_dumps", "Object dumps", objects(&dumps.objects));
    }
    if let Some(last) = dumps.monitors.last() {
        let count = dumps.monitors.len();
        chapter("monitor_dumps", "Monitor dumps", monitors(last, count));
    }
    list
}

fn at(moment: &Moment) -> Cell {
    Cell::bytes(Bytes(moment.at_bytes))
}

fn heap(dumps: &Dumps) -> Doc {
    let mut table = Table::new([
        number("at"),
        number("gc"),
        number("level"),
        number("objects"),
        number("reported"),
        number("roots"),
        number("bytes"),
        words("roots by kind"),
    ]);
    let mut damage = Vec::new();
    for row in &dumps.heap {
        let roots = row.roots.iter();
        let roots: Vec<String> = roots
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        table.row([
            at(&row.moment),
            Cell::count(u64::from(row.moment.collections)),
            Cell::count(u64::from(row.level)),
            Cell::count(row.objects),
            Cell::count(row.reported),
            Cell::count(row.roots.values().sum()),
            Cell::bytes(Bytes(row.bytes)),
            Span::Text(roots.join(", ")).into(),
        ]);
        damage.extend(row.damage.as_ref());
    }
    let mut doc = Doc::new().table(table);
    for damage in damage {
        doc = doc.text([Span::Text(format!("A dump is damaged: {damage}"))]);
    }
    doc = doc.note([Span::from(
        "Reported: objects that the stream had reported as allocated and not freed by then.",
    )]);
    match dumps.heap.iter().rev().find(|row| row.level > 0) {
        Some(last) => doc.append(classes(last, &dumps.classes, dumps.omitted_classes)),
        None => doc,
    }
}

fn classes(last: &HeapDumpRow, rows: &[DumpedClass], omitted: u64) -> Doc {
    let mut table = Table::new([
        number("objects"),
        number("reported"),
        number("bytes"),
        number("elements"),
        words("class"),
    ]);
    for row in rows {
        let or_empty = |value: u64, cell: Cell| if value > 0 { cell } else { Cell::empty() };
        table.row([
            Cell::count(row.objects),
            Cell::count(row.reported),
            or_empty(row.instance_bytes, Cell::bytes(Bytes(row.instance_bytes))),
            or_empty(row.elements, Cell::count(row.elements)),
            Cell::class(row.class.clone()),
        ]);
    }
    table.omitted = omitted;
    let objects = last.class_objects;
    let head = [
        Span::from("The last one, after "),
        Span::Bytes(last.moment.at_bytes),
        Span::Text(format!(" allocated, and {objects} class objects")),
    ];
    Doc::new().subheading(head).table(table)
}

fn objects(rows: &[ObjectDumpRow]) -> Doc {
    let mut table = Table::new([
        number("at"),
        words("object"),
        words("class"),
        words("fields of the class"),
    ]);
    for row in rows {
        let fields = row.fields.iter();
        let fields = fields.map(|field| format!("{} = {}", field.name, field.value));
        let what = match row.elements {
            Some(count) => format!("{count} elements"),
            None => fields.collect::<Vec<_>>().join(", "),
        };
        table.row([
            at(&row.moment),
            Cell::value(row.id.clone()),
            Cell::class(row.class.clone()),
            Cell::value(what),
        ]);
    }
    Doc::new().table(table)
}

fn monitors(last: &MonitorDumpRow, count: usize) -> Doc {
    let mut table = Table::new([
        number("entries"),
        words("owner"),
        words("wait to enter"),
        words("wait to be notified"),
        words("monitor"),
        words("object"),
    ]);
    for row in &last.monitors {
        table.row([
            Cell::count(u64::from(row.entry_count)),
            row.owner.clone().map_or_else(Cell::empty, Cell::value),
            Cell::value(row.entering.join(", ")),
            Cell::value(row.waiting.join(", ")),
            Cell::class(row.class.clone()),
            Cell::value(row.id.clone()),
        ]);
    }
    table.when_empty = "No monitor is in use.";
    let mut threads = Table::new([words("status"), words("thread"), words("at")]);
    for row in &last.threads {
        let top = row.frames.first().cloned();
        threads.row([
            Span::from(row.status).into(),
            Cell::value(row.name.clone()),
            top.map_or_else(Cell::empty, Cell::class),
        ]);
    }
    let head = [
        Span::Text(format!("The last of {count}, after ")),
        Span::Bytes(last.moment.at_bytes),
        Span::from(" allocated"),
    ];
    let doc = Doc::new().subheading(head).table(table).table(threads);
    match &last.damage {
        Some(damage) => doc.text([Span::Text(format!("The dump is damaged: {damage}"))]),
        None => doc,
    }
}
