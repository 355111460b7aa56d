//! `tenure roots`.

use super::described::help;
use super::target::{Dump, limit};
use crate::Outcome;
use crate::session::Session;
use heap_analysis::tables::roots::{RootOptions, kind_named, roots};
use hprof::HeapTag;

/// The GC roots by kind and class
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure roots heap.hprof\n  tenure roots --kind JNI_GLOBAL -n 50 heap.hprof\n  tenure roots --json heap.hprof"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    #[arg(long, value_name = "KIND", value_parser = kind_named, help = help("roots", "kind"))]
    kind: Option<HeapTag>,
    /// Classes and objects per kind, 0 for all [default: 5, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints the roots.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let options = RootOptions {
            kind: self.kind,
            top: limit(self.limit, session.is_data(), 5).unwrap_or(usize::MAX),
        };
        let found = session.with_control(|control| roots(&heap, &options, control))?;
        session.answer(&found, heap.summary())
    }
}
