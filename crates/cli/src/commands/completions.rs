//! `tenure completions`.

use crate::Outcome;
use crate::args::Cli;
use crate::exit::Exit;
use crate::session::Session;
use clap::CommandFactory;
use clap_complete::Shell;

/// Completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tenure completions bash > /etc/bash_completion.d/tenure")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Args {
    /// Writes the completions.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tenure", &mut text);
        session.write(&text)?;
        Ok(Exit::Ok)
    }
}
