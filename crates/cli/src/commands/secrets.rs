//! `tenure secrets`.

use super::target::{Dump, limit};
use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::session::Session;
use anyhow::Context;
use heap_analysis::share::secrets::{SecretOptions, SecretRules, secrets};
use std::path::{Path, PathBuf};

/// Find passwords, keys and tokens; exit code 1 if there are any
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure secrets heap.hprof\n  tenure secrets --show heap.hprof\n  tenure secrets --rules own.toml --json heap.hprof   (docs/guides/sharing.md)"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// Show the secrets instead of their first characters
    #[arg(long)]
    show: bool,
    /// More rules, in the form of the built-in ones (docs/guides/sharing.md)
    #[arg(long, value_name = "TOML", value_hint = clap::ValueHint::FilePath)]
    rules: Option<PathBuf>,
    /// Number of rows, 0 for all [default: 40, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints what was found.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let more = match &self.rules {
            None => None,
            Some(path) => {
                Some(std::fs::read_to_string(path).with_context(|| path.display().to_string())?)
            }
        };
        let file = self.rules.as_deref().unwrap_or(Path::new("rules"));
        let refused = |error| Usage(format!("{}: {error}", file.display()));
        let rules = SecretRules::new(more.as_deref()).map_err(refused)?;
        let options = SecretOptions {
            // The collector does not wipe what it frees, so everything in the file counts.
            all: true,
            show: self.show,
            top: limit(self.limit, session.is_data(), 40),
        };
        let heap = session.open(&self.dump.file)?;
        let found = session.with_control(|c| secrets(&heap, &rules, &options, c))?;
        let exit = session.answer(&found, heap.summary())?;
        Ok(if found.rules.is_empty() {
            exit
        } else {
            Exit::No
        })
    }
}
