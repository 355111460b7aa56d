//! `tenure listen`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::collect::{Collected, Destination, TICK, collect_profile};
use crate::live::collect_events::{self, Typed};
use crate::live::recordings::{Ending, Recordings};
use crate::live::series::form_of;
use crate::output::note;
use crate::output_file::{OutputFile, refuse_early};
use crate::session::Session;
use agent_core::control::secret::{Nonce, Secret, Side};
use agent_core::control::timed::Timed;
use agent_core::control::{Command, Switch, WORDS};
use anyhow::{Context, Result};
use report::units::human_bytes;
use std::io::{self, BufRead, IsTerminal};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vmpi::wire::MAGIC;

/// Receive profiles or events of agents with net=HOST:PORT, and send them commands
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Lines on standard input are commands; `help` lists them. Ctrl-C ends the recordings, and waits for their data.\n\nExamples:\n  tenure listen 4711                      then: java -agentlib:hprof=net=localhost:4711,format=b ...\n  echo dump | tenure listen 4711 -o heap.hprof\n  tenure listen 0.0.0.0:4711 --many\n  echo gc | tenure listen 4711 -o run.vmpi   then: java -agentpath:.../libhprof.so=events=64k,net=localhost:4711 ..."
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
    /// Accept more connections; commands go to the newest one
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
        if let Some(output) = &self.output {
            refuse_early(output, session.global.force)?;
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
        let (sender, results) = channel();
        let recordings = Recordings::default();
        let mut ending = Ending::new(recordings.clone())?;
        let listening = Listening {
            listener,
            output: self.output.clone(),
            secret,
            store: Store::new(session, true),
            lines: Lines::typed(),
            place: (!self.many).then(Arc::default),
            results: sender,
            recordings,
        };
        let thread = std::thread::Builder::new().name("listener".to_owned());
        thread.spawn(move || listening.accept_all())?;
        loop {
            // All results of recordings that have ended are received below.
            let is_complete = ending.is_complete();
            match results.recv_timeout(TICK) {
                Ok(Ok(done)) if !self.many => {
                    let is_stored = done.path.is_some();
                    return Ok(if is_stored { Exit::Ok } else { Exit::No });
                }
                Ok(Err(error)) if !self.many => return Err(error),
                Ok(Err(error)) => note(&format!("{error:#}")),
                Ok(Ok(_)) => {}
                Err(RecvTimeoutError::Timeout) if is_complete => return Ok(Exit::Ok),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Ok),
            }
        }
    }
}

/// Accepts connections. Each has a thread, so that one that sends nothing keeps no other one waiting.
struct Listening {
    listener: TcpListener,
    output: Option<PathBuf>,
    secret: Option<Secret>,
    store: Store,
    lines: Lines,
    /// True once an agent is connected, if only one may be.
    place: Option<Arc<AtomicBool>>,
    results: Sender<Result<Collected>>,
    recordings: Recordings,
}

impl Listening {
    fn accept_all(self) {
        let mut last = (PathBuf::new(), 0);
        for number in 0.. {
            let (stream, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                // Too many open files, for instance: the connections that there are must not end.
                Err(error) => {
                    note(&format!("no connection: {error}"));
                    std::thread::sleep(Duration::from_secs(1));
                    continue;
                }
            };
            let destination = match &self.output {
                Some(path) => Destination::File(path.clone(), None),
                None => Destination::Stem(stem()),
            };
            if let Destination::Stem(stem) = &destination {
                // Connections of the same second.
                last = match last {
                    (name, count) if name == *stem => (name, count + 1),
                    _ => (stem.clone(), 0),
                };
            }
            let connection = Connection {
                number,
                stream,
                peer,
                secret: self.secret.clone(),
                destination,
                store: self.store.after(last.1),
                lines: self.lines.clone(),
                place: self.place.clone(),
                recordings: self.recordings.clone(),
            };
            let (results, recordings) = (self.results.clone(), self.recordings.clone());
            let thread = std::thread::Builder::new().name("connection".to_owned());
            let begun = thread.spawn(move || {
                if let Some(result) = connection.receive().transpose() {
                    let _ = results.send(result);
                }
                recordings.end(number);
            });
            if let Err(error) = begun {
                note(&format!("{peer} is refused: {error}"));
            }
        }
    }
}

/// A connection that has been accepted.
struct Connection {
    number: usize,
    stream: TcpStream,
    peer: SocketAddr,
    secret: Option<Secret>,
    destination: Destination,
    store: Store,
    lines: Lines,
    place: Option<Arc<AtomicBool>>,
    recordings: Recordings,
}

impl Connection {
    /// Stores the received data; `None` if the other side is no agent (it does not know the secret, or sends something
    /// else), or if the place is taken.
    fn receive(self) -> Result<Option<Collected>> {
        let peer = self.peer;
        if let Some(secret) = &self.secret
            && let Err(error) = meet(&self.stream, secret)
        {
            note(&format!("{peer} is refused: {error}"));
            return Ok(None);
        }
        note(&format!("{peer} is connected"));
        let (lines, number) = (&self.lines, self.number);
        let Store { force, earlier, .. } = self.store;
        // One that sends nothing takes no commands.
        let is_events = match Content::of(&self.stream) {
            Content::Events => true,
            Content::Profile => false,
            Content::Nothing => {
                note(&format!("{peer} sent nothing"));
                return Ok(None);
            }
            Content::Other => {
                note(&format!("{peer} is refused: it sends no profile"));
                return Ok(None);
            }
        };
        if let Some(place) = &self.place
            && place.swap(true, Ordering::Relaxed)
        {
            note(&format!(
                "{peer} is refused: another agent is connected; --many accepts more"
            ));
            return Ok(None);
        }
        lines.begin(number);
        let done = if is_events {
            let next = || lines.next(number, collect_events::WORDS, collect_events::parse);
            let create = |path: &Path| OutputFile::create_growing(path, earlier, force);
            collect_events::collect(self.stream, &self.destination, next, create, note)
        } else {
            let (recordings, mut is_stopped) = (&self.recordings, false);
            recordings.begin(number);
            let parse = |line: &str| line.parse::<Command>();
            let next = || {
                if recordings.are_ending() && !is_stopped {
                    is_stopped = true;
                    return Some(Command::Control(Switch::Stop));
                }
                match lines.next(number, WORDS, parse) {
                    Typed::Command(command) => Some(command),
                    Typed::Nothing | Typed::End => None,
                }
            };
            self.store.run(self.stream, &self.destination, next)
        };
        lines.end(number);
        done.inspect(say).map(Some)
    }
}

/// The secret of a file that others cannot read.
fn read_secret(file: &Path) -> Result<Secret> {
    let content = std::fs::read(file).with_context(|| file.display().to_string())?;
    let short = || Usage(format!("{} has less than 16 bytes", file.display()));
    Ok(Secret::of(&content).ok_or_else(short)?)
}

/// Verifies that an agent knows the secret, and proves the same to the agent.
fn meet(stream: &TcpStream, secret: &Secret) -> io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let mut own = Nonce::default();
    getrandom::fill(&mut own).map_err(io::Error::other)?;
    let until = Instant::now() + PATIENCE;
    secret.meet(Side::Collector, &own, Timed { stream, until })?;
    stream.set_read_timeout(None)
}

/// How a connection is stored; can be moved to another thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    /// Overwrite files.
    force: bool,
    /// Print progress.
    loud: bool,
    /// How many recordings with this destination were begun before.
    earlier: usize,
}

impl Store {
    pub(crate) fn new(session: &Session, loud: bool) -> Store {
        let loud = loud && !session.global.quiet && io::stderr().is_terminal();
        Store {
            force: session.global.force,
            loud,
            earlier: 0,
        }
    }

    /// For the recording that follows so many earlier ones.
    pub(crate) fn after(self, earlier: usize) -> Store {
        Store { earlier, ..self }
    }

    /// Stores one connection. A recording that cannot be written where it should be is stored in the temporary folder.
    pub(crate) fn run(
        self,
        stream: TcpStream,
        destination: &Destination,
        next: impl FnMut() -> Option<Command>,
    ) -> Result<Collected> {
        let mut last = Instant::now();
        let mut fault = None;
        let create = |path: &Path| {
            if let Destination::File(_, Some(_)) = destination {
                return OutputFile::create_numbered(path, self.earlier, self.force);
            }
            OutputFile::create_growing(path, self.earlier, self.force).or_else(|error| {
                let elsewhere = std::env::temp_dir().join(path.file_name().unwrap_or_default());
                let file = OutputFile::create_growing(&elsewhere, 0, false);
                fault = Some(error.context(format!("{} is not written", path.display())));
                file
            })
        };
        let done = collect_profile(stream, destination, next, create, |progress| {
            if self.loud && last.elapsed() > Duration::from_secs(2) {
                last = Instant::now();
                note(&format!(
                    "{} bytes, last: {}",
                    progress.bytes, progress.last
                ));
            }
        });
        match (done, fault) {
            (Ok(done), Some(fault)) => {
                say(&done);
                Err(fault)
            }
            (Err(_), Some(fault)) => Err(fault),
            (done, None) => done,
        }
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

/// What a connection begins with.
enum Content {
    Events,
    Profile,
    /// It is closed, as by a port scanner.
    Nothing,
    Other,
}

impl Content {
    /// Waits for data.
    fn of(stream: &TcpStream) -> Content {
        // Both forms of a profile, and the table of `cpu=old`, which has no header.
        const PROFILES: [&[u8]; 2] = [b"JAVA PROFILE ", b"count callee caller time"];
        let mut first = [0; 32];
        let count = stream.peek(&mut first).unwrap_or(0);
        let is = |begin: &[u8]| begin.iter().zip(&first[..count]).all(|(a, b)| a == b);
        match count {
            0 => Content::Nothing,
            _ if is(&MAGIC) => Content::Events,
            _ if PROFILES.into_iter().any(is) => Content::Profile,
            _ => Content::Other,
        }
    }
}

/// Lines of standard input, as they are typed, for the newest of the connections.
#[derive(Clone)]
struct Lines(Arc<Mutex<Typing>>);

struct Typing {
    lines: Receiver<String>,
    /// The connections that can receive commands, the newest one last.
    connections: Vec<usize>,
}

impl Lines {
    fn typed() -> Lines {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines::of(lines)
    }

    fn of(lines: Receiver<String>) -> Lines {
        Lines(Arc::new(Mutex::new(Typing {
            lines,
            connections: Vec::new(),
        })))
    }

    fn typing(&self) -> MutexGuard<'_, Typing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, connection: usize) {
        self.typing().connections.push(connection);
    }

    fn end(&self, connection: usize) {
        self.typing().connections.retain(|one| *one != connection);
    }

    /// The next command among the lines if this connection is the newest one; invalid lines get an error message.
    fn next<C, E: std::fmt::Display>(
        &self,
        connection: usize,
        words: &[(&str, &str)],
        parse: impl Fn(&str) -> Result<C, E>,
    ) -> Typed<C> {
        let typing = self.typing();
        if typing.connections.last() != Some(&connection) {
            return Typed::Nothing;
        }
        loop {
            let line = match typing.lines.try_recv() {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_go_to_the_newest_connection() {
        let (sender, receiver) = channel();
        let lines = Lines::of(receiver);
        let type_line = |line: &str| sender.send(line.to_owned()).expect("typed");
        let next = |number| match lines.next(number, WORDS, |line| line.parse::<Command>()) {
            Typed::Command(command) => Some(command),
            Typed::Nothing | Typed::End => None,
        };
        lines.begin(0);
        lines.begin(1);
        type_line("gc");
        assert_eq!((next(0), next(1)), (None, Some(Command::ForceGc)));
        lines.end(1);
        type_line("gc");
        assert_eq!((next(1), next(0)), (None, Some(Command::ForceGc)));
    }
}
