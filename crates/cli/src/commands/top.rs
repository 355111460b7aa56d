//! `tenure top`.

use super::target::{Dump, limit};
use crate::Outcome;
use crate::session::Session;
use heap_analysis::top::{TopOptions, consumers};

/// The biggest objects, classes, loaders and packages
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure top heap.hprof\n  tenure top --threshold 5 heap.hprof\n  tenure top --json heap.hprof | jq '.packages[0]'"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// Only what retains more than this many percent of the heap
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    threshold: f64,
    /// Rows per table, 0 for all [default: 20, all with --json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

impl Args {
    /// Says the consumers.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let options = TopOptions {
            threshold: self.threshold.max(0.0),
            top: limit(self.top, session.global.json, 20),
        };
        session.answer(&consumers(&heap, &options), heap.summary())
    }
}
