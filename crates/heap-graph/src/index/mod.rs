//! The index file beside a dump.

mod format;
mod identity;
mod meta;
mod place;
mod writer;

pub(crate) use format::{IndexFile, Tag, VERSION};
pub(crate) use identity::{Identity, hash};
pub(crate) use meta::{Detail, Meta};
pub(crate) use place::{IndexPlace, in_spill_folder, make_requested, spill_dir};
pub use place::{open_own, path_tag};
pub(crate) use writer::IndexWriter;
