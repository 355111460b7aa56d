//! `tenure attach`.

use super::listen::say;
use super::run::{KILLED, completed};
use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::agent::{self, RECORDS, joined};
use crate::live::collect::{Collected, Destination, collect_profile};
use crate::live::door::Door;
use crate::live::page::{LiveArgs, Page};
use crate::live::record_args::{NOT_TO_STDOUT, RecordArgs, store_events};
use crate::live::series::{Files, LoopArgs, duration, form_of};
use crate::output::note;
use crate::output_file::OutputFile;
use crate::session::Session;
use crate::system::{TOGETHER, heeded};
use anyhow::{Context, Result, bail};
use jvm_observe::attach;
use jvm_observe::jvm::{self, Jvm};
use jvm_observe::process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a recording under way is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    /// Print what is recorded, and the output file
    Status,
    /// End the recording and write it
    Stop,
    /// Write the data recorded so far, and continue
    Dump,
}

impl Order {
    fn text(self) -> &'static str {
        match self {
            Order::Status => "status",
            Order::Stop => "stop",
            Order::Dump => "dump",
        }
    }
}

/// Record a running JVM with the agent, or watch it on a page
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With --duration or -o the recording is written here, and the program is left as it was.\nOtherwise the JVM writes it to a file until `tenure attach PID stop` or its end. A second\nattach changes what is recorded, with --duration or -o only if --force is given. Only the JVM's own user and root may attach. JDK 21 and\nlater print a warning in the program unless it runs with -XX:+EnableDynamicAgentLoading.\nWithout tenure: jcmd PID JVMTI.agent_load.\n\nExamples:\n  tenure attach\n  tenure attach 4711 --duration 30 -o flames.html\n  tenure attach 4711 --loop 1m --keep 60 -o 'app-%t.jfr'\n  tenure attach demo.Main --profile heap=sites,file=/tmp/sites.txt\n  tenure attach demo.Main --events app.events --duration 30\n  tenure attach demo.Main stop\n  tenure attach 4711 --live"
)]
pub struct Args {
    /// Process id, or a part of the main class's name; without one the JVMs are listed
    #[arg(value_name = "PID|MAIN")]
    target: Option<String>,
    /// Control the recording that is running
    #[arg(value_name = "ORDER", conflicts_with_all = ["profile", "events", "duration", "output", "live"])]
    order: Option<Order>,
    #[command(flatten)]
    what: RecordArgs,
    /// Record for this time (30, 90s, 5m, 1h), write the recording here and end it
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "live")]
    duration: Option<Duration>,
    /// Output file; the format follows its extension: .html .pb.gz .json .jfr .collapsed, or .hprof .txt
    /// (and a name without an extension) as the agent writes them; without --duration until Ctrl-C [with --duration: profile-TIME.hprof.txt]
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath, conflicts_with = "live")]
    output: Option<PathBuf>,
    /// The agent library [default: beside this program]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    agent: Option<PathBuf>,
    /// Only list the running JVMs
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    series: LoopArgs,
    #[command(flatten)]
    live: LiveArgs,
}

impl Args {
    /// Attaches.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let Some(target) = self.target.as_deref().filter(|_| !self.list) else {
            let is_recording = self.duration.is_some() || self.output.is_some();
            if !self.list && (is_recording || self.what.is_chosen() || self.live.live) {
                let why = "which JVM? Give its PID or main class; `tenure attach` lists the JVMs";
                return Err(Usage(why.to_owned()).into());
            }
            return list(session);
        };
        if self.output.as_deref() == Some(Path::new("-")) {
            return Err(Usage(NOT_TO_STDOUT.to_owned()).into());
        }
        if self.live.live {
            return self.watch(target, session);
        }
        if let Some(output) = &self.output {
            form_of(output)?;
        }
        let jvm = jvm::find(target)?;
        if let Some(order) = self.order {
            return give(&jvm, order, session);
        }
        let profile = self.what.profile(self.output.is_some());
        if self.duration.is_some() || self.output.is_some() {
            return self.record(jvm, profile, session);
        }
        let library = agent::visible(&jvm, self.agent.as_deref())?;
        let profile = profile.unwrap_or_default();
        let mut files = profile
            .split(',')
            .filter_map(|word| word.strip_prefix("file="));
        let profile = match files.find(|file| file.ends_with(".hprof")) {
            Some(file) => completed(profile, Some(Path::new(file))),
            None => profile.to_owned(),
        };
        let mut words = self.live.limited(&profile);
        let says = |name: &str| words.split(',').any(|word| word.starts_with(name));
        if says("file=") && !says("force=") && !session.global.force {
            // The agent finds a free name, in the file system of the JVM.
            words = joined(&words, "force=n");
        }
        RecordArgs::check_options(&words)?;
        if let Some(path) = &self.what.events {
            let events = self.what.written_there(path, session.global.force)?;
            words = joined(&words, &events);
        }
        let printed = attach::order(&jvm, &library, &words)?;
        note(&format!("{} {printed}", jvm.name()));
        note(&format!("tenure attach {} stop ends it", jvm.pid));
        Ok(Exit::Ok)
    }

    fn watch(&self, target: &str, session: &Session) -> Outcome {
        self.live.check()?;
        let page = Page::open(&self.live, jvm::find(target)?, self.agent.clone(), session)?;
        let earlier = page.live.resume();
        if let Some(recording) = self.live.recording().or(earlier)
            && let Err(error) = page.live.start_recording(recording)
        {
            note(&error);
        }
        page.serve();
        Ok(Exit::Ok)
    }

    /// Records for a while, and writes the recording here: a profile, events, or both.
    fn record(&self, jvm: Jvm, profile: Option<&str>, session: &Session) -> Outcome {
        let words = completed(profile.unwrap_or_default(), self.output.as_deref());
        let mut words = self.live.limited(&words);
        let mut options = words.split(',');
        if options.any(|option| option.starts_with("net=") || option.starts_with("file=")) {
            let text = "--duration and -o take no net= or file= in --profile";
            return Err(Usage(text.to_owned()).into());
        }
        RecordArgs::check_options(&words)?;
        let output = self.output.clone().unwrap_or_else(|| {
            let mut name = super::listen::stem().into_os_string();
            name.push(".hprof.txt");
            PathBuf::from(name)
        });
        let force = session.global.force;
        self.what.check(force)?;
        let files = self.series.files(self.output.as_deref())?;
        let form = form_of(&output)?;
        let mut file = match (profile, &files) {
            (Some(_), None) => Some(OutputFile::create_for_recording(&output, force)?),
            _ => None,
        };
        let library = agent::visible(&jvm, self.agent.as_deref())?;
        let door = profile.map(|_| Door::to(&jvm)).transpose()?;
        if let Some(door) = &door {
            words = joined(&words, &format!("net={}", door.address()));
        }
        let events_door = match &self.what.events {
            Some(path) => Some((Door::to(&jvm)?, path)),
            None => None,
        };
        if let Some((door, _)) = &events_door {
            let target = format!("events-net={}", door.address());
            words = joined(&words, &self.what.words(&target));
        }
        if let Some(files) = &files {
            words = format!("{words},{}", files.option());
        }
        // The agent's own clock begins when everything is counted.
        if let Some(time) = self.duration {
            words = joined(&words, &format!("duration={}s", time.as_secs()));
        }
        let begun = Instant::now();
        let printed = match force {
            true => attach::order(&jvm, &library, &words)?,
            false => agent::begin(&jvm, &library, &words, " (--force ends it now)")?,
        };
        if let Some((_, before)) = printed.split_once(", no longer ") {
            note(&format!("{} no longer records {before}", jvm.name()));
        }
        // A device or a pipe has no other name meanwhile.
        let part = file.as_ref().and_then(|file| file.part().ok());
        let part = part.map(Path::to_path_buf);
        let ending = end_at_signal(jvm.clone(), library.clone(), part)?;
        let connected = |door: &Door| door.next()?.context("the agent did not connect");
        let mut events = None;
        let mut receive = || {
            let stream = door.as_ref().map(connected).transpose()?;
            if let Some((door, path)) = &events_door {
                let (stream, path) = (connected(door)?, path.to_path_buf());
                events = Some(std::thread::spawn(move || {
                    store_events(stream, &path, 0, force)
                }));
            }
            note(&match self.duration {
                Some(time) => format!("{} is recorded for {} s", jvm.name(), time.as_secs()),
                None => format!("{} is recorded until Ctrl-C", jvm.name()),
            });
            match (door.as_ref().zip(stream), &files) {
                (Some((door, stream)), Some(files)) => {
                    store_all(&jvm, &library, door, files, stream)
                }
                (Some((_, stream)), None) => {
                    let create = |_: &Path| file.take().context("the file is written already");
                    let destination = Destination::File(output.clone(), form);
                    let done = collect_profile(stream, &destination, || None, create, |_| {});
                    done.and_then(|done| written(&done, words.contains("doe=n")))
                }
                (None, _) => Ok(()),
            }
        };
        let stored = receive();
        // The program is left as it was; this ends the stream of events, too.
        let stop = || attach::order(&jvm, &library, Order::Stop.text()).is_ok();
        let stored = match stored {
            Err(error) => {
                // A recording that has ended by itself cannot be stopped.
                if stop() || has_ended(&jvm, &library) {
                    drop(finish(events));
                }
                Err(error)
            }
            Ok(()) => finish(events).inspect_err(|_| {
                stop();
            }),
        };
        let took = begun.elapsed();
        if stored.is_ok() && self.duration.is_some_and(|time| took < time) {
            let took = took.as_secs_f64();
            note(&format!("the recording has ended after {took:.1} s"));
        }
        ending.0.store(true, Ordering::SeqCst);
        // What it has made in the JVM's temporary folder goes with it.
        drop(ending.1.join());
        stored?;
        Ok(Exit::Ok)
    }
}

/// Reports a file that was written. With `doe=n` nothing is written at the end.
fn written(done: &Collected, is_silent: bool) -> Result<()> {
    if done.progress.bytes == 0 {
        bail!("the program has ended before anything was recorded");
    }
    say(done);
    if !is_silent && !done.progress.has_tables() {
        bail!("{KILLED}");
    }
    Ok(())
}

/// Waits until the stream of events is stored, if there is one.
fn finish(events: Option<JoinHandle<Result<()>>>) -> Result<()> {
    let stored = events.map(JoinHandle::join);
    stored.map_or(Ok(()), |stored| {
        stored.unwrap_or_else(|_| bail!("a collector failed"))
    })
}

/// Ends the recording when the user presses Ctrl-C or closes the terminal, unless the returned flag becomes true before.
/// A program that is stopped does not answer: a later signal ends this command, and the recording may continue. `part` is
/// the output until it has its name.
fn end_at_signal(
    jvm: Jvm,
    library: String,
    part: Option<PathBuf>,
) -> Result<(Arc<AtomicBool>, JoinHandle<()>)> {
    const STEP: Duration = Duration::from_millis(50);
    let over = Arc::<AtomicBool>::default();
    // A script that starts this command in the background ignores SIGINT for it, and may send it all the same; `nohup`
    // ignores SIGHUP, which must not end it.
    let heeded = [SIGINT, SIGTERM].into_iter().chain(heeded(&[SIGHUP]));
    let mut signals = Signals::new(heeded)?;
    let is_over = Arc::clone(&over);
    let thread = std::thread::spawn(move || {
        let mut stopping: Option<(Instant, JoinHandle<()>)> = None;
        while !is_over.load(Ordering::SeqCst) {
            match (signals.pending().last(), &stopping) {
                (Some(_), None) => {
                    let (jvm, library) = (jvm.clone(), library.clone());
                    let stop = std::thread::spawn(move || {
                        if let Err(error) = attach::order(&jvm, &library, Order::Stop.text()) {
                            note(&format!("{:#}", anyhow::Error::from(error)));
                        }
                    });
                    stopping = Some((Instant::now(), stop));
                }
                // Once the program has answered, the rest of the recording is stored.
                (Some(signal), Some((since, stop)))
                    if since.elapsed() > TOGETHER && !stop.is_finished() =>
                {
                    abandon(&jvm, part.as_deref());
                    let _ = emulate_default_handler(signal);
                }
                _ => {}
            }
            std::thread::sleep(STEP);
        }
        if let Some((_, stop)) = stopping {
            drop(stop.join());
        }
    });
    Ok((over, thread))
}

/// Reports what stays when the command ends before the recording.
fn abandon(jvm: &Jvm, part: Option<&Path>) {
    let (name, pid) = (jvm.name(), jvm.pid);
    note(&format!(
        "{name} does not answer and may still be recorded; tenure attach {pid} stop ends the recording"
    ));
    let Some(part) = part else { return };
    match std::fs::metadata(part).map_or(0, |about| about.len()) {
        0 => drop(std::fs::remove_file(part)),
        _ => note(&format!("what was written is in {}", part.display())),
    }
}

/// Whether nothing is recorded any more. A program that does not answer, because it is stopped for instance, may still be
/// recorded.
fn has_ended(jvm: &Jvm, library: &str) -> bool {
    match attach::order(jvm, library, Order::Status.text()) {
        Ok(printed) => !printed.starts_with(RECORDS),
        Err(_) => process::read(jvm.pid).is_none(),
    }
}

/// Stores one connection after the other, until the recording has ended. Fails if none could be stored.
fn store_all(jvm: &Jvm, library: &str, door: &Door, files: &Files, first: TcpStream) -> Result<()> {
    const STEP: Duration = Duration::from_millis(200);
    let mut next = Some(first);
    let (mut has_stored, mut has_failed) = (false, false);
    loop {
        if let Some(stream) = next {
            match files.store(stream) {
                Ok(Some(path)) => {
                    has_stored = true;
                    note(&format!("wrote {}", path.display()));
                }
                Ok(None) => {}
                // The next file may be written.
                Err(error) => {
                    has_failed = true;
                    note(&format!("{error:#}"));
                }
            }
        }
        // The agent connects for the next file before it closes the last one.
        next = door.next()?;
        if next.is_none() {
            if has_ended(jvm, library) {
                if has_failed && !has_stored {
                    bail!("no file could be written");
                }
                return Ok(());
            }
            std::thread::sleep(STEP);
        }
    }
}

/// Gives an order to the agent in a JVM.
fn give(jvm: &Jvm, order: Order, session: &Session) -> Outcome {
    let Some(library) = &jvm.agent else {
        session.write(format!("{} nothing is recorded\n", jvm.name()).as_bytes())?;
        return Ok(Exit::No);
    };
    match attach::order(jvm, library, order.text()) {
        Ok(printed) => {
            session.write(format!("{} {printed}\n", jvm.name()).as_bytes())?;
            let is_idle = order == Order::Status && !printed.starts_with(RECORDS);
            Ok(if is_idle { Exit::No } else { Exit::Ok })
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            note(&format!("{} {error:#}", jvm.name()));
            Ok(Exit::No)
        }
    }
}

/// Lists the JVMs.
pub(crate) fn list(session: &Session) -> Outcome {
    let found = jvm::list();
    for jvm in &found {
        session.write(format!("{}\n", jvm.name()).as_bytes())?;
    }
    if found.is_empty() {
        note("no JVM of this user runs");
    }
    Ok(if found.is_empty() { Exit::No } else { Exit::Ok })
}
