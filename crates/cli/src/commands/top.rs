//! `tenure top`.

use super::target::limit;
use crate::Outcome;
use crate::exit::Usage;
use crate::session::Session;
use heap_analysis::tables::top::{TopOptions, consumers};
use jvm_observe::jvm;
use requests::percent;
use std::path::{Path, PathBuf};

/// The largest objects, classes, loaders and packages of a dump
#[derive(Debug, clap::Args)]
#[command(
    after_help = "tenure watch shows a running JVM.\n\nExamples:\n  tenure top heap.hprof\n  tenure top --json heap.hprof | jq '.packages[0]'"
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
        if is_running(&self.file) {
            let target = self.file.display();
            let hint = format!("{target} is a running JVM: tenure watch {target} shows it");
            return Err(Usage(hint).into());
        }
        let heap = session.open(&self.file)?;
        let options = TopOptions {
            threshold: self.threshold,
            top: limit(self.limit, session.is_data(), 20),
        };
        session.answer(&consumers(&heap, &options)?, heap.summary())
    }
}

/// Whether something that is no file means a JVM. Until version 0.1 `top` showed these, too.
fn is_running(target: &Path) -> bool {
    let text = target.to_str().filter(|text| !text.contains('/'));
    let name = text.filter(|_| !target.exists());
    name.is_some_and(|name| jvm::find(name).is_ok())
}
