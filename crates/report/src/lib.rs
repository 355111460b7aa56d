//! Renders answers as text. Module [`say`] turns every answer into a [`Doc`], and each output format renders
//! documents: [`terminal`], [`markdown`], [`html`]. [`json`] writes the answer itself, in an envelope with its schema,
//! the layout that the sizes come from, and the damage of the file.
//!
//! ```
//! use report::{Doc, Look, Span, terminal};
//! let doc = Doc::new().text([Span::from("The heap holds "), Span::Bytes(4096), Span::from(".")]);
//! assert_eq!(terminal::render(&doc, &Look::default()), "The heap holds 4.0 KiB.\n");
//! ```
//!
//! In reading order: [`doc`], [`units`], [`escape`] (names in a dump are hostile), [`say`], [`terminal`],
//! [`markdown`], [`html`], [`json`], [`csv`], [`sheet`] (tables of any answer as CSV), [`check`] (formats of build
//! servers), [`tables`] (CSV, NDJSON, Parquet, Neo4j), [`profile`] (formats of other tools for profiles), [`events`]
//! (the contents of a stream of VM events), and [`phases`] (the cost of an analysis).

pub mod cache;
pub mod check;
pub mod csv;
pub mod doc;
pub mod escape;
pub mod events;
pub mod html;
pub mod json;
pub mod live;
pub mod markdown;
pub mod phases;
pub mod profile;
pub mod say;
pub mod sheet;
pub mod tables;
pub mod terminal;
pub mod units;

pub use doc::{Align, Block, Cell, Column, Doc, Span, Table};
pub use json::Provenance;
pub use say::Say;
pub use terminal::Look;
