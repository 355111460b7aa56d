//! `tenure dump`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::{attach, jvm};
use crate::output::note;
use crate::session::Session;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

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
        let path = absolute(&self.output)?;
        if path.exists() {
            if !session.global.force {
                let text = format!("{} exists (--force overwrites)", path.display());
                return Err(Usage(text).into());
            }
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
        let jvm = jvm::find(&self.target)?;
        attach::dump(&jvm, &path, !self.all)?;
        let metadata = fs::metadata(&path).with_context(|| path.display().to_string())?;
        note(&format!(
            "{} holds {} bytes",
            path.display(),
            metadata.len()
        ));
        Ok(Exit::Ok)
    }
}

/// The path from the root: the JVM works in another folder.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}
