//! `tenure waste`.

use super::described::number;
use super::part::Part;
use super::target::{Dump, limit};
use crate::Outcome;
use crate::session::Session;
use heap_analysis::waste::{WasteOptions, waste};
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
    /// Do not name the fields that hold copies (saves one of three walks over the file)
    #[arg(long)]
    no_holders: bool,
    /// Rows per table, 0 for all [default: 20, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints what could be saved.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = Arc::new(session.open(&self.dump.file)?);
        let usual = number("waste", "limit") as usize;
        session.answer_once(&heap, &format!("{self:?}"), || {
            let options = WasteOptions {
                scope: self.part.scope(session, &heap)?,
                top: limit(self.limit, session.is_data(), usual),
                holders: !self.no_holders,
                // A dump in which all objects have one trace was not written by a profiler.
                sites: heap.one_trace().is_none(),
            };
            Ok(session.with_control(|c| waste(&heap, &options, c))?)
        })
    }
}
