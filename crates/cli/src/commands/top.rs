//! `tenure top`.

use super::target::limit;
use crate::Outcome;
use crate::session::Session;
use heap_analysis::tables::top::{TopOptions, consumers};
use requests::percent;
use std::path::PathBuf;

/// The largest objects, classes, loaders and packages of a dump
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(on_linux!("tenure watch shows a running JVM.\n\n"), "Examples:\n  tenure top heap.hprof\n  tenure top --json heap.hprof | jq '.packages[0]'")
)]
pub struct Args {
    /// The dump (a file, `file#2` or `-`)
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Smallest share of the heap that is shown
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    threshold: f64,
    /// Rows per table, 0 for all [default: 20, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints the consumers.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.file)?;
        let options = TopOptions {
            threshold: self.threshold,
            top: limit(self.limit, session.is_data(), 20),
        };
        session.answer(&consumers(&heap, &options)?, heap.summary())
    }
}
