//! `tenure watch`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::page::{Record, keep_recording, past_folder, size};
use crate::live::watched::Watched;
use crate::session::Session;
use crate::watch;
use anyhow::Context;
use jvm_observe::jvm::{self, Jvm};
use server::live::Live;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

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
    /// With --record: malloc, too: a block per so many bytes (1: every one)
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
        let folder = self.dumps.clone().unwrap_or_else(|| PathBuf::from("."));
        let folder = std::path::absolute(&folder).with_context(|| folder.display().to_string())?;
        let watched = Watched::new(jvm, self.agent.clone(), None);
        let past = past_folder(session);
        let live = Live::watch(
            Arc::new(watched),
            folder,
            self.source.clone(),
            past.as_deref(),
        );
        let earlier = live.resume();
        let asked = self.record.map(|record| record.recording(self.native));
        if let Some(recording) = asked.or(earlier) {
            let live = Arc::clone(&live);
            // What goes wrong is in the state that is shown.
            std::thread::spawn(move || live.start_recording(recording));
        }
        let shown = watch::run(&live, session.look.color);
        if live.status().borrow().ended {
            keep_recording(&live);
        }
        live.close();
        shown?;
        Ok(Exit::Ok)
    }
}
