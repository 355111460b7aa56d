//! The flags of `run` and `attach` that say what is recorded: a profile, VM events, or both.

use crate::args::parse_size;
use crate::exit::Usage;
use crate::output::note;
use crate::output_file::{OutputFile, refuse_early, refuse_existing};
use agent_core::options::{Parsed, parse};
use anyhow::{Context, Result};
use report::units::human_bytes;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// Why `-o -` is refused.
pub(crate) const NOT_TO_STDOUT: &str = "a recording is written to a file, not to standard output";
/// What is recorded by default.
const USUAL_PROFILE: &str = "cpu=samples,depth=64";

/// What is recorded: a profile, VM events, or both.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// Options of the agent, as in -agentlib:hprof=; a heap dump, and any output to a .hprof
    /// file, has format=b,modern=y unless the options specify otherwise
    /// [default: cpu=samples,depth=64, nothing with --events]
    #[arg(long, value_name = "OPTIONS", conflicts_with = "live")]
    profile: Option<String>,
    /// Record collections, and the allocations, moves and frees of sampled objects, in this file; with --profile or -o,
    /// also a profile
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath, conflicts_with = "live")]
    pub(crate) events: Option<PathBuf>,
    /// With --events: mean bytes between two sampled objects
    #[arg(long, value_name = "BYTES", default_value = "64k", requires = "events", value_parser = interval)]
    interval: u64,
    /// With --events: frames per stack, at most 64
    #[arg(long, value_name = "FRAMES", default_value_t = 4, requires = "events", value_parser = clap::value_parser!(u8).range(0..=64))]
    depth: u8,
}

/// Bytes between two samples, within the limits of the agent.
fn interval(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes if i32::try_from(bytes).is_ok() => Ok(bytes),
        _ => Err("2047m at most".to_owned()),
    }
}

impl RecordArgs {
    /// Refuses a file of events that exists or cannot be written, before the program starts or the recording begins.
    pub(crate) fn check(&self, force: bool) -> Result<()> {
        let mut events = self.events.iter();
        events.try_for_each(|path| refuse_early(path, force))
    }

    /// Refuses options that the agent would refuse, before the program starts or the recording begins.
    pub(crate) fn check_options(options: &str) -> Result<()> {
        match parse(options, None) {
            Ok(Parsed::Run(_)) => Ok(()),
            Ok(Parsed::Help) => Err(Usage(
                "docs/reference/agent.md lists the options of the agent".to_owned(),
            )
            .into()),
            Err(error) => Err(Usage(format!("--profile: {error}")).into()),
        }
    }

    /// Whether a flag says what is recorded.
    pub(crate) fn is_chosen(&self) -> bool {
        self.profile.is_some() || self.events.is_some()
    }

    /// The options of the profile; `None` if only events are recorded.
    pub(crate) fn profile(&self, has_output: bool) -> Option<&str> {
        let is_usual = self.events.is_none() || has_output;
        let usual = is_usual.then_some(USUAL_PROFILE);
        self.profile.as_deref().or(usual)
    }

    /// The agent's options for the events, which go to `target`: an option and its value.
    pub(crate) fn words(&self, target: &str) -> String {
        let (interval, depth) = (self.interval, self.depth);
        format!("events={interval},events-depth={depth},{target}")
    }

    /// The agent's options for events that the program itself writes.
    ///
    /// # Errors
    /// There is such a file, or its name cannot be an option.
    pub(crate) fn written_there(&self, path: &Path, force: bool) -> Result<String> {
        let path = std::path::absolute(path)?;
        let name = path.to_str().filter(|name| !name.contains(','));
        let name = name.ok_or_else(|| {
            let text = "--events of a program that runs already takes no file name with a comma";
            Usage(text.to_owned())
        })?;
        refuse_existing(&path, force)?;
        Ok(self.words(&format!("events-file={name}")))
    }
}

/// Stores a stream of events as it is received, in the file after so many `earlier` ones.
pub(crate) fn store_events(
    mut stream: TcpStream,
    path: &Path,
    earlier: usize,
    force: bool,
) -> Result<()> {
    let mut file = OutputFile::create_growing(path, earlier, force)?;
    let bytes = std::io::copy(&mut stream, &mut file);
    let name = file.path().display();
    let bytes = human_bytes(bytes.with_context(|| format!("cannot write {name}"))?);
    note(&format!(
        "wrote {name} ({bytes}); next: tenure events {name}"
    ));
    Ok(())
}
