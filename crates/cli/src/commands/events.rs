//! `tenure events`.

use super::target::limit;
use crate::Outcome;
use crate::exit::Exit;
use crate::output::{note, write_file};
use crate::session::Session;
use anyhow::{Context, Result};
use live_heap::{Events, Replay};
use report::events::{EventsJson, doc, page};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a recording of VM events says: arenas, survival, promotion, what each collection moved
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure events run.vmpi\n  tenure events run.vmpi -o run.html\n  tenure events --json run.vmpi | jq '.arenas[] | {name, bytes}'"
)]
pub struct Args {
    /// A recording; `-` is standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Number of classes and sites, 0 for all [default: 20, all with --json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Write an HTML page
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

impl Args {
    /// Says what the recording says.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let top = limit(self.top, session.global.json, 20).unwrap_or(usize::MAX);
        let (events, damage) = replay(&self.file, top)?;
        let damage = damage.as_deref();
        if let Some(path) = &self.output {
            let name = self
                .file
                .file_name()
                .map_or("events".into(), |name| name.to_string_lossy());
            write_page(session, path, &page(&name, &events, damage))?;
        }
        if session.global.json {
            let mut bytes = serde_json::to_vec_pretty(&EventsJson::new(&events, damage))?;
            bytes.push(b'\n');
            session.write(&bytes)?;
        } else if self.output.is_none() {
            session.say_doc(&doc(&events, damage))?;
        }
        match damage {
            None => Ok(Exit::Ok),
            Some(damage) => {
                note(&format!(
                    "the recording is damaged; the answer is about what comes before: {damage}"
                ));
                Ok(Exit::Damaged)
            }
        }
    }
}

/// Writes a page, unless something is there.
pub(super) fn write_page(session: &Session, path: &Path, page: &str) -> Result<()> {
    if path == Path::new("-") {
        session.write(page.as_bytes())?;
        return Ok(());
    }
    write_file(path, session.global.force, page.as_bytes())?;
    if !session.global.quiet {
        note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Replays a file, and says what is wrong with it.
fn replay(file: &Path, top: usize) -> Result<(Events, Option<String>)> {
    let name = file.display().to_string();
    let mut input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(file).with_context(|| name.clone())?)
    };
    let mut replay = Replay::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match input.read(&mut buffer).with_context(|| name.clone())? {
            0 => break,
            read => replay.push(&buffer[..read]),
        }
    }
    let (heap, damage) = replay.finish().with_context(|| name)?;
    Ok((heap.answer(top), damage.map(|damage| damage.to_string())))
}
