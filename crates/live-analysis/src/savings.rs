//! Possible savings: the waste of a heap dump, by class and allocating stack.

use crate::columns::{Column, Kind, Tabular};
use heap_analysis::objects::readable::grouped;
use heap_analysis::waste::{WasteKind, WasteOptions, WasteSite, waste};
use heap_graph::{Control, Heap, HeapError};

/// Groupings of savings: by class and allocating stack, or by kind of waste.
pub const GROUPS: [&str; 2] = ["site", "kind"];

/// Memory that could be saved, of one kind, and of one class and allocating stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Saving {
    /// The class; for the sum of a kind its name as text.
    pub name: String,
    /// The kind, as in [`WasteKind`].
    pub kind: &'static str,
    /// For a class: a description.
    pub what: Option<String>,
    /// The number of these objects.
    pub objects: u64,
    /// Bytes to save.
    pub bytes: u64,
    /// The stack that allocated them, innermost frame first; empty if the dump does not have it.
    pub stack: Vec<String>,
}

impl Tabular for Saving {
    const SCHEMA: &'static str = "tenure.live.savings/1";
    const ABOUT: &'static str =
        "Memory that the program could save, as found in a heap dump. Kinds overlap.";
    const SORT: &'static str = "bytes";
    const COLUMNS: &'static [Column<Saving>] = &[
        Column::new(
            Kind::Name,
            "name",
            "Class",
            "Class name; for rows by kind, the kind in words.",
            |row| row.name.as_str().into(),
        ),
        Column::new(
            Kind::Bytes,
            "bytes",
            "To save",
            "Bytes that the program could save.",
            |row| row.bytes.into(),
        ),
        Column::new(
            Kind::Count,
            "objects",
            "Objects",
            "Objects that could be removed or made smaller.",
            |row| row.objects.into(),
        ),
        Column::new(
            Kind::Text,
            "kind",
            "Kind",
            "The kind of waste, as in `tenure waste --json`.",
            |row| row.kind.into(),
        ),
        Column::new(
            Kind::Description,
            "what",
            "What",
            "What could be saved, in words; not known for rows by kind.",
            |row| (&row.what).into(),
        ),
        Column::new(
            Kind::Stack,
            "stack",
            "Stack",
            "The stack that allocated the objects, innermost frame first, if the dump has it.",
            |row| (&row.stack).into(),
        ),
    ];
}

/// The waste in a dump.
#[derive(Clone, Debug, PartialEq)]
pub struct Savings {
    /// Every kind of waste; kinds overlap, so their sum is not a total.
    pub kinds: Vec<Saving>,
    /// The largest by class and stack.
    pub sites: Vec<Saving>,
}

/// The waste in a dump, by descending bytes.
///
/// # Errors
/// The dump cannot be read.
pub fn savings(heap: &Heap, limit: usize) -> Result<Savings, HeapError> {
    let options = WasteOptions {
        top: Some(limit),
        holders: false,
        sites: true,
        ..WasteOptions::default()
    };
    let waste = waste(heap, &options, &Control::quiet())?;
    let kinds = waste.kinds.into_iter().filter(|kind| kind.wasted.0 > 0);
    Ok(Savings {
        kinds: kinds.map(of_kind).collect(),
        sites: waste.sites.into_iter().map(saving).collect(),
    })
}

fn of_kind(kind: WasteKind) -> Saving {
    Saving {
        name: kind.kind.replace('_', " "),
        kind: kind.kind,
        what: None,
        objects: kind.objects,
        bytes: kind.wasted.0,
        stack: Vec::new(),
    }
}

fn saving(site: WasteSite) -> Saving {
    let counted = |one: &str, many: &str| match site.objects {
        1 => format!("1 {one}"),
        n => format!("{} {many}", grouped(n)),
    };
    let example = match &site.value {
        Some(value) => format!(", such as {value}"),
        None => String::new(),
    };
    let copies = |of: &str| format!("{} of equal {of}{example}", counted("copy", "copies"));
    let collections = || counted("collection", "collections");
    let what = match (site.kind, &site.field) {
        ("duplicate_strings", _) => copies("strings"),
        ("duplicate_arrays", _) => copies("arrays"),
        ("equal_objects", _) => copies("objects"),
        ("duplicate_boxed_numbers", _) => copies("boxed numbers"),
        ("boxed_fields", Some(field)) => {
            let boxes = counted("box", "boxes");
            format!("{boxes} in the field {field}, which could be primitive")
        }
        ("empty_collections", _) if site.objects == 1 => {
            "1 collection that holds nothing".to_owned()
        }
        ("empty_collections", _) => format!("{} that hold nothing", collections()),
        ("single_element_collections", _) => format!("{} of one element", collections()),
        ("unused_slots", _) => format!("unused room of {}", collections()),
        (kind, _) => format!(
            "{}: {}",
            counted("object", "objects"),
            kind.replace('_', " ")
        ),
    };
    Saving {
        name: site.class,
        kind: site.kind,
        what: Some(what),
        objects: site.objects,
        bytes: site.wasted.0,
        stack: site.frames,
    }
}
