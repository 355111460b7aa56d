//! Memory that could be saved.

use super::Say;
use super::sets::of_set;
use crate::doc::{Cell, Doc, Span, Table, number, words};
use heap_analysis::collections::stats::Collections;
use heap_analysis::waste::{BufferOrigin, Equals, Waste};
use heap_graph::RefStrength;

fn text(text: &str) -> Cell {
    Span::from(text).into()
}

/// The description of a kind, and the command or chapter that has the rows.
fn kind_words(kind: &str) -> &'static str {
    match kind {
        "duplicate_strings" => "copies of equal strings",
        "duplicate_arrays" => "copies of equal arrays",
        "equal_objects" => "copies of equal objects",
        "empty_collections" => "collections without elements",
        "unused_slots" => "unused slots of collections",
        "duplicate_boxed_numbers" => "copies of equal boxed numbers",
        "boxed_fields" => "boxes in fields that could be primitive",
        "single_element_collections" => "collections of one element, beyond an array of one",
        "zero_fields" => "fields that are null or zero everywhere (at most)",
        "zero_arrays" => "arrays of zeros",
        "zero_tails" => "arrays whose last half is zeros",
        "unused_high_bytes" => "numbers and chars of twice the width they need",
        "empty_object_arrays" => "arrays of nulls",
        _ => "weak map entries that their values keep",
    }
}

/// The waste of each allocating stack; nothing when the dump has no stacks.
fn sites(waste: &Waste, doc: Doc) -> Doc {
    let known: Vec<_> = waste
        .sites
        .iter()
        .filter(|s| !s.frames.is_empty())
        .collect();
    if known.is_empty() {
        return doc;
    }
    let mut table = Table::new([
        number("could save"),
        number("objects"),
        words("spent on"),
        words("class"),
        words("allocated at"),
    ]);
    for row in known {
        table.row([
            Cell::bytes(row.wasted),
            Cell::count(row.objects),
            text(kind_words(row.kind)),
            Cell::class(row.class.clone()),
            text(&row.frames[..row.frames.len().min(3)].join(" < ")),
        ]);
    }
    doc.heading("By allocating stack").table(table)
}

impl Say for Waste {
    const NAME: &'static str = "waste";

    fn doc(&self) -> Doc {
        let mut kinds = Table::new([
            number("could save"),
            number("share"),
            number("objects"),
            words("spent on"),
        ]);
        for kind in &self.kinds {
            let share = kind.wasted.0 as f64 / self.shallow.0.max(1) as f64;
            kinds.row([
                Cell::bytes(kind.wasted),
                Cell::share(share),
                Cell::count(kind.objects),
                text(kind_words(kind.kind)),
            ]);
        }
        let mut doc = Doc::new()
            .heading("What could be saved")
            .append(of_set(self.set.as_deref()))
            .table(kinds)
            .note([Span::from(
                "The kinds overlap: an array of zeros can be a copy of another one.",
            )]);
        doc = sites(self, doc);
        if !self.holders.is_empty() {
            let mut table = Table::new([
                number("could save"),
                number("references"),
                words("copies held by"),
            ]);
            for holder in &self.holders {
                table.row([
                    Cell::bytes(holder.bytes),
                    Cell::count(holder.count),
                    Cell::name(holder.field.clone()),
                ]);
            }
            doc = doc.heading("Who holds copies").table(table);
        }
        doc = doc.heading("Equal strings").append(self.strings.doc());
        doc = doc
            .heading("Equal arrays")
            .append(equals(&self.arrays))
            .heading("Equal objects")
            .append(equals(&self.objects))
            .heading("Collections")
            .append(self.collections.doc());
        doc = numbers_and_fields(self, doc);
        references(self, arrays(self, doc))
    }
}

fn equals(equals: &Equals) -> Doc {
    let mut table = Table::new([
        number("copies"),
        number("bytes"),
        number("wasted"),
        words("class"),
        words("value"),
    ]);
    for row in &equals.rows {
        table.row([
            Cell::count(row.count),
            Cell::bytes(row.bytes),
            Cell::bytes(row.wasted),
            Cell::class(row.class.clone()),
            Cell::value(row.value.clone().unwrap_or_default()),
        ]);
    }
    table.omitted = equals.omitted_rows;
    Doc::new().table(table)
}

fn numbers_and_fields(waste: &Waste, doc: Doc) -> Doc {
    let mut boxed = Table::new([
        number("objects"),
        number("bytes"),
        number("different"),
        number("wasted"),
        words("class"),
    ]);
    for row in &waste.boxed {
        boxed.row([
            Cell::count(row.objects),
            Cell::bytes(row.bytes),
            Cell::count(row.distinct),
            Cell::bytes(row.wasted),
            Cell::class(row.class.clone()),
        ]);
    }
    let mut fields = Table::new([
        number("instances"),
        number("at most"),
        words("type"),
        words("field"),
    ]);
    for row in &waste.zero_fields {
        fields.row([
            Cell::count(row.instances),
            Cell::bytes(row.wasted),
            text(row.kind),
            Cell::name(format!("{}.{}", row.class, row.field)),
        ]);
    }
    fields.omitted = waste.omitted_fields;
    let mut primitive = Table::new([
        number("could save"),
        number("boxes"),
        number("instances"),
        words("could be"),
        words("field"),
    ]);
    for row in &waste.boxed_fields {
        primitive.row([
            Cell::bytes(row.wasted),
            Cell::count(row.boxes),
            Cell::count(row.instances),
            text(row.primitive),
            Cell::name(format!("{}.{}", row.class, row.field)),
        ]);
    }
    let mut doc = doc.heading("Boxed numbers").table(boxed);
    if !waste.boxed_fields.is_empty() {
        doc = doc
            .heading("Fields that always hold a boxed number")
            .table(primitive);
    }
    doc.heading("Fields that are always null or zero")
        .table(fields)
}

fn arrays(waste: &Waste, doc: Doc) -> Doc {
    let mut table = Table::new([
        number("arrays"),
        number("bytes"),
        number("length 0"),
        number("all zero"),
        number("constant"),
        number("zero tail"),
        number("too wide"),
        words("type"),
    ]);
    for row in &waste.contents {
        table.row([
            Cell::count(row.objects),
            Cell::bytes(row.bytes),
            Cell::count(row.zero_length),
            Cell::bytes(row.all_zero_bytes),
            Cell::bytes(row.constant_bytes),
            Cell::bytes(row.zero_tail_bytes),
            Cell::bytes(row.narrow_bytes),
            text(&row.class),
        ]);
    }
    let refs = &waste.object_arrays;
    doc.heading("What is in arrays").table(table).text([
        Span::Count(refs.objects),
        Span::from(" arrays of references take "),
        Span::Bytes(refs.bytes.0),
        Span::from("; "),
        Span::Count(refs.nulls),
        Span::from(" of their "),
        Span::Count(refs.elements),
        Span::from(" elements are null, and "),
        Span::Count(refs.all_null),
        Span::from(" arrays hold nothing else."),
    ])
}

fn strength(strength: RefStrength) -> &'static str {
    match strength {
        RefStrength::Soft => "soft",
        RefStrength::Weak => "weak",
        RefStrength::Phantom => "phantom",
        RefStrength::Final | RefStrength::Strong => "final",
    }
}

fn references(waste: &Waste, doc: Doc) -> Doc {
    let refs = &waste.references;
    let mut table = Table::new([
        number("references"),
        number("only so"),
        number("retained"),
        words("kind"),
        words("to"),
    ]);
    for row in &refs.rows {
        table.row([
            Cell::count(row.references),
            Cell::count(row.only),
            Cell::bytes(row.only_retained),
            text(strength(row.strength)),
            Cell::class(row.class.clone()),
        ]);
    }
    table.omitted = refs.omitted_rows;
    let mut doc = doc.heading("References").table(table).note([
        Span::from("\"Only so\": nothing but the reference leads to the object. "),
        Span::Count(refs.cleared),
        Span::from(" references are cleared, "),
        Span::Count(refs.enqueued),
        Span::from(" wait in their queue."),
    ]);
    let mut weak = Table::new([
        number("entries"),
        number("retained"),
        words("entry"),
        words("value holds key"),
    ]);
    for row in &waste.weak_maps.rows {
        weak.row([
            Cell::count(row.entries),
            Cell::bytes(row.retained),
            Cell::class(row.entry.clone()),
            Cell::name(format!("{} -> {}", row.value, row.key)),
        ]);
    }
    weak.omitted = waste.weak_maps.omitted_rows;
    weak.when_empty = "no value of a map with weak keys holds its own key";
    doc = doc
        .heading("Weak maps whose values hold their keys")
        .table(weak);
    let native = &waste.native;
    let mut buffers = Table::new([number("native"), words("kind"), words("buffer")]);
    for b in &native.buffers {
        buffers.row([
            Cell::bytes(b.capacity),
            text(match b.origin {
                BufferOrigin::Allocated => "allocated",
                BufferOrigin::Mapped => "mapped",
                BufferOrigin::Foreign => "native code's",
                BufferOrigin::View => "view",
            }),
            Cell::new([
                Span::Class(b.class.clone()),
                Span::from(" "),
                Span::Object(b.object),
            ]),
        ]);
    }
    buffers.omitted = native.omitted_buffers;
    let mut sums = vec![
        Span::Count(native.allocated),
        Span::from(" direct buffers allocated "),
        Span::Bytes(native.allocated_bytes.0),
        Span::from(", "),
        Span::Count(native.mapped),
        Span::from(" map "),
        Span::Bytes(native.mapped_bytes.0),
        Span::from(" of files, "),
        Span::Count(native.foreign),
        Span::from(" refer to "),
        Span::Bytes(native.foreign_bytes.0),
        Span::from(" that native code owns"),
    ];
    if let Some(reserved) = native.reserved {
        sums.extend([
            Span::from("; java.nio.Bits has "),
            Span::Bytes(reserved.0),
            Span::from(" reserved"),
        ]);
    }
    sums.push(Span::from("."));
    doc.heading("Native memory of buffers")
        .text(sums)
        .table(buffers)
}

impl Say for Collections {
    const NAME: &'static str = "collections";

    fn doc(&self) -> Doc {
        let mut table = Table::new([
            number("objects"),
            number("bytes"),
            number("elements"),
            number("empty"),
            number("single"),
            number("unused"),
            number("collided"),
            words("fill (fifths)"),
            words("class"),
        ]);
        for row in &self.rows {
            let fill: Vec<String> = row.fill.iter().map(u64::to_string).collect();
            table.row([
                Cell::count(row.objects),
                Cell::bytes(row.bytes),
                Cell::count(row.elements),
                Cell::count(row.empty),
                Cell::count(row.single),
                Cell::bytes(row.unused),
                Cell::count(row.collided),
                text(&fill.join(" ")),
                Cell::class(row.class.clone()),
            ]);
        }
        table.omitted = self.omitted_rows;
        of_set(self.set.as_deref())
            .text([
                Span::Count(self.objects),
                Span::from(" collections take "),
                Span::Bytes(self.bytes.0),
                Span::from(" with their arrays. "),
                Span::Count(self.empty),
                Span::from(" of them are empty ("),
                Span::Bytes(self.empty_bytes.0),
                Span::from("); trimming the others would free "),
                Span::StrongBytes(self.unused.0),
                Span::from("."),
            ])
            .table(table)
    }
}
