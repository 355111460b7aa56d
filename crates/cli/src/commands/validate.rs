//! `tenure validate`.

use super::target::Dump;
use crate::Outcome;
use crate::session::Session;

/// Check whether the file is whole; lists all damage, exit code 4 if there is any
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure validate heap.hprof\n  tenure validate --json cut.hprof.gz\n  tenure validate - < heap.hprof"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
}

impl Args {
    /// Prints the verdict.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        session.answer(
            &heap_analysis::tables::validate::validate(&heap),
            heap.summary(),
        )
    }
}
