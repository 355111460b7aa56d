//! `tenure events`.

use super::target::{limit, parse_id};
use crate::Outcome;
use crate::exit::Exit;
use crate::output::note;
use crate::output_file::write_file;
use crate::session::Session;
use anyhow::{Context, Result};
use live_heap::{Events, LiveHeap, Replay, Watch};
use report::events::{EventsJson, TrailJson, doc, page, trail_doc};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Report a recording of VM events: arenas, survival, promotion, moves of each collection
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure events run.vmpi\n  tenure events run.vmpi -o run.html\n  tenure events --json run.vmpi | jq '.arenas[] | {name, bytes}'\n  tenure events run.vmpi --object 0x10000020"
)]
pub struct Args {
    /// A recording; `-` is standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Number of classes and sites, 0 for all [default: 20, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
    /// The history of each object that ever had this id: allocation, moves, free
    #[arg(long, value_name = "ID", conflicts_with_all = ["output", "limit"])]
    object: Option<String>,
    /// Write an HTML page
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

impl Args {
    /// Prints what the recording says.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        if let Some(text) = &self.object {
            return self.say_trails(session, text);
        }
        let top = limit(self.limit, session.is_data(), 20).unwrap_or(usize::MAX);
        let (events, damage) = replay(&self.file, top)?;
        let damage = damage.as_deref();
        if let Some(path) = &self.output {
            let name = self
                .file
                .file_name()
                .map_or("events".into(), |name| name.to_string_lossy());
            write_page(session, path, &[&self.file], &page(&name, &events, damage))?;
        }
        if session.is_data() || self.output.is_none() {
            session.say_value(&EventsJson::new(&events, damage), || doc(&events, damage))?;
        }
        Ok(end(damage))
    }

    fn say_trails(&self, session: &Session, text: &str) -> Outcome {
        let id = parse_id(text)?.0;
        let source = Source::open(&self.file)?;
        let (heap, _) = source.replay(Replay::watching(Watch::of_id(id)))?;
        let watch = Watch::of_objects(heap.watched());
        let (heap, damage) = source.replay(Replay::watching(watch))?;
        let (trails, damage) = (heap.trails(), damage.as_deref());
        session.say_value(&TrailJson::new(id, &trails, damage), || {
            trail_doc(id, &trails, damage)
        })?;
        Ok(match end(damage) {
            Exit::Ok if trails.is_empty() => Exit::No,
            exit => exit,
        })
    }
}

/// How the command ends.
fn end(damage: Option<&str>) -> Exit {
    let Some(damage) = damage else {
        return Exit::Ok;
    };
    note(&format!(
        "the recording is damaged; the answer is about what comes before: {damage}"
    ));
    Exit::Damaged
}

/// Writes a page, unless something is there.
pub(super) fn write_page(
    session: &Session,
    path: &Path,
    inputs: &[&Path],
    page: &str,
) -> Result<()> {
    if path == Path::new("-") {
        session.write(page.as_bytes())?;
        return Ok(());
    }
    write_file(path, session.global.force, inputs, page.as_bytes())?;
    if !session.global.quiet {
        note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Where a recording comes from: a file is read as often as need be, standard input
/// is kept.
enum Source<'a> {
    File(&'a Path),
    Bytes(Vec<u8>),
}

impl<'a> Source<'a> {
    fn open(file: &'a Path) -> Result<Self> {
        if file != Path::new("-") {
            return Ok(Self::File(file));
        }
        let mut bytes = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut bytes);
        read.context("standard input")?;
        Ok(Self::Bytes(bytes))
    }

    fn replay(&self, mut replay: Replay) -> Result<(LiveHeap, Option<String>)> {
        match self {
            Self::Bytes(bytes) => {
                replay.push(bytes);
                finish(replay, "standard input")
            }
            Self::File(path) => {
                let name = path.display().to_string();
                let input = File::open(path).with_context(|| name.clone())?;
                read(input, replay, &name)
            }
        }
    }
}

fn finish(replay: Replay, name: &str) -> Result<(LiveHeap, Option<String>)> {
    let (heap, damage) = replay.finish().with_context(|| name.to_owned())?;
    Ok((heap, damage.map(|damage| damage.to_string())))
}

/// Replays what comes, and says what is wrong with it.
fn read(
    mut input: impl Read,
    mut replay: Replay,
    name: &str,
) -> Result<(LiveHeap, Option<String>)> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        match input.read(&mut buffer).with_context(|| name.to_owned())? {
            0 => return finish(replay, name),
            read => replay.push(&buffer[..read]),
        }
    }
}

/// The whole answer of a file, which is read once.
fn replay(file: &Path, top: usize) -> Result<(Events, Option<String>)> {
    let (heap, damage) = if file == Path::new("-") {
        read(io::stdin().lock(), Replay::new(), "-")?
    } else {
        Source::File(file).replay(Replay::new())?
    };
    Ok((heap.answer(top), damage))
}
