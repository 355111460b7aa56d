//! `tenure dump`.

use crate::Outcome;
use crate::exit::Exit;
use crate::live::{attach, jvm};
use crate::output::note;
use crate::output_file::OutputFile;
use crate::session::Session;
use anyhow::Context;
use std::fs;
use std::path::PathBuf;

/// Let a running JVM write a heap dump
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The JVM stops while it writes. A JVM that runs with our agent also writes its profile when it\ngets SIGQUIT (kill -QUIT PID).\n\nExamples:\n  tenure dump 4711 -o heap.hprof\n  tenure dump demo.Main -o all.hprof --all"
)]
pub struct Args {
    /// Process id, or a part of the main class's name
    #[arg(value_name = "PID|MAIN")]
    target: String,
    /// The file
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,
    /// Garbage too (the default collects first)
    #[arg(long)]
    all: bool,
}

impl Args {
    /// Dumps.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let path = &self.output;
        let path = std::path::absolute(path).with_context(|| path.display().to_string())?;
        let file = OutputFile::create(&path, session.global.force, &[])?;
        let jvm = jvm::find(&self.target)?;
        // The JVM takes only a name that is free.
        fs::remove_file(file.part()).with_context(|| path.display().to_string())?;
        attach::dump(&jvm, file.part(), !self.all)?;
        file.finish()?;
        let metadata = fs::metadata(&path).with_context(|| path.display().to_string())?;
        note(&format!(
            "{} holds {} bytes",
            path.display(),
            metadata.len()
        ));
        Ok(Exit::Ok)
    }
}
