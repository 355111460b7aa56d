//! The live page of `run --live` and `attach --live`: its flags, and its life.

use super::push::{PushArgs, Pushing};
use super::watched::Watched;
use crate::exit::Usage;
use crate::live::agent::joined;
use crate::output::note;
use crate::session::Session;
use anyhow::{Context, Result};
use jvm_observe::jvm::Jvm;
use live_session::Live;
use live_session::recording::program::Recording;
use server::live::router;
use server::{Config, Running, start};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use vmpi::class_options::Rules;

/// What is recorded from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Record {
    /// Every allocation
    Full,
    /// One allocation per 64 KiB on average (JDK 11 and later)
    Sampled,
}

/// Bytes with an optional `k` or `m`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let number = digits.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "expected bytes such as 64k".to_owned())
}

/// A memory limit that the agent takes.
fn agent_memory(text: &str) -> Result<u64, String> {
    size(text)
        .ok()
        .filter(|bytes| *bytes >= vmpi::Budget::LEAST)
        .ok_or_else(|| "expected a size from 16m on, such as 256m".to_owned())
}

/// What cannot be had if the port is taken.
const NO_PAGE: &str = "no live page";

impl LiveArgs {
    /// Checks the port, the file of class filters and where profiles go before anything is started.
    ///
    /// # Errors
    /// When the port is taken, the file cannot be read, a line is wrong, or nothing can be sent there.
    pub(crate) fn check(&self) -> Result<()> {
        self.push.check()?;
        server::check_port(self.port).context(NO_PAGE)?;
        let Some(file) = &self.classes else {
            return Ok(());
        };
        let parsed = Rules::parse(&read_text(file)?);
        parsed.map(drop).map_err(|what| wrong(file, what))
    }
}

impl Record {
    /// The recording that it requests; `native` is the mean number of bytes between recorded native blocks.
    pub(crate) fn recording(self, native: Option<u64>) -> Recording {
        match self {
            Record::Full => Recording::Full {
                depth: Recording::DEPTH,
                native,
            },
            Record::Sampled => Recording::Sampled {
                interval: Recording::INTERVAL,
                depth: Recording::DEPTH,
                native,
            },
        }
    }
}

impl LiveArgs {
    /// What is recorded from the beginning.
    pub(crate) fn recording(&self) -> Option<Recording> {
        Some(self.record?.recording(self.native))
    }

    /// Memory limit of the agent in bytes, if it is not the usual one.
    pub(crate) fn agent_memory(&self) -> Option<u64> {
        self.agent_memory
    }

    /// Options of the agent with the memory limit, if one was given.
    pub(crate) fn limited(&self, options: &str) -> String {
        match self.agent_memory {
            Some(bytes) => joined(options, &format!("memory={bytes}")),
            None => options.to_owned(),
        }
    }
}

/// Flags of the live page.
#[derive(Debug, clap::Args)]
pub(crate) struct LiveArgs {
    /// Open a page that shows the program's memory while it runs
    #[arg(long)]
    pub(crate) live: bool,
    /// With --live: record allocations from the beginning [default: on request of the page]
    #[arg(long, value_name = "HOW", requires = "live")]
    record: Option<Record>,
    /// With --record: also record malloc and its family, one block per this many bytes on average (1: every block)
    #[arg(long, value_name = "BYTES", requires = "record", value_parser = size)]
    native: Option<u64>,
    /// Memory limit of the agent, and a quarter of it in the Java heap [default: 256m]
    #[arg(long, value_name = "SIZE", value_parser = agent_memory)]
    agent_memory: Option<u64>,
    /// With --live: port on 127.0.0.1 [default: any free one]
    #[arg(
        long,
        value_name = "PORT",
        requires = "live",
        default_value_t = 0,
        hide_default_value = true
    )]
    port: u16,
    /// With --live: only print the address
    #[arg(long, requires = "live")]
    no_browser: bool,
    /// With --live: continue to serve the page until Ctrl-C after the program has ended
    #[arg(long, requires = "live")]
    stay: bool,
    /// With --live: interval in minutes for saving the table of all classes, beside the dumps
    #[arg(
        long,
        value_name = "MINUTES",
        requires = "live",
        default_value_t = 0,
        hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(0..=10_080)
    )]
    save_every: u64,
    /// With --live: folder of a project, for the source of a frame (may be repeated)
    #[arg(long, value_name = "FOLDER", requires = "live", value_hint = clap::ValueHint::DirPath)]
    source: Vec<PathBuf>,
    /// With --live: file of lines MODULE CLASS OPTIONS that say what is recorded and examined of each
    /// class; it is read again when it changes
    #[arg(long, value_name = "FILE", requires = "live", value_hint = clap::ValueHint::FilePath)]
    classes: Option<PathBuf>,
    /// With --live: the page may run toString, equals, hashCode and compareTo of the program's objects, on
    /// a thread of the agent's own
    #[arg(long, requires = "live")]
    own_code: bool,
    /// With --live: folder of heap dumps that the page takes [default: this one]
    #[arg(long, value_name = "FOLDER", requires = "live", value_hint = clap::ValueHint::DirPath)]
    dumps: Option<PathBuf>,
    #[command(flatten)]
    push: PushArgs,
}

fn read_text(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| file.display().to_string())
}

fn wrong(file: &Path, what: impl std::fmt::Display) -> anyhow::Error {
    Usage(format!("{}: {what}", file.display())).into()
}

fn read_rules(live: &Live, file: &Path) -> Result<()> {
    let text = read_text(file)?;
    live.choose(&text).map_err(|what| wrong(file, what))
}

/// Reads the file when it has changed, as long as there is a page. If it has an error, this is reported and the
/// previous lines stay in effect.
fn follow_rules(live: &Weak<Live>, file: &Path) {
    let stamp = || {
        std::fs::metadata(file)
            .and_then(|data| data.modified())
            .ok()
    };
    let mut known = stamp();
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let Some(live) = live.upgrade() else { return };
        let now = stamp();
        if now.is_some() && now != known {
            known = now;
            if let Err(error) = read_rules(&live, file) {
                note(&format!("{error:#}"));
            }
        }
    }
}

/// Leaves a program that was watched. The recording of one that has ended would be lost, and is saved. In one that
/// continues, the agent keeps the recording and sends it to the next page, which a note reports. The caller knows
/// whether it has ended, as the state is measured from time to time only.
pub(crate) fn leave(live: &Live, has_ended: bool) {
    let status = live.status().borrow().clone();
    if has_ended {
        keep_recording(live);
    } else if let Some(recording) = status.recording
        && recording.on
        && recording.connected
    {
        let (name, pid) = (&status.name, status.pid);
        note(&format!(
            "{pid} {name} is still being recorded; tenure attach {pid} stop ends the recording"
        ));
    }
}

fn keep_recording(live: &Live) {
    match live.keep_recording() {
        Ok(files) if files.is_empty() => live.forget(),
        Ok(files) => {
            live.forget();
            let names = files.iter().map(|file| file.display().to_string());
            let names = names.collect::<Vec<_>>().join(" and ");
            note(&format!("what was recorded is in {names}"));
        }
        Err(error) => note(&format!("what was recorded could not be kept: {error}")),
    }
}

/// A running page.
pub(crate) struct Page {
    pub(crate) live: Arc<Live>,
    running: Running,
    pushing: Option<Pushing>,
    stay: bool,
}

impl Page {
    /// Begins to watch a JVM and serves its page.
    pub(crate) fn open(
        args: &LiveArgs,
        jvm: Jvm,
        library: Option<PathBuf>,
        session: &Session,
    ) -> Result<Page> {
        let watched = Watched::new(jvm, library, args.agent_memory);
        let live = watched.watch(args.dumps.as_deref(), args.source.clone(), session)?;
        live.save_every(args.save_every)
            .map_err(anyhow::Error::msg)?;
        if args.own_code {
            live.set_own_code(true).map_err(anyhow::Error::msg)?;
        }
        if let Some(file) = &args.classes {
            read_rules(&live, file)?;
            let (live, file) = (Arc::downgrade(&live), file.clone());
            std::thread::spawn(move || follow_rules(&live, &file));
        }
        let pushing = args.push.start(Arc::downgrade(&live))?;
        let config = Config {
            port: args.port,
            signals: true,
            ..Config::default()
        };
        let running = start(router(Arc::clone(&live)), &config).context(NO_PAGE)?;
        let url = running.url();
        note(&format!("the live page is {url}"));
        if !args.no_browser && !crate::commands::open::open_browser(&url) {
            note("no browser was found; open the address above");
        }
        Ok(Page {
            live,
            running,
            pushing,
            stay: args.stay,
        })
    }

    /// Serves until Ctrl-C, or without `--stay` until the end of the program.
    pub(crate) fn serve(self) {
        let stopper = self.running.stopper();
        let status = self.live.status();
        while !stopper.is_stopped() && (self.stay || !status.borrow().ended) {
            std::thread::sleep(Duration::from_millis(100));
        }
        let has_ended = status.borrow().ended;
        self.close(has_ended);
    }

    /// The program has ended: continues to serve with `--stay`, and ends.
    pub(crate) fn finish(self) {
        if self.stay {
            note("the program has ended; Ctrl-C ends the page");
            let stopper = self.running.stopper();
            while !stopper.is_stopped() {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        self.close(true);
    }

    fn close(self, has_ended: bool) {
        leave(&self.live, has_ended);
        if let Some(pushing) = self.pushing {
            pushing.finish(&self.live);
        }
        self.running.stop();
        self.live.close();
        self.running.wait();
    }
}
