//! `tenure watch`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::page::{Record, leave, size};
use crate::live::watched::{Watched, record_or_resume};
use crate::session::Session;
use crate::watch;
use jvm_observe::jvm::{self, Jvm};
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// Watch a running JVM in the terminal: memory, allocations by stack, live objects, advice
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It is what `attach --live` shows in a browser, without a server. ? lists the keys, q ends; the program\ncontinues.\n\nExamples:\n  tenure watch                                (lists the JVMs)\n  tenure watch 4711\n  tenure watch shop.Main --record full"
)]
pub struct Args {
    /// Process id, or a part of the main class's name [default: list the JVMs]
    #[arg(value_name = "PID|MAIN")]
    target: Option<String>,
    /// Record allocations from the beginning [default: on a key]
    #[arg(long, value_name = "HOW")]
    record: Option<Record>,
    /// With --record: also record malloc, one block per this many bytes on average (1: every block)
    #[arg(long, value_name = "BYTES", requires = "record", value_parser = size)]
    native: Option<u64>,
    /// Folder of heap dumps that the keys take [default: this one]
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    dumps: Option<PathBuf>,
    /// Folder with the source of frames (may be repeated)
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    source: Vec<PathBuf>,
    /// The agent library [default: beside this program]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    agent: Option<PathBuf>,
}

impl Args {
    /// Shows the JVM until a key or a signal ends it.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        match &self.target {
            None => super::attach::list(session),
            Some(target) => self.watch(jvm::find(target)?, session),
        }
    }

    fn watch(&self, jvm: Jvm, session: &Session) -> Outcome {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            let text = "tenure watch needs a terminal; tenure attach PID --live has pages and JSON";
            return Err(Usage(text.to_owned()).into());
        }
        let recording = self.record.map(|record| record.recording(self.native));
        let watched = Watched::new(jvm, self.agent.clone(), None);
        let live = watched.watch(self.dumps.as_deref(), self.source.clone(), session)?;
        record_or_resume(&live, recording);
        let shown = watch::run(&live, session.look.color);
        let has_ended = live.status().borrow().ended;
        leave(&live, has_ended);
        live.close();
        shown?;
        Ok(Exit::Ok)
    }
}
