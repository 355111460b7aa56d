//! `tenure dump`.

use crate::Outcome;
use crate::exit::Exit;
use crate::live::{attach, jvm};
use crate::output::note;
use crate::output_file::OutputFile;
use crate::session::Session;
use anyhow::Context;
use report::units::human_bytes;
use std::fs;
use std::path::PathBuf;

/// Take a heap dump of a running JVM
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The JVM stops while it writes. A JVM that runs with Tenure's agent also writes its profile on\nSIGQUIT (kill -QUIT PID).\n\nExamples:\n  tenure dump 4711 -o heap.hprof\n  tenure dump demo.Main -o all.hprof --all"
)]
pub struct Args {
    /// Process id, or a part of the main class's name
    #[arg(value_name = "PID|MAIN")]
    target: String,
    /// The file
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,
    /// Include unreachable objects (no GC first)
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
        let name = self.output.display();
        let bytes = human_bytes(metadata.len());
        note(&format!(
            "wrote {name} ({bytes}); next: tenure leaks {name}"
        ));
        Ok(Exit::Ok)
    }
}
