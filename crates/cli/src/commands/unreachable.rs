//! `tenure unreachable`.

use super::target::{Dump, limit};
use crate::Outcome;
use crate::session::Session;

/// Objects in the dump that nothing reaches
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure unreachable heap.hprof\n  tenure unreachable -n 0 heap.hprof\n  tenure unreachable --json heap.hprof | jq .total"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// Number of rows, 0 for all [default: 40, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints the unreachable objects.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let top = limit(self.limit, session.is_data(), 40);
        session.answer(
            &heap_analysis::tables::unreachable::unreachable(&heap, top),
            heap.summary(),
        )
    }
}
