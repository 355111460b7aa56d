//! `tenure android`.

use super::target::{Dump, limit};
use crate::Outcome;
use crate::session::Session;
use heap_analysis::android::android;

/// Android: heaps, destroyed screens still held, native memory, bitmaps
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure android heap.hprof\n  tenure android --mapping mapping.txt heap.hprof\n  tenure android --json heap.hprof"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// Number of bitmaps, 0 for all [default: 20, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints the answer.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let top = limit(self.limit, session.is_data(), 20);
        let found = session.with_control(|c| android(&heap, top, c))?;
        session.answer(&found, heap.summary())
    }
}
