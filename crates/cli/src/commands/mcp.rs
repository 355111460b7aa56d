//! `tenure mcp`.

use super::target::refuse_missing;
use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::session::Session;
use heap_graph::Options;
use live_session::Live;
use server::explorer::Renaming;
use server::mcp::Subjects;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Server for AI assistants: the Model Context Protocol on standard input and output
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Examples:\n  tenure mcp heap.hprof\n  tenure mcp before.hprof after.hprof --profile java.hprof.txt\n",
        on_linux!("  tenure mcp --live shop.Main --dumps /tmp/dumps\n"),
        "\nAn AI client starts it (docs/reference/mcp.md describes how, and the tools). It writes only the\nindex of each dump (--no-index: none)",
        on_linux!(", and with --live the program's history in the user's cache and\nthe heap dumps that the client requests"),
        ".",
    )
)]
pub struct Args {
    /// The dumps
    #[arg(value_name = "FILE", required_unless_present_any = ["profile", #[cfg(target_os = "linux")] "live"], value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// A profile as `tenure profile` reads it (may be repeated)
    #[arg(long, value_name = "PROFILE", value_hint = clap::ValueHint::FilePath)]
    profile: Vec<PathBuf>,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    program: crate::live::assistant::Program,
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
        let opening = (session.options(), session.renaming()?);
        #[cfg(target_os = "linux")]
        if let Some(live) = self.program.watch(session)? {
            let served = self.serve(opening, Some(Arc::clone(&live)));
            crate::live::assistant::end(&live);
            return served;
        }
        self.serve(opening, None)
    }

    fn serve(
        &self,
        (options, mapping): (Options, Option<Renaming>),
        program: Option<Arc<Live>>,
    ) -> Outcome {
        let files = (&self.files[..], &self.profile[..]);
        let subjects = Subjects::open(files, &options, mapping.as_ref(), program);
        server::mcp::serve(subjects, io::stdin().lock(), io::stdout())?;
        Ok(Exit::Ok)
    }
}
