//! One module per family of answers: each answer as text and tables, independent of the output format.

mod android;
mod details;
mod diff;
mod dominators;
mod dossier;
mod histogram;
mod leaks;
mod overview;
mod paths;
mod query;
mod secrets;
mod sets;
mod strings;
mod summary;
mod threads;
mod waste;

pub use dossier::{Chapter, chapters};
pub(crate) use leaks::no_suspects;
pub use leaks::suspects_doc;
pub use overview::facts_doc;
pub use query::{Tables, cut_text};

use crate::doc::{Doc, Span};
use crate::json::Provenance;
use crate::units::{grouped, percent};
use heap_graph::{LayoutModel, Strength};
use serde::Serialize;

/// An answer that can be shown. To add one: implement this beside similar answers and add its schema to
/// `crates/xtask/src/answers/mod.rs`, which generates the reference of its fields.
pub trait Say: Serialize {
    /// The middle part of the schema name `tenure.NAME/1`.
    const NAME: &'static str;

    /// The answer as a document, without its provenance.
    fn doc(&self) -> Doc;

    /// The tables of the answer for CSV: those of the document, and more if the document has data in sentences that
    /// belongs in a table.
    fn sheet(&self) -> Doc {
        self.doc()
    }
}

/// One line about the layout that the sizes come from and the references that count. It ends every answer in text
/// form.
pub fn provenance_text(provenance: &Provenance) -> String {
    let layout = &provenance.layout;
    let shape = format!(
        "{}-byte header, {}-byte references, {}-byte alignment",
        layout.header, layout.reference, layout.alignment
    );
    let sizes = match layout.model {
        LayoutModel::Measured if layout.samples > 0 => format!(
            "measured layout ({shape}; {} of {} gaps agree)",
            percent(layout.confidence),
            grouped(layout.samples)
        ),
        LayoutModel::Measured => format!("measured layout ({shape})"),
        LayoutModel::Mat => format!("layout as Eclipse MAT computes it ({shape})"),
        LayoutModel::Plain => "plain layout (field bytes only)".to_owned(),
    };
    let references = match provenance.strength {
        Strength::All => "all references count",
        Strength::Strong => "only strong references count",
        Strength::StrongSoft => "strong and soft references count",
    };
    let damage = if provenance.damaged {
        "; the file is damaged, results cover the readable part"
    } else {
        ""
    };
    format!("Sizes: {sizes}; {references}{damage}.")
}

/// The document of an answer with its provenance line.
pub fn whole<T: Say>(answer: &T, provenance: &Provenance) -> Doc {
    answer.doc().note([Span::Text(provenance_text(provenance))])
}
