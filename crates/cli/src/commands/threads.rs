//! `tenure threads`.

use super::described::help;
use super::target::{Dump, limit};
use crate::Outcome;
use crate::session::Session;
use heap_analysis::tables::threads::{ThreadOptions, threads};

/// Threads: retained size, stack, locals per frame; virtual threads by stack; thread-local variables
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure threads heap.hprof\n  tenure threads -n 3 --locals 20 heap.hprof\n  tenure threads --json heap.hprof | jq '.threads[].name'"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    #[arg(long, value_name = "N", help = help("threads", "locals"), default_value_t = 8)]
    locals: usize,
    /// Threads, groups of virtual threads, and thread-local variables to list, 0 for all [default: all, but 20 variables without --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints the threads.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let options = ThreadOptions {
            locals: self.locals,
            top: limit(self.limit, true, 0),
            thread_locals: Some(limit(self.limit, session.is_data(), 20).unwrap_or(usize::MAX)),
        };
        session.answer(&threads(&heap, &options), heap.summary())
    }
}
