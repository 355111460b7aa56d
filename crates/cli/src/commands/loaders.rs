//! `tenure loaders`.

use super::target::{Dump, limit};
use crate::Outcome;
use crate::session::Session;

/// Class loaders, and classes that several of them define
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure loaders heap.hprof\n  tenure loaders -n 0 heap.hprof\n  tenure loaders --json heap.hprof | jq '.duplicates'"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// Loaders, and duplicate classes, to list; 0 for all [default: 40, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints the loaders.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let top = limit(self.limit, session.is_data(), 40);
        session.answer(
            &heap_analysis::tables::loaders::loaders(&heap, top)?,
            heap.summary(),
        )
    }
}
