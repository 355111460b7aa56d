//! `tenure mcp`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::session::Session;
use heap_graph::HeapError;
use std::io;
use std::path::PathBuf;

/// Server for AI assistants: the Model Context Protocol on standard input and output
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure mcp heap.hprof\n  tenure mcp before.hprof after.hprof --profile java.hprof.txt\n\nAn AI client starts it (docs/reference/mcp.md describes how, and the tools). It writes only the\nindex of each dump (--no-index: nothing)."
)]
pub struct Args {
    /// The dumps
    #[arg(value_name = "FILE", required_unless_present = "profile", value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// A profile as `tenure profile` reads it (may be repeated)
    #[arg(long, value_name = "PROFILE", value_hint = clap::ValueHint::FilePath)]
    profile: Vec<PathBuf>,
}

impl Args {
    /// Serves until standard input ends.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        for file in self.files.iter().chain(&self.profile) {
            if file.as_os_str() == "-" {
                let why = "standard input is where the client speaks; name a file";
                return Err(Usage(why.to_owned()).into());
            }
            // `file#2` is the second dump in a file.
            let name = file.to_string_lossy();
            let whole = name
                .split_once('#')
                .map_or(name.as_ref(), |(whole, _)| whole);
            if let Err(error) = std::fs::metadata(file).or_else(|_| std::fs::metadata(whole)) {
                let what = file.display().to_string();
                return Err(HeapError::Io { what, error }.into());
            }
        }
        let (options, mapping) = (session.options(), session.mapping()?);
        let input = io::stdin().lock();
        server::mcp::serve(
            (&self.files, &self.profile),
            &options,
            mapping.as_ref(),
            input,
            io::stdout(),
        )?;
        Ok(Exit::Ok)
    }
}
