//! `tenure top`.

use super::target::limit;
use crate::Outcome;
use crate::exit::{Exit, NotFound, Usage};
use crate::live::jvm::{self, Jvm};
use crate::live::page::{Record, keep_recording, past_folder, size};
use crate::live::watched::Watched;
use crate::session::Session;
use anyhow::{Context, Result};
use heap_analysis::top::{TopOptions, consumers};
use server::live::Live;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest objects, classes, loaders and packages of a dump; or a running JVM in the terminal
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A process id, or a part of the main class's name, shows that JVM while it runs: its memory, what is\nallocated by whom, instances of every class, what to fix. It is what `attach --live` shows in a\nbrowser. A file of the same name comes first; ./4711 is always a file. ? lists the keys, q ends.\n\nExamples:\n  tenure top heap.hprof\n  tenure top --json heap.hprof | jq '.packages[0]'\n  tenure top 4711 --record full"
)]
pub struct Args {
    /// The dump (a file, `file#2` or `-`), or a running JVM [default: list the JVMs]
    #[arg(value_name = "FILE|PID|MAIN", value_hint = clap::ValueHint::FilePath)]
    target: Option<PathBuf>,
    /// Smallest share of the heap that is shown
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    threshold: f64,
    /// Rows per table, 0 for all [default: 20, all with --json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Of a JVM: record allocations from the beginning [default: on a key]
    #[arg(long, value_name = "HOW")]
    record: Option<Record>,
    /// With --record: malloc, too: a block per so many bytes (1: every one)
    #[arg(long, value_name = "BYTES", requires = "record", value_parser = size)]
    native: Option<u64>,
    /// Of a JVM: folder of heap dumps that the keys take [default: this one]
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    dumps: Option<PathBuf>,
    /// Of a JVM: folder with the source of frames (may be repeated)
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    source: Vec<PathBuf>,
    /// Of a JVM: the agent library [default: beside this program]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    agent: Option<PathBuf>,
}

impl Args {
    /// Says the consumers, or shows the JVM.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let Some(target) = &self.target else {
            return super::attach::list(session);
        };
        if let Some(jvm) = running(target)? {
            return self.watch(jvm, session);
        }
        let heap = session.open(target)?;
        let options = TopOptions {
            threshold: self.threshold.max(0.0),
            top: limit(self.top, session.global.json, 20),
        };
        session.answer(&consumers(&heap, &options)?, heap.summary())
    }

    fn watch(&self, jvm: Jvm, session: &Session) -> Outcome {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            let text =
                "tenure top PID needs a terminal; tenure attach PID --live has pages and JSON";
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
        let shown = crate::top::run(&live, session.look.color);
        if live.status().borrow().ended {
            keep_recording(&live);
        }
        live.close();
        shown?;
        Ok(Exit::Ok)
    }
}

/// The JVM that a target means; `None` when it means a file.
fn running(target: &Path) -> Result<Option<Jvm>> {
    let Some(text) = target.to_str() else {
        return Ok(None);
    };
    let file = text.rsplit_once('#').map_or(text, |(file, _)| file);
    if text == "-" || text.contains('/') || Path::new(file).exists() {
        return Ok(None);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return jvm::find(text).map(Some);
    }
    match jvm::find(text) {
        Ok(jvm) => Ok(Some(jvm)),
        // Neither a JVM nor a file: the file is what is missing.
        Err(error) if error.is::<NotFound>() => Ok(None),
        Err(error) => Err(error),
    }
}
