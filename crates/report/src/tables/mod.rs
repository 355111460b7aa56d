//! Tables of plain columns as files for other programs: CSV, NDJSON, Parquet, and the CSV dialect of Neo4j's importer.

mod csv;
mod ndjson;
mod parquet;
mod thrift;

pub use parquet::Parquet;

use heap_analysis::share::export::Table;
use std::io::{self, Write};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableForm {
    /// RFC 4180, with a header line.
    Csv,
    /// A JSON object per line.
    Ndjson,
    /// Parquet.
    Parquet,
    /// CSV with the header lines of `neo4j-admin database import`.
    Neo4j,
}

impl TableForm {
    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            TableForm::Csv | TableForm::Neo4j => "csv",
            TableForm::Ndjson => "ndjson",
            TableForm::Parquet => "parquet",
        }
    }
}

/// Writes one table, piece by piece.
pub struct TableWriter<W: Write> {
    form: TableForm,
    inner: Inner<W>,
    pieces: u64,
}

enum Inner<W: Write> {
    Text(W),
    Parquet(Box<Parquet<W>>),
}

impl<W: Write> TableWriter<W> {
    /// A table in this format. The first piece determines the columns.
    pub fn new(form: TableForm, out: W) -> TableWriter<W> {
        let inner = match form {
            TableForm::Parquet => Inner::Parquet(Box::new(Parquet::new(out))),
            _ => Inner::Text(out),
        };
        TableWriter {
            form,
            inner,
            pieces: 0,
        }
    }

    /// Appends a piece; all pieces have the same columns.
    pub fn write(&mut self, piece: &Table) -> io::Result<()> {
        let first = self.pieces == 0;
        self.pieces += 1;
        match &mut self.inner {
            Inner::Parquet(parquet) => parquet.write(piece),
            Inner::Text(out) => match self.form {
                TableForm::Ndjson => ndjson::write(out, piece),
                form => csv::write(out, piece, first, form == TableForm::Neo4j),
            },
        }
    }

    /// Writes the end of the file.
    pub fn finish(self) -> io::Result<()> {
        match self.inner {
            Inner::Parquet(parquet) => parquet.finish(),
            Inner::Text(mut out) => out.flush(),
        }
    }
}
