//! The index files on the disk.

use crate::doc::{number, words};
use crate::{Cell, Doc, Span, Table};
use serde::Serialize;

/// Index files as JSON.
#[derive(Debug, Serialize)]
pub struct CacheJson<'a> {
    /// Name and version of this layout.
    pub schema: &'static str,
    /// Whether they were removed.
    pub removed: bool,
    /// Their bytes together.
    pub bytes: u64,
    /// The files, by folder.
    pub files: &'a [IndexFile],
}

/// An index file.
#[derive(Clone, Debug, Serialize)]
pub struct IndexFile {
    /// Its path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

impl<'a> CacheJson<'a> {
    /// These files, which exist or were removed.
    #[must_use]
    pub fn new(files: &'a [IndexFile], removed: bool) -> Self {
        Self {
            schema: "tenure.cache/1",
            removed,
            bytes: files.iter().map(|file| file.bytes).sum(),
            files,
        }
    }

    /// The same as a table.
    #[must_use]
    pub fn doc(&self) -> Doc {
        let mut table = Table::new([number("size"), words("index")]);
        table.when_empty = "no index files";
        for file in self.files {
            table.row([
                Span::Bytes(file.bytes).into(),
                Cell::value(file.path.clone()),
            ]);
        }
        if !self.files.is_empty() {
            let word = if self.removed { "removed" } else { "in all" };
            table.total = Some(vec![
                Span::Bytes(self.bytes).into(),
                Span::from(word).into(),
            ]);
        }
        Doc::new().table(table)
    }
}
