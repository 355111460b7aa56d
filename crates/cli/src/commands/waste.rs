//! `tenure waste`.

use super::described::number;
use super::part::Part;
use super::target::{Dump, limit};
use crate::Outcome;
use crate::exit::Usage;
use crate::session::Session;
use anyhow::{Context, Result};
use heap_analysis::collections::table::CollectionTable;
use heap_analysis::waste::{WasteOptions, waste};
use std::path::PathBuf;
use std::sync::Arc;

/// Memory that could be saved: copies, unused capacity of collections, zeros, references, buffers
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure waste heap.hprof\n  tenure waste --set retained:package:com.example heap.hprof\n  tenure waste -n 5 --no-holders heap.hprof\n  tenure waste --collections own.toml --json heap.hprof"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    table: Table,
    /// Do not name the fields that hold copies (saves one of three walks over the file)
    #[arg(long)]
    no_holders: bool,
    /// Rows per table, 0 for all [default: 20, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

/// Which classes are collections.
#[derive(Debug, clap::Args)]
pub struct Table {
    /// More collection classes, in the form of the built-in table (docs/reference/collections.md)
    #[arg(long, value_name = "TOML", value_hint = clap::ValueHint::FilePath)]
    collections: Option<PathBuf>,
}

impl Table {
    /// The user's file; empty without one.
    fn text(&self) -> Result<String> {
        let Some(path) = &self.collections else {
            return Ok(String::new());
        };
        std::fs::read_to_string(path).with_context(|| path.display().to_string())
    }

    /// The built-in table with the user's file in front.
    pub(crate) fn read(&self) -> Result<CollectionTable> {
        let built_in = CollectionTable::built_in();
        let Some(path) = &self.collections else {
            return Ok(built_in);
        };
        let own = CollectionTable::parse(&self.text()?)
            .map_err(|e| Usage(format!("{}: {e}", path.display())))?;
        Ok(built_in.with(own))
    }
}

impl Args {
    /// Prints what could be saved.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let table = self.table.read()?;
        let heap = Arc::new(session.open(&self.dump.file)?);
        let usual = number("waste", "limit") as usize;
        // The contents of the user's table are a part of the question, too.
        let question = format!("{self:?} {}", self.table.text()?);
        session.answer_once(&heap, &question, || {
            let options = WasteOptions {
                scope: self.part.scope(session, &heap)?,
                top: limit(self.limit, session.is_data(), usual),
                holders: !self.no_holders,
                // A dump in which all objects have one trace was not written by a profiler.
                sites: heap.one_trace().is_none(),
                table,
            };
            Ok(session.with_control(|c| waste(&heap, &options, c))?)
        })
    }
}
