//! A recorded run, run again with the agent on a JVM of today.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::jvm::Jdk;
use testkit::oracle::{Case, Sent};

use crate::common::kept_report;

/// What a run left behind.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// The exit code; minus the signal when it was killed.
    pub(crate) exit: i64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Every file in its folder, and `socket.bin`: what went over the socket.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

/// What a case of `force=n` finds in place of its file, and must leave alone.
pub(crate) const KEPT: &[u8] = b"old content!\n";

/// What the recorded run left.
pub(crate) fn recorded(case: &Case) -> Left {
    let names = case.files().into_iter();
    let names =
        names.filter(|name| !["stdout", "stderr", "transcript.txt"].contains(&name.as_str()));
    let files = names.map(|name| {
        let bytes = case.file(&name).unwrap_or_default();
        (masked(&name), bytes)
    });
    Left {
        exit: case.exit,
        stdout: case.text("stdout"),
        stderr: case.text("stderr"),
        files: files.collect(),
    }
}

/// A recorded name of a file, with its process id masked: `out.5280.txt`.
fn masked(name: &str) -> String {
    let parts = name.split('.').map(|part| {
        let is_pid = part.len() > 2 && part.chars().all(|c| c.is_ascii_digit());
        if is_pid { "PID" } else { part }
    });
    parts.collect::<Vec<_>>().join(".")
}

/// What `Cpu` computes here takes about a quarter of the recorded time, and as much on a machine that has no time for
/// it. The recorded signals and commands come when it has used a quarter of the time before them.
pub(crate) const SHARE_OF_TIME: u32 = 4;

/// CPU time of a process; `None` when it has ended.
fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let has_ended = fields.next() == Some("Z");
    // User and system time, in hundredths of a second.
    let ticks = fields.skip(10).take(2).map(|field| field.parse::<u64>());
    let ticks: u64 = ticks.sum::<Result<u64, _>>().ok()?;
    (!has_ended).then(|| Duration::from_millis(10 * ticks))
}

/// The time that a program has had: its own where it computes, otherwise that of the clock.
#[derive(Clone, Copy)]
struct Elapsed {
    since: Instant,
    computes: Option<(u32, Duration)>,
}

impl Elapsed {
    fn begin(case: &Case, pid: u32) -> Self {
        let computes = case.program().first().is_some_and(|name| name == "Cpu");
        let used = cpu_time(pid).unwrap_or_default();
        Self {
            since: Instant::now(),
            computes: computes.then_some((pid, used)),
        }
    }

    /// Waits for so much of the recorded time.
    fn wait_for(self, recorded: Duration) {
        let Some((pid, before)) = self.computes else {
            return std::thread::sleep(recorded.saturating_sub(self.since.elapsed()));
        };
        let until = before + recorded / SHARE_OF_TIME;
        while cpu_time(pid).is_some_and(|now| now < until) && self.since.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs a case with the agent `library`, or with the JDK's own, and the programs in `classes`.
pub(crate) fn run(case: &Case, jdk: &Jdk, library: Option<&Path>, classes: &Path) -> Left {
    let folder = tempfile::tempdir().expect("temporary folder");
    let output = tempfile::tempdir().expect("temporary folder");
    let kept = case.left.iter();
    for (name, _) in kept.filter(|(_, size)| *size == KEPT.len() as u64) {
        std::fs::write(folder.path().join(name), KEPT).expect("written");
    }
    let collector = case.name.starts_with("net-").then(|| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        (
            listener.local_addr().expect("bound").port(),
            case.clone(),
            listener,
        )
    });
    let port = collector.as_ref().map(|(port, ..)| *port);
    let mut java = command(case, jdk, library, classes, port);
    let file = |name| std::fs::File::create(output.path().join(name)).expect("created");
    java.current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(file("stdout"))
        .stderr(file("stderr"));
    let started = Instant::now();
    let mut child = java.spawn().expect("java starts");
    let printed = output.path().join("stdout");
    let talk = collector.map(|(_, case, listener)| {
        let printed = printed.clone();
        let pid = child.id();
        std::thread::spawn(move || talk(&case, &listener, &printed, pid))
    });
    if !case.signals.is_empty() {
        wait_for_handler(child.id());
    }
    let up = Elapsed::begin(case, child.id());
    for (at, signal) in &case.signals {
        wait_for(case, &printed, *at, up);
        let kill = format!("-{}", signal.trim_start_matches("SIG"));
        let pid = child.id().to_string();
        drop(Command::new("kill").args([kill, pid]).status());
    }
    let exit = ended(&mut child, started);
    let mut left = Left {
        exit,
        stdout: read(&printed),
        stderr: without_compat(&read(&output.path().join("stderr"))),
        files: BTreeMap::new(),
    };
    for entry in std::fs::read_dir(folder.path()).expect("folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = name.replace(&child.id().to_string(), "PID");
        let bytes = std::fs::read(entry.path()).expect("read");
        left.files.insert(name, bytes);
    }
    if let Some(talk) = talk {
        let received = talk.join().expect("the peer");
        left.files.insert("socket.bin".to_owned(), received);
    }
    left
}

fn command(
    case: &Case,
    jdk: &Jdk,
    library: Option<&Path>,
    classes: &Path,
    port: Option<u16>,
) -> Command {
    let mut java = Command::new(jdk.tool("java"));
    if !case.signals.is_empty() {
        // A test in the background inherits that these are ignored, and a JVM then does, too.
        java = Command::new("env");
        java.arg("--default-signal=HUP,INT").arg(jdk.tool("java"));
    }
    java.env_remove("_JAVA_HPROF_OPTIONS");
    java.arg(kept_report(&format!("{}-{}", case.name, jdk.version)));
    let takes_times = case.options.iter().any(|o| o.contains("cpu=times"));
    let takes_times = takes_times && !case.name.starts_with("err-");
    if let Some(options) = &case.environment {
        java.env("_JAVA_HPROF_OPTIONS", options);
    } else if is_refused(case) && library.is_some() {
        // The program is ended only where the original's ways are wanted.
        java.env("_JAVA_HPROF_OPTIONS", "compat=y");
    } else if takes_times {
        // Which rows have time is chance; with this all are there.
        java.env("_JAVA_HPROF_OPTIONS", "cutoff=0");
    }
    // JDK 8 has the original under this name, so the new agent is named by its path.
    let path = library.filter(|_| jdk.version == 8);
    if let Some(folder) = library.and_then(Path::parent) {
        java.env("LD_LIBRARY_PATH", folder);
    }
    for word in &case.words {
        let mut word = word.clone();
        if word == "cls" {
            java.arg(classes);
            continue;
        }
        if let (Some(port), Some(at)) = (port, word.find("net=127.0.0.1:")) {
            word = format!("{}net=127.0.0.1:{port}", &word[..at]);
        }
        let options = word
            .strip_prefix("-agentlib:hprof")
            .or(word.strip_prefix("-Xrunhprof"));
        if let (Some(path), Some(options)) = (path, options) {
            let options = options.trim_start_matches([':', '=']);
            let equals = if options.is_empty() { "" } else { "=" };
            word = format!("-agentpath:{}{equals}{options}", path.display());
        }
        java.arg(word);
    }
    java
}

/// Whether the original refused to start.
fn is_refused(case: &Case) -> bool {
    case.name.starts_with("err-") && case.text("stderr").contains("HPROF ERROR: ")
}

/// What was said without the option that [`is_refused`] brought in; one of its words stands for it where
/// an option before it has no value.
fn without_compat(shown: &str) -> String {
    shown.replace(",compat=y", "").replace(",compat (", " (")
}

fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until something is due: for programs that say when they are ready, a moment after that,
/// otherwise at the recorded time.
fn wait_for(case: &Case, printed: &Path, at: Duration, started: Elapsed) {
    let says = case
        .program()
        .first()
        .is_some_and(|program| program == "Alloc");
    while says && read(printed).is_empty() && started.since.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    if says {
        std::thread::sleep(Duration::from_millis(300));
    } else {
        started.wait_for(at);
    }
}

/// Waits until the VM handles SIGQUIT, which would end it before that.
fn wait_for_handler(pid: u32) {
    let began = Instant::now();
    let handles = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & 1 << 2 != 0)
    };
    while !handles() && began.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ended(child: &mut Child, started: Instant) -> i64 {
    use std::os::unix::process::ExitStatusExt;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            let signal = status.signal().map(|signal| -i64::from(signal));
            return status.code().map_or(signal.unwrap_or(-1), i64::from);
        }
        if started.elapsed() > LIMIT {
            drop(child.kill());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The collector: takes all that comes, and sends the recorded commands.
fn talk(case: &Case, listener: &TcpListener, printed: &Path, pid: u32) -> Vec<u8> {
    let began = Instant::now();
    listener.set_nonblocking(true).expect("a socket");
    let mut agent = loop {
        match listener.accept() {
            Ok((agent, _)) => break agent,
            Err(_) if began.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return Vec::new(),
        }
    };
    agent.set_nonblocking(false).expect("a socket");
    let connected = Elapsed::begin(case, pid);
    let mut reading = agent.try_clone().expect("a second handle");
    let received = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // An end by reset leaves what came before it.
        drop(reading.read_to_end(&mut bytes));
        bytes
    });
    let mut before = Duration::ZERO;
    let mut first = true;
    for (at, sent) in case.peer() {
        if first {
            wait_for(case, printed, at, connected);
        } else {
            Elapsed::begin(case, pid).wait_for(at.saturating_sub(before));
        }
        (first, before) = (false, at);
        match sent {
            // A program that has ended takes no more.
            Sent::Bytes(bytes) => drop(agent.write_all(&bytes)),
            Sent::Close => drop(agent.shutdown(std::net::Shutdown::Both)),
        }
    }
    keep(agent, received)
}

fn keep(agent: TcpStream, received: std::thread::JoinHandle<Vec<u8>>) -> Vec<u8> {
    let bytes = received.join().expect("the reader");
    drop(agent);
    bytes
}
