//! `tenure collections`.

use super::part::Part;
use super::target::{Dump, limit};
use crate::Outcome;
use crate::session::Session;
use heap_analysis::collections::stats::{CollectionOptions, collections};
use std::sync::Arc;

/// Sizes, fill and collisions of collections, by class
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure collections heap.hprof\n  tenure collections --collections own.toml heap.hprof\n  tenure collections --json heap.hprof   (with the histograms of sizes)"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    #[command(flatten)]
    part: Part,
    /// Number of rows, 0 for all [default: 40, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints how they are filled.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = Arc::new(session.open(&self.dump.file)?);
        let options = CollectionOptions {
            scope: self.part.scope(session, &heap)?,
            top: limit(self.limit, session.is_data(), 40),
        };
        let found = session.with_control(|c| collections(&heap, &options, c))?;
        session.answer(&found, heap.summary())
    }
}
