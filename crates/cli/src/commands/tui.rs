//! `tenure tui`.

use super::target::Dump;
use crate::Outcome;
use crate::exit::Usage;
use crate::session::Session;
use crate::tui;
use report::Provenance;
use std::io::{self, IsTerminal};

/// Explore a dump in the terminal
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tenure tui heap.hprof\n\nKeys: o overview, l leaks, h histogram, d dominators, t threads; Enter opens, Backspace goes back;\np paths from roots, r what it retains, i referrers; / searches; ? lists all keys; q ends."
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
}

impl Args {
    /// Opens the dump and hands over the terminal.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Err(
                Usage("tenure tui needs a terminal; the other commands do not".to_owned()).into(),
            );
        }
        let heap = session.open(&self.dump.file)?;
        let name = self
            .dump
            .file
            .file_name()
            .unwrap_or(self.dump.file.as_os_str());
        tui::run(&heap, &name.to_string_lossy(), session.look.color)?;
        Ok(session.finish(&Provenance::of(heap.summary())))
    }
}
