//! `tenure roots`.

use super::target::Dump;
use crate::Outcome;
use crate::session::Session;
use heap_analysis::roots::{RootOptions, roots};

/// The GC roots by kind and class
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure roots heap.hprof\n  tenure roots --kind JNI_GLOBAL --top 50 heap.hprof\n  tenure roots --json heap.hprof"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// Only this kind, such as JNI_GLOBAL
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Classes and objects per kind
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
}

impl Args {
    /// Says the roots.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let options = RootOptions {
            kind: self.kind.clone(),
            top: self.top,
        };
        session.answer(&roots(&heap, &options), heap.summary())
    }
}
