//! The report of each dump as a resource: what `tenure report --format md` writes, with fewer rows.

use super::message::{fresh, passing};
use super::subjects::Dump;
use form_urlencoded::byte_serialize;
use heap_analysis::tables::dossier::{DossierOptions, dossier};
use heap_graph::{Control, Heap};
use report::{Provenance, markdown, say};
use serde_json::{Value as Json, json};
use std::sync::atomic::AtomicBool;

/// The media type of a report.
pub(super) const MARKDOWN: &str = "text/markdown";

/// Rows per table.
const ROWS: usize = 15;

/// The address of a dump's report.
fn uri(dump: &Dump) -> String {
    let name: String = byte_serialize(dump.name.as_bytes()).collect();
    format!("tenure://report/{name}")
}

/// The answer to `resources/list`; there may be further dumps of a running program later.
pub(super) fn list(dumps: &[Dump], is_running: bool) -> Json {
    let resource = |dump: &Dump| {
        json!({
            "uri": uri(dump),
            "name": format!("report of {}", dump.name),
            "title": format!("Report of {}", dump.name),
            "description": "Size, leak suspects, largest classes and objects, threads, waste: the whole state of the heap on one page.",
            "mimeType": MARKDOWN,
        })
    };
    let all = dumps.iter().map(resource).collect();
    match is_running {
        true => passing("resources", all),
        false => fresh("resources", all),
    }
}

/// The dump whose report has this address.
pub(super) fn find<'d>(dumps: &'d [Dump], wanted: &str) -> Option<&'d Dump> {
    dumps.iter().find(|dump| uri(dump) == wanted)
}

/// The report of a heap.
pub(super) fn report(heap: &Heap, cancel: &AtomicBool) -> Result<String, String> {
    let options = DossierOptions {
        rows: ROWS,
        ..DossierOptions::default()
    };
    let control = Control {
        cancel,
        ..Control::default()
    };
    let answer = dossier(heap, &options, &control).map_err(|error| error.to_string())?;
    let whole = say::whole(&answer, &Provenance::of(heap.summary()));
    Ok(markdown::render(&whole, false))
}
