//! `tenure mcp`.

use super::target::refuse_missing;
use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::page::{Record, leave};
use crate::live::watched::{Watched, record_or_resume};
use crate::session::Session;
use jvm_observe::jvm;
use live_session::Live;
use server::mcp::Subjects;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Server for AI assistants: the Model Context Protocol on standard input and output
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure mcp heap.hprof\n  tenure mcp before.hprof after.hprof --profile java.hprof.txt\n  tenure mcp --live shop.Main --dumps /tmp/dumps\n\nAn AI client starts it (docs/reference/mcp.md describes how, and the tools). It writes only the\nindex of each dump (--no-index: none), and with --live the program's history in the user's cache and\nthe heap dumps that the client requests."
)]
pub struct Args {
    /// The dumps
    #[arg(value_name = "FILE", required_unless_present_any = ["profile", "live"], value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// A profile as `tenure profile` reads it (may be repeated)
    #[arg(long, value_name = "PROFILE", value_hint = clap::ValueHint::FilePath)]
    profile: Vec<PathBuf>,
    /// A running JVM: process id, or a part of the main class's name
    #[arg(long, value_name = "PID|MAIN")]
    live: Option<String>,
    /// With --live: record allocations from the beginning [default: on request of the client]
    #[arg(long, value_name = "HOW", requires = "live")]
    record: Option<Record>,
    /// With --live: folder of heap dumps that the client requests [default: this one]
    #[arg(long, value_name = "FOLDER", requires = "live", value_hint = clap::ValueHint::DirPath)]
    dumps: Option<PathBuf>,
    /// With --live: the agent library [default: beside this program]
    #[arg(long, value_name = "PATH", requires = "live", value_hint = clap::ValueHint::FilePath)]
    agent: Option<PathBuf>,
}

impl Args {
    /// Serves until standard input ends.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        for file in self.files.iter().chain(&self.profile) {
            if file.as_os_str() == "-" {
                let why = "standard input is where the client speaks; name a file";
                return Err(Usage(why.to_owned()).into());
            }
            refuse_missing(file)?;
        }
        let (options, mapping) = (session.options(), session.renaming()?);
        let program = self.program(session)?;
        let files = (&self.files[..], &self.profile[..]);
        let subjects = Subjects::open(files, &options, mapping.as_ref(), program.clone());
        let served = server::mcp::serve(subjects, io::stdin().lock(), io::stdout());
        if let Some(live) = program {
            let has_ended = live.status().borrow().ended;
            leave(&live, has_ended);
            live.close();
        }
        served?;
        Ok(Exit::Ok)
    }

    /// The running program, which is watched from now on.
    fn program(&self, session: &Session) -> anyhow::Result<Option<Arc<Live>>> {
        let Some(target) = &self.live else {
            return Ok(None);
        };
        let watched = Watched::new(jvm::find(target)?, self.agent.clone(), None);
        let live = watched.watch(self.dumps.as_deref(), Vec::new(), session)?;
        record_or_resume(&live, self.record.map(|record| record.recording(None)));
        Ok(Some(live))
    }
}
