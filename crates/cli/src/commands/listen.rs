//! `tenure listen`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::collect::{Collected, Destination, collect_profile};
use crate::live::collect_events::{self, Typed};
use crate::live::series::form_of;
use crate::output::note;
use crate::output_file::OutputFile;
use crate::session::Session;
use agent_core::control::secret::{Nonce, Secret, Side};
use agent_core::control::{Command, WORDS};
use anyhow::{Context, Result};
use report::units::human_bytes;
use std::io::{BufRead, IsTerminal};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};
use vmpi::wire::MAGIC;

/// Receive profiles or events of agents with net=HOST:PORT, and send them commands
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Lines on standard input are commands; `help` lists them.\n\nExamples:\n  tenure listen 4711                      then: java -agentlib:hprof=net=localhost:4711,format=b ...\n  echo dump | tenure listen 4711 -o heap.hprof\n  tenure listen 0.0.0.0:4711 --many\n  echo gc | tenure listen 4711 -o run.vmpi   then: java -agentpath:.../libhprof.so=events=64k,net=localhost:4711 ..."
)]
pub struct Args {
    /// Port, or address and port; a port alone is reachable only from this machine
    #[arg(value_name = "[ADDRESS:]PORT")]
    address: String,
    /// The file [default: profile-TIME.hprof, .hprof.txt or .vmpi]
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// File with the secret that the agent has in its secret-file=; needed for other machines unless
    /// the agent has insecure=y
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    secret_file: Option<PathBuf>,
    /// Accept the next connection when one ends
    #[arg(long, conflicts_with = "output")]
    many: bool,
}

impl Args {
    /// Listens.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        if let Some(output) = &self.output
            && let Ok(Some(_)) = form_of(output)
        {
            let text = format!(
                "{}: listen stores what the agent sends; write a .hprof file, and tenure convert turns it into other forms",
                output.display()
            );
            return Err(Usage(text).into());
        }
        let address = match self.address.parse::<u16>() {
            Ok(port) => format!("127.0.0.1:{port}"),
            Err(_) => self.address.clone(),
        };
        let listener =
            TcpListener::bind(&address).with_context(|| format!("cannot listen on {address}"))?;
        note(&format!(
            "waiting for an agent at {}",
            listener.local_addr()?
        ));
        let secret = self.secret_file.as_deref().map(read_secret).transpose()?;
        let lines = typed_lines();
        loop {
            let (stream, peer) = listener.accept().context("no connection")?;
            if let Some(secret) = &secret
                && let Err(error) = meet(&stream, secret)
            {
                note(&format!("{peer} is refused: {error}"));
                continue;
            }
            note(&format!("{peer} is connected"));
            let destination = match &self.output {
                Some(path) => Destination::File(path.clone(), None),
                None => Destination::Stem(stem()),
            };
            let store = Store::new(session, true);
            let done = if is_events(&stream) {
                let next = || next_of(&lines, collect_events::WORDS, collect_events::parse);
                let create = |path: &Path| OutputFile::create_growing(path, store.force);
                collect_events::collect(stream, &destination, next, create, note)?
            } else {
                let next = || match next_of(&lines, WORDS, |line| line.parse::<Command>()) {
                    Typed::Command(command) => Some(command),
                    Typed::Nothing | Typed::End => None,
                };
                store.run(stream, &destination, next)?
            };
            say(&done);
            if !self.many {
                return Ok(if done.path.is_some() {
                    Exit::Ok
                } else {
                    Exit::No
                });
            }
        }
    }
}

/// The secret of a file that others cannot read.
fn read_secret(file: &Path) -> Result<Secret> {
    let content = std::fs::read(file).with_context(|| file.display().to_string())?;
    let short = || Usage(format!("{} has less than 16 bytes", file.display()));
    Ok(Secret::of(&content).ok_or_else(short)?)
}

/// Verifies that an agent knows the secret, and proves the same to the agent.
fn meet(stream: &TcpStream, secret: &Secret) -> std::io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let mut own = Nonce::default();
    getrandom::fill(&mut own).map_err(std::io::Error::other)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    secret.meet(Side::Collector, &own, stream)?;
    stream.set_read_timeout(None)
}

/// How a connection is stored; can be moved to another thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    /// Overwrite files.
    force: bool,
    /// Print progress.
    loud: bool,
}

impl Store {
    pub(crate) fn new(session: &Session, loud: bool) -> Store {
        let loud = loud && !session.global.quiet && std::io::stderr().is_terminal();
        Store {
            force: session.global.force,
            loud,
        }
    }

    /// Stores one connection.
    pub(crate) fn run(
        self,
        stream: TcpStream,
        destination: &Destination,
        next: impl FnMut() -> Option<Command>,
    ) -> Result<Collected> {
        let mut last = Instant::now();
        let create = |path: &Path| OutputFile::create_growing(path, self.force);
        collect_profile(stream, destination, next, create, |progress| {
            if self.loud && last.elapsed() > Duration::from_secs(2) {
                last = Instant::now();
                note(&format!(
                    "{} bytes, last: {}",
                    progress.bytes, progress.last
                ));
            }
        })
    }
}

/// One line about what was collected.
pub(crate) fn say(done: &Collected) {
    let Some(path) = &done.path else {
        return note("the agent sent nothing");
    };
    let cut = if done.progress.at_boundary {
        ""
    } else {
        ", cut inside a record"
    };
    note(&format!(
        "wrote {} ({}{cut})",
        path.display(),
        human_bytes(done.bytes)
    ));
}

/// A name that no earlier run has used.
pub(crate) fn stem() -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    PathBuf::from(format!("profile-{}", now.unwrap_or_default().as_secs()))
}

/// Waits for data; returns whether it is a stream of events.
fn is_events(stream: &TcpStream) -> bool {
    let mut first = [0; MAGIC.len()];
    // A profile begins otherwise from its first byte on, and is longer.
    matches!(stream.peek(&mut first), Ok(count) if count > 0 && MAGIC.starts_with(&first[..count]))
}

/// Lines of standard input, as they are typed.
fn typed_lines() -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The next command among the lines; invalid lines get an error message.
fn next_of<C, E: std::fmt::Display>(
    lines: &Receiver<String>,
    words: &[(&str, &str)],
    parse: impl Fn(&str) -> Result<C, E>,
) -> Typed<C> {
    loop {
        let line = match lines.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Empty) => return Typed::Nothing,
            Err(TryRecvError::Disconnected) => return Typed::End,
        };
        match line.trim() {
            "" => {}
            "help" => words
                .iter()
                .for_each(|(form, what)| note(&format!("{form:22} {what}"))),
            words => match parse(words) {
                Ok(command) => return Typed::Command(command),
                Err(error) => note(&format!("{error} (help lists them)")),
            },
        }
    }
}
