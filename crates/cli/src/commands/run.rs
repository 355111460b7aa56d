//! `tenure run`.

use super::listen::{Store, say, stem};
use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::agent::{self, joined};
use crate::live::collect::Destination;
use crate::live::door::Door;
use crate::live::page::{LiveArgs, Page};
use crate::live::record_args::{NOT_TO_STDOUT, RecordArgs, store_events};
use crate::live::series::{LoopArgs, form_of};
use crate::live::watched;
use crate::output::note;
use crate::output_file::refuse_early;
use crate::session::Session;
use crate::system::{Arrived, Caught};
use anyhow::{Context, Result};
use jvm_observe::jvm;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Run a Java program with the agent and collect its profile
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The exit code is the program's, and 3 if that is 0 and a recording could not be stored. SIGTERM, SIGINT and SIGHUP\nare passed on to the program, and its end writes the profile; SIGQUIT is, too, and a JVM prints a thread dump. A\nprogram that is not `java` itself gets the agent through JAVA_TOOL_OPTIONS.\n\nExamples:\n  tenure run -- java -jar app.jar\n  tenure run --profile heap=all -o app.hprof -- java -cp build Main\n  tenure run --profile cpu=times -- mvn test\n  tenure run --loop 1m --keep 60 -o 'app-%t-%p.pb.gz' -- java -jar app.jar\n  tenure run --events app.events -- java -jar app.jar\n  tenure run --events app.events --profile heap=sites -- java -jar app.jar\n  tenure run --live -- java -jar app.jar"
)]
pub struct Args {
    #[command(flatten)]
    what: RecordArgs,
    /// Output file; the format follows its extension: .html .pb.gz .json .jfr .collapsed, or .hprof .txt (and a name
    /// without an extension) as the agent writes them [default: profile-TIME.hprof or .hprof.txt]
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath, conflicts_with = "live")]
    output: Option<PathBuf>,
    /// The agent library [default: beside this program]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    agent: Option<PathBuf>,
    #[command(flatten)]
    series: LoopArgs,
    #[command(flatten)]
    live: LiveArgs,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

impl Args {
    /// Runs the program.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        if self.output.as_deref() == Some(Path::new("-")) {
            return Err(Usage(NOT_TO_STDOUT.to_owned()).into());
        }
        if self.live.live {
            return self.run_live(session);
        }
        let profile = self.what.profile(self.output.is_some());
        let profile = profile.map(|options| completed(options, self.output.as_deref()));
        let mut words = self.live.limited(profile.as_deref().unwrap_or_default());
        let files = self.series.files(self.output.as_deref())?;
        let mut options = words.split(',');
        if options.any(|option| option.starts_with("net=") || option.starts_with("file=")) {
            let text = "--profile takes neither net= nor file= (use -o)";
            return Err(Usage(text.to_owned()).into());
        }
        RecordArgs::check_options(&words)?;
        if let Some(files) = &files {
            words = format!("{words},{}", files.option());
        }
        self.what.check(session.global.force)?;
        let stem = self.output.clone().unwrap_or_else(stem);
        let mut form = None;
        match &self.output {
            Some(output) if files.is_none() => {
                form = form_of(output)?;
                refuse_early(output, session.global.force)?;
            }
            None if profile.is_some() => refuse_early(&stem, true)?,
            _ => {}
        }
        let library = agent::loadable(self.agent.as_deref())?;
        let (door, events_door) = (Door::to_family()?, Door::to_family()?);
        if profile.is_some() {
            words = joined(&words, &format!("net={}", door.address()));
        }
        if self.what.events.is_some() {
            let target = format!("events-net={}", events_door.address());
            words = joined(&words, &self.what.words(&target));
        }
        let option = agent_option(&library, &words)?;
        let mut caught = Caught::new()?;
        let mut child = start(&self.command, Some(&option))?;
        let store = Store::new(session, false);
        let (named, force) = (self.output.is_some(), session.global.force);
        let (mut collectors, mut streams) = (Vec::new(), Vec::new());
        // Of the files of --loop.
        let (has_stored, has_failed) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let status = loop {
            let recorded = collectors.iter().chain(&streams);
            let jvms = recorded.filter_map(Collector::jvm);
            pass_on(&mut caught, jvms, Some(child.id()));
            if let Some(stream) = door.next()? {
                if let Some(files) = files.clone() {
                    collectors.retain(|one: &Collector| !one.thread.is_finished());
                    let (stored, failed) = (Arc::clone(&has_stored), Arc::clone(&has_failed));
                    collectors.push(Collector::begin(stream, move |stream| {
                        match files.store(stream) {
                            Ok(Some(_)) => stored.store(true, Ordering::SeqCst),
                            Ok(None) => {}
                            // The next file may be written.
                            Err(error) => {
                                failed.store(true, Ordering::SeqCst);
                                note(&format!("{error:#}"));
                            }
                        }
                        Ok(())
                    }));
                    continue;
                }
                let store = store.after(collectors.len());
                let destination = match named {
                    true => Destination::File(stem.clone(), form),
                    false => Destination::Stem(stem.clone()),
                };
                collectors.push(Collector::begin(stream, move |stream| {
                    say(&store.run(stream, &destination, || None)?);
                    Ok(())
                }));
            } else if let (Some(path), Some(stream)) = (&self.what.events, events_door.next()?) {
                let (path, earlier) = (path.clone(), streams.len());
                streams.push(Collector::begin(stream, move |stream| {
                    store_events(stream, &path, earlier, force)
                }));
            } else if let Some(status) = child.try_wait()? {
                break status;
            } else {
                std::thread::sleep(STEP);
            }
        };
        if collectors.is_empty() && streams.is_empty() {
            note("no JVM with the agent was started");
        }
        let all: Vec<Collector> = collectors.into_iter().chain(streams).collect();
        // A JVM may run on when the program that has started it has ended.
        while all.iter().any(|one| !one.thread.is_finished()) {
            pass_on(&mut caught, all.iter().filter_map(Collector::jvm), None);
            std::thread::sleep(STEP);
        }
        // A JVM that the killed program has started may have written all of its profile.
        let is_recorded = all.iter().any(|one| one.pid == Some(child.id()));
        if let Some(text) = cut_short(status).filter(|_| profile.is_some() && is_recorded) {
            note(text);
        }
        let mut is_lost = false;
        for collector in all {
            let fault = match collector.thread.join() {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => "a collector failed".to_owned(),
            };
            is_lost = true;
            note(&fault);
        }
        is_lost |= has_failed.load(Ordering::SeqCst) && !has_stored.load(Ordering::SeqCst);
        Ok(match code_of(status) {
            0 if is_lost => Exit::Input,
            code => Exit::Program(code),
        })
    }

    /// Runs the program with its page. The agent is loaded at the beginning only if something is recorded from the
    /// beginning.
    fn run_live(&self, session: &Session) -> Outcome {
        self.live.check()?;
        let door = Arc::new(Door::to_family()?);
        let recording = self.live.recording();
        let option = match recording {
            Some(recording) => {
                let library = agent::loadable(self.agent.as_deref())?;
                let library = library.to_str().context("the agent's path is not UTF-8")?;
                Some(format!(
                    "-agentpath:{library}={}",
                    watched::options(recording, self.live.agent_memory(), &door.address())
                ))
            }
            None => None,
        };
        let mut caught = Caught::new()?;
        let mut child = start(&self.command, option.as_deref())?;
        let (mut page, mut has_failed) = (None::<Page>, false);
        let status = loop {
            let runs = |page: &&Page| !page.live.status().borrow().ended;
            let jvm = page.as_ref().filter(runs);
            let jvm = jvm.map(|page| page.live.program().pid());
            pass_on(&mut caught, jvm, Some(child.id()));
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if page.is_none()
                && !has_failed
                && let Some(found) = jvm::of_family(child.id())
            {
                match Page::open(&self.live, found, self.agent.clone(), session) {
                    Ok(opened) => {
                        if let Some(recording) = recording {
                            let (live, door) = (Arc::clone(&opened.live), Arc::clone(&door));
                            std::thread::spawn(move || match watched::accept(&door, recording) {
                                Ok(agent) => live.connect(agent),
                                Err(error) => note(&format!("{error:#}")),
                            });
                        }
                        page = Some(opened);
                    }
                    // The program has begun, and runs to its end.
                    Err(error) => {
                        note(&format!("{error:#}"));
                        has_failed = true;
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        match page {
            Some(page) => page.finish(),
            None if has_failed => {}
            None => note("no JVM was started"),
        }
        Ok(match code_of(status) {
            0 if has_failed => Exit::Input,
            code => Exit::Program(code),
        })
    }
}

/// How often a command checks for connections, signals and the end of the program.
const STEP: Duration = Duration::from_millis(20);

/// A connection that is stored by a separate thread.
struct Collector {
    /// The JVM that has connected.
    pid: Option<u32>,
    thread: JoinHandle<Result<()>>,
}

impl Collector {
    fn begin(
        stream: TcpStream,
        store: impl FnOnce(TcpStream) -> Result<()> + Send + 'static,
    ) -> Collector {
        let other = socket_peercred(&stream);
        Collector {
            pid: other
                .ok()
                .map(|other| other.pid.as_raw_nonzero().get().cast_unsigned()),
            thread: std::thread::spawn(move || store(stream)),
        }
    }

    /// The JVM, as long as it is connected.
    fn jvm(&self) -> Option<u32> {
        self.pid.filter(|_| !self.thread.is_finished())
    }
}

/// Passes received signals on to the program and the JVMs that it has started, which write the profiles when they end.
/// Processes in the process group of `tenure` have already received signals that were typed on the terminal. SIGQUIT makes
/// a JVM print its threads and ends most other programs, so the program receives it only while no JVM is known.
fn pass_on(caught: &mut Caught, jvms: impl IntoIterator<Item = u32>, program: Option<u32>) {
    let jvms: BTreeSet<u32> = jvms.into_iter().collect();
    for Arrived { signal, is_typed } in caught.take() {
        let Some(signal) = Signal::from_named_raw(signal) else {
            continue;
        };
        let program = program.filter(|_| signal != Signal::QUIT || jvms.is_empty());
        let pids: BTreeSet<u32> = jvms.iter().copied().chain(program).collect();
        let pids = pids.iter().map(|pid| Pid::from_raw(pid.cast_signed()));
        for pid in pids.flatten() {
            let has_received = is_typed && getpgid(Some(pid)) == Ok(getpgrp());
            if !has_received {
                // One that has just ended needs no signal.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Adds the options for files that `tenure` opens, because the defaults are those of the original, whose heap dumps
/// were text.
pub(super) fn completed(options: &str, output: Option<&Path>) -> String {
    let says = |name: &str| {
        let mut words = options.split(',').filter_map(|word| word.split_once('='));
        words.any(|(key, _)| key == name)
    };
    let has = |list: &[&str]| options.split(',').any(|word| list.contains(&word));
    let is_dump = has(&["heap=dump", "heap=all"]);
    let ending = output.and_then(Path::extension);
    let is_binary = ending == Some(OsStr::new("hprof"));
    let is_text = ending == Some(OsStr::new("txt"));
    // The text form has times in milliseconds; other forms are made from the nanoseconds of the binary one, which has no
    // calls in the mode of the original.
    let is_original = has(&["compat=y", "modern=n"]);
    let is_exact = ending.is_some() && has(&["cpu=times"]) && !is_original;
    if is_text || !(is_dump || is_binary || is_exact) || says("format") {
        return options.to_owned();
    }
    let mode = if says("modern") || says("compat") {
        ""
    } else {
        ",modern=y"
    };
    format!("{},format=b{mode}", options.trim_end_matches(','))
}

/// `-agentpath:LIBRARY=OPTIONS`.
fn agent_option(library: &Path, options: &str) -> Result<String> {
    let library = library.to_str().context("the agent's path is not UTF-8")?;
    Ok(format!("-agentpath:{library}={options}"))
}

/// Options for every JVM that reads this variable.
const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// An option in [`TOOL_OPTIONS`], where the VM separates options at white space outside of quotes.
fn quoted(option: &str) -> String {
    let is_special = |c: char| c.is_whitespace() || c == '"' || c == '\'';
    match option.contains(is_special) {
        true => format!("\"{}\"", option.replace('"', "\"'\"'\"")),
        false => option.to_owned(),
    }
}

/// Starts the program: `java` gets the option as its first argument; other programs get it in the environment, which
/// every JVM that they start reads.
fn start(command: &[OsString], option: Option<&str>) -> Result<Child> {
    let (program, arguments) = command.split_first().context("no program")?;
    let mut start = Command::new(program);
    if Path::new(program).file_stem() == Some(OsStr::new("java")) {
        start.args(option);
    } else if let Some(option) = option {
        let mut options = std::env::var_os(TOOL_OPTIONS).unwrap_or_default();
        if !options.is_empty() {
            options.push(" ");
        }
        options.push(quoted(option));
        start.env(TOOL_OPTIONS, options);
    }
    start
        .args(arguments)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))
}

/// What the profile of a program lacks that a signal has ended.
pub(super) const KILLED: &str = "the program was killed: its profile lacks what is written at the end, such as samples and \
                                 dumps (with --loop, only of the last file)";

/// What is missing in the profile of a program that a signal has ended; a JVM that handles the signal exits with a code.
fn cut_short(status: ExitStatus) -> Option<&'static str> {
    use std::os::unix::process::ExitStatusExt;
    status.signal().map(|_| KILLED)
}

/// The program's exit code, or 128 plus the signal that ended it, as in a shell.
fn code_of(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            return 128u8.saturating_add(signal as u8);
        }
    }
    status.code().unwrap_or(1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_quotes_stay_in_an_option() {
        assert_eq!(quoted("-agentpath:/a=b,c"), "-agentpath:/a=b,c");
        assert_eq!(quoted("-agentpath:/a b"), "\"-agentpath:/a b\"");
        assert_eq!(quoted("/it's"), "\"/it's\"");
        assert_eq!(quoted("/a\"b c"), "\"/a\"'\"'\"b c\"");
    }

    #[test]
    fn what_tenure_opens_is_binary() {
        let words = |options, output: Option<&str>| completed(options, output.map(Path::new));
        assert_eq!(words("cpu=samples", None), "cpu=samples");
        assert_eq!(words("cpu=samples", Some("a.txt")), "cpu=samples");
        assert_eq!(words("heap=dump", Some("a.txt")), "heap=dump");
        assert_eq!(
            words("cpu=samples", Some("a.hprof")),
            "cpu=samples,format=b,modern=y"
        );
        assert_eq!(
            words("cpu=times", Some("a.collapsed")),
            "cpu=times,format=b,modern=y"
        );
        for original in ["cpu=times,compat=y", "cpu=times,modern=n"] {
            assert_eq!(words(original, Some("a.html")), original);
        }
        assert_eq!(words("cpu=times", Some("a.txt")), "cpu=times");
        assert_eq!(words("heap=dump,", None), "heap=dump,format=b,modern=y");
        assert_eq!(
            words("compat=y,heap=all", None),
            "compat=y,heap=all,format=b"
        );
        assert_eq!(
            words("heap=dump,format=a", Some("a.hprof")),
            "heap=dump,format=a"
        );
    }

    #[test]
    fn the_agent_receives_the_address_of_its_collector() {
        let option = |options: &str| {
            let options = joined(options, "net=unix:/t/s");
            agent_option(Path::new("/x/libhprof.so"), &options).expect("text")
        };
        assert_eq!(
            option("cpu=samples"),
            "-agentpath:/x/libhprof.so=cpu=samples,net=unix:/t/s"
        );
        assert_eq!(option(""), "-agentpath:/x/libhprof.so=net=unix:/t/s");
    }
}
