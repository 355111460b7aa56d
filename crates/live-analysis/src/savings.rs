//! What could be saved: the waste of a heap dump, by class and allocating stack.

use heap_analysis::objects::readable::grouped;
use heap_analysis::waste::{WasteKind, WasteOptions, WasteSite, waste};
use heap_graph::{Control, Heap, HeapError};
use serde::Serialize;

/// Memory that need not be used, of one kind and class, from one allocating stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saving {
    /// The kind, as in [`WasteKind`].
    pub kind: &'static str,
    /// The class.
    pub class: String,
    /// What, in words.
    pub what: String,
    /// Objects concerned.
    pub objects: u64,
    /// Bytes to save.
    pub bytes: u64,
    /// The stack that allocated them, innermost frame first; empty when the dump knows none.
    pub stack: Vec<String>,
}

/// What a dump shows as waste.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Savings {
    /// Every kind of waste with its bytes; kinds overlap, so their sum is no total.
    pub kinds: Vec<WasteKind>,
    /// The largest by class and stack.
    pub rows: Vec<Saving>,
}

/// What a dump shows as waste, each by falling bytes.
///
/// # Errors
/// When the dump cannot be read.
pub fn savings(heap: &Heap, limit: usize) -> Result<Savings, HeapError> {
    let options = WasteOptions {
        top: Some(limit),
        holders: false,
        sites: true,
        ..WasteOptions::default()
    };
    let waste = waste(heap, &options, &Control::quiet())?;
    let rows = waste.sites.into_iter().map(saving).collect();
    Ok(Savings {
        kinds: waste.kinds,
        rows,
    })
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
        kind: site.kind,
        class: site.class,
        what,
        objects: site.objects,
        bytes: site.wasted.0,
        stack: site.frames,
    }
}
