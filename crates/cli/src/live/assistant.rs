//! A running program for an AI assistant (`tenure mcp --live`).

use super::page::{Record, leave};
use super::watched::{Watched, record_or_resume};
use crate::session::Session;
use anyhow::Result;
use jvm_observe::jvm;
use live_session::Live;
use std::path::PathBuf;
use std::sync::Arc;

/// Which program, and how it is watched.
#[derive(Debug, clap::Args)]
pub(crate) struct Program {
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

impl Program {
    /// The program, which is watched from now on.
    pub(crate) fn watch(&self, session: &Session) -> Result<Option<Arc<Live>>> {
        let Some(target) = &self.live else {
            return Ok(None);
        };
        let watched = Watched::new(jvm::find(target)?, self.agent.clone(), None);
        let live = watched.watch(self.dumps.as_deref(), Vec::new(), session)?;
        record_or_resume(&live, self.record.map(|record| record.recording(None)));
        Ok(Some(live))
    }
}

/// Stops watching it.
pub(crate) fn end(live: &Live) {
    let has_ended = live.status().borrow().ended;
    leave(live, has_ended);
    live.close();
}
