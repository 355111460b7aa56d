//! `tenure strings`.

use super::described::help;
use super::part::Part;
use super::target::{Dump, limit};
use crate::Outcome;
use crate::exit::Exit;
use crate::session::Session;
use heap_analysis::strings::{StringOptions, duplicates, find};
use regex::Regex;
use std::sync::Arc;

/// Search strings, or sum up equal ones
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure strings --find 'jdbc:.*' heap.hprof\n  tenure strings --duplicates heap.hprof\n  tenure strings --duplicates --holders heap.hprof"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    #[command(flatten)]
    part: Part,
    #[arg(long, value_name = "REGEX", help = help("strings", "find"), conflicts_with_all = ["duplicates", "holders"])]
    find: Option<Regex>,
    /// Equal strings and the bytes they waste (the default)
    #[arg(long)]
    duplicates: bool,
    #[arg(long, help = help("duplicate_strings", "holders"))]
    holders: bool,
    /// Number of rows, 0 for all [default: 40, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints the strings.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = Arc::new(session.open(&self.dump.file)?);
        let options = StringOptions {
            scope: self.part.scope(session, &heap)?,
            top: limit(self.limit, session.is_data(), 40),
            holders: self.holders,
        };
        if let Some(pattern) = &self.find {
            let found = session.with_control(|c| find(&heap, pattern, &options, c))?;
            let exit = session.answer(&found, heap.summary())?;
            return Ok(if found.matches == 0 { Exit::No } else { exit });
        }
        let found = session.with_control(|c| duplicates(&heap, &options, c))?;
        session.answer(&found, heap.summary())
    }
}
