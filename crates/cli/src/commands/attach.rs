//! `tenure attach`.

use crate::Outcome;
use crate::exit::Exit;
use crate::live::page::{LiveArgs, Page};
use crate::live::{agent, attach, jvm};
use crate::output::note;
use crate::session::Session;
use std::path::PathBuf;

/// Load the agent into a running JVM, or watch it on a page
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Only the JVM's own user (and root) may attach. JDK 21 and later print a warning in the program\nunless it runs with -XX:+EnableDynamicAgentLoading. Without tenure: jcmd PID JVMTI.agent_load.\n\nExamples:\n  tenure attach --list\n  tenure attach 4711 --profile cpu=samples,file=/tmp/app.hprof.txt\n  tenure attach demo.Main --profile heap=sites,doe=y,file=/tmp/sites.txt\n  tenure attach 4711 --live"
)]
pub struct Args {
    /// Process id, or a part of the main class's name
    #[arg(value_name = "PID|MAIN", required_unless_present = "list")]
    target: Option<String>,
    /// Options of the agent, as in -agentlib:hprof=
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "cpu=samples,depth=64",
        conflicts_with = "live"
    )]
    profile: String,
    /// The agent library [default: beside this program]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    agent: Option<PathBuf>,
    /// Only list the JVMs that could be attached to
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    live: LiveArgs,
}

impl Args {
    /// Attaches.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let Some(target) = self.target.as_deref().filter(|_| !self.list) else {
            return list(session);
        };
        if self.live.live {
            self.live.check()?;
            let page = Page::open(&self.live, jvm::find(target)?, self.agent.clone(), session)?;
            let earlier = page.live.resume();
            if let Some(recording) = self.live.recording().or(earlier)
                && let Err(error) = page.live.start_recording(recording)
            {
                note(&error);
            }
            page.serve();
            return Ok(Exit::Ok);
        }
        let library = agent::find(self.agent.as_deref())?;
        let jvm = jvm::find(target)?;
        let library = agent::visible(&jvm, &library)?;
        attach::load_agent(&jvm, &library, &self.profile)?;
        note(&format!(
            "the agent runs in {} {} with {}",
            jvm.pid, jvm.main, self.profile
        ));
        Ok(Exit::Ok)
    }
}

fn list(session: &Session) -> Outcome {
    let found = jvm::list();
    for jvm in &found {
        session.write(format!("{} {}\n", jvm.pid, jvm.main).as_bytes())?;
    }
    Ok(if found.is_empty() { Exit::No } else { Exit::Ok })
}
