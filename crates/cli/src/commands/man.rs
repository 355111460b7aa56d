//! `tenure man`.

use crate::Outcome;
use crate::args::Cli;
use crate::exit::Exit;
use crate::output_file::write_file;
use crate::session::Session;
use clap::CommandFactory;
use clap_mangen::Man;
use std::path::PathBuf;

/// The manual page, or one per command into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tenure man | man -l -\n  tenure man -o man1/")]
pub struct Args {
    /// Folder for tenure.1, tenure-leaks.1, ...
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Args {
    /// Writes the pages.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let mut command = Cli::command();
        command.build();
        let Some(folder) = &self.output else {
            let mut text = Vec::new();
            Man::new(command).render(&mut text)?;
            session.write(&text)?;
            return Ok(Exit::Ok);
        };
        std::fs::create_dir_all(folder)?;
        let mut pages = vec![command.clone()];
        pages.extend(command.get_subcommands().cloned());
        for (n, page) in pages.into_iter().enumerate() {
            let name = if n == 0 {
                "tenure".to_owned()
            } else {
                format!("tenure-{}", page.get_name())
            };
            let mut text = Vec::new();
            Man::new(page).title(name.clone()).render(&mut text)?;
            write_file(
                &folder.join(format!("{name}.1")),
                session.global.force,
                &[],
                &text,
            )?;
        }
        Ok(Exit::Ok)
    }
}
