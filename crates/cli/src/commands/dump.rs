//! `tenure dump`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::{attach, jvm};
use crate::output::note;
use crate::session::Session;
use anyhow::{Context, Result, bail};
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
        let which = if self.all { "-all" } else { "-live" };
        let inside = if jvm.has_own_files() {
            format!("/tmp/tenure-{}.hprof", std::process::id())
        } else {
            path.to_str().context("the path is not UTF-8")?.to_owned()
        };
        let answer = attach::command(&jvm, "dumpheap", [&inside, which, ""])?;
        if jvm.has_own_files() {
            fetch(&jvm.path(&inside), &path)?;
        }
        let Ok(metadata) = fs::metadata(&path) else {
            bail!("no dump was written: {}", answer.trim());
        };
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

/// Moves a dump out of a container.
fn fetch(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    let _ = fs::remove_file(from);
    Ok(())
}
