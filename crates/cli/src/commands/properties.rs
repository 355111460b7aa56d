//! `tenure properties`.

use super::target::Dump;
use crate::Outcome;
use crate::exit::Exit;
use crate::session::Session;

/// System properties and environment variables of the program
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure properties heap.hprof\n  tenure properties --json heap.hprof | jq '.environment'\n  tenure properties heap.hprof | grep java.version"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
}

impl Args {
    /// Prints the properties.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let found = heap_analysis::tables::properties::properties(&heap);
        let exit = session.answer(&found, heap.summary())?;
        Ok(if found.properties.is_empty() {
            Exit::No
        } else {
            exit
        })
    }
}
