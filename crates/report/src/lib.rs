//! Words for answers. Every answer becomes a [`Doc`] once (module [`say`]), and each form renders
//! documents: [`terminal`], [`markdown`], [`html`]. [`json`] writes the answer itself, in an
//! envelope with its schema, the layout the sizes come from, and the damage of the file.
//!
//! ```
//! use report::{Doc, Look, Span, terminal};
//! let doc = Doc::new().text([Span::from("The heap holds "), Span::Bytes(4096), Span::from(".")]);
//! assert_eq!(terminal::render(&doc, &Look::default()), "The heap holds 4.0 KiB.\n");
//! ```
//!
//! In reading order: [`doc`], [`units`], [`escape`] (names in a dump are hostile), [`say`],
//! [`terminal`], [`markdown`], [`html`], [`json`], [`csv`], [`sheet`] (tables of any answer as CSV), [`check`] (forms of build
//! servers), [`tables`] (CSV, NDJSON, Parquet, Neo4j); and [`profile`], the formats of other tools for what was sampled;
//! [`events`], what a stream of VM events says;
//! and [`phases`], what an analysis cost.

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
