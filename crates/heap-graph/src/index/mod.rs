//! The index file beside a dump.

mod format;
mod place;

pub(crate) use format::{Identity, IndexFile, IndexWriter, Tag, VERSION, hash};
pub(crate) use place::{index_path, spill_dir};
