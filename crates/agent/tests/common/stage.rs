//! A program that waits for lines, which make each step certain, and the programs that talk to the
//! agent in it from outside.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use testkit::jvm::Jdk;

use super::{Lab, kept_report};

/// How long a thing may take on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// A process that is talked to; killed when dropped.
pub(crate) struct Talk {
    pub(crate) child: Child,
    pub(crate) input: ChildStdin,
    pub(crate) output: Lines<BufReader<ChildStdout>>,
}

impl Talk {
    pub(crate) fn start(mut command: Command) -> Talk {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        Talk {
            input: child.stdin.take().expect("a pipe"),
            output: BufReader::new(child.stdout.take().expect("a pipe")).lines(),
            child,
        }
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("typed");
    }

    /// The next line it prints.
    pub(crate) fn line(&mut self) -> String {
        if let Some(line) = self.output.next() {
            return line.expect("text");
        }
        let mut printed = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut printed);
        }
        panic!("it has ended: {:?}: {printed}", self.child.wait());
    }

    pub(crate) fn expect(&mut self, line: &str) {
        assert_eq!(self.line(), line);
    }

    /// Types lines and waits until the program has done what they request.
    pub(crate) fn make(&mut self, lines: &[&str]) {
        for line in lines {
            self.type_line(line);
            self.expect(&format!("done {line}"));
        }
    }

    /// Has `Patient` end, which reports what it has kept.
    pub(crate) fn finish(&mut self, kept: &str) {
        self.type_line("end");
        self.expect(kept);
        assert_eq!(self.code(), Some(3));
    }

    pub(crate) fn stderr(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.child.stderr.take().expect("a pipe"))
    }

    pub(crate) fn code(&mut self) -> Option<i32> {
        self.child.wait().expect("ended").code()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Waits until the file satisfies `done`; what it holds then.
pub(crate) fn wait_for(path: &Path, what: &str, done: impl Fn(&str) -> bool) -> String {
    testkit::until(|| {
        let bytes = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if done(&text) {
            return Ok(text);
        }
        Err(format!("no {what} in\n{text}"))
    })
}

pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) classes: tempfile::TempDir,
    pub(crate) tenure: PathBuf,
}

impl Stage {
    pub(crate) fn listen(&self) -> (Talk, u16) {
        self.listen_with(&[])
    }

    /// The same with more arguments.
    pub(crate) fn listen_with(&self, more: &[&str]) -> (Talk, u16) {
        let mut command = Command::new(&self.tenure);
        command
            .args(["listen", "0", "-o", "got"])
            .args(more)
            .current_dir(self.folder.path());
        let mut listener = Talk::start(command);
        let mut printed = listener.stderr();
        let mut line = String::new();
        printed.read_line(&mut line).expect("a line");
        let port = line.trim().rsplit(':').next().and_then(|p| p.parse().ok());
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || printed.lines().count());
        (listener, port.expect("a port"))
    }

    pub(crate) fn patient(&self, jdk: &Jdk, agent: Option<(&Path, &str)>) -> Talk {
        let mut java = Command::new(jdk.tool("java"));
        java.current_dir(self.folder.path())
            .env_remove("_JAVA_HPROF_OPTIONS");
        if let Some((library, options)) = agent {
            java.arg(format!("-agentpath:{}={options}", library.display()));
        }
        java.arg(kept_report("Patient"))
            .arg("-XX:+IgnoreUnrecognizedVMOptions")
            .arg("-XX:+EnableDynamicAgentLoading");
        if jdk.version >= 9 {
            java.arg("--add-opens=java.base/java.lang=ALL-UNNAMED");
        }
        java.arg("-cp").arg(self.classes.path()).arg("Patient");
        let mut program = Talk::start(java);
        program.expect("ready");
        program
    }

    pub(crate) fn got(&self) -> PathBuf {
        self.folder.path().join("got")
    }

    /// Attaches the agent to a program; the profile.
    pub(crate) fn attach(&self, lab: &Lab, pid: &str, profile: &str) -> PathBuf {
        let file = self.folder.path().join("attached.txt");
        let profile = format!("{profile},file={}", file.display());
        self.ordered(lab, &[pid, "--profile", &profile]);
        file
    }

    /// Runs `tenure attach`: its code, and what it said on either stream.
    pub(crate) fn order(&self, lab: &Lab, arguments: &[&str]) -> (Option<i32>, String) {
        let library = lab.agent.to_string_lossy();
        let ran = self.run(&[&["attach"], arguments, &["--agent", &library]].concat());
        let printed = [&ran.stdout[..], &ran.stderr[..]].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        (ran.status.code(), printed)
    }

    /// What it said, if it did what was wanted.
    pub(crate) fn ordered(&self, lab: &Lab, arguments: &[&str]) -> String {
        let (code, printed) = self.order(lab, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {printed}");
        printed
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new(&self.tenure);
        command.args(arguments).current_dir(self.folder.path());
        command.output().expect("ran")
    }
}

pub(crate) fn stage(lab: &Lab) -> Option<Stage> {
    Some(Stage {
        folder: tempfile::tempdir().expect("temporary folder"),
        classes: lab.compile("Patient.java", 8)?,
        tenure: testkit::built::tenure(),
    })
}

/// Where a program runs.
pub(crate) struct Here {
    pub(crate) lab: &'static Lab,
    pub(crate) jdk: &'static Jdk,
    pub(crate) stage: Stage,
}

/// `Patient` without the agent, for a test that attaches it, and its number: on each of these JVMs, one after the other.
pub(crate) fn running(jdks: fn(&Lab) -> &[Jdk]) -> impl Iterator<Item = (Here, Talk, String)> {
    let labs = super::lab().into_iter();
    let all = labs.flat_map(move |lab| jdks(lab).iter().map(move |jdk| (lab, jdk)));
    all.filter_map(|(lab, jdk)| {
        let stage = stage(lab)?;
        let program = stage.patient(jdk, None);
        let pid = program.child.id().to_string();
        Some((Here { lab, jdk, stage }, program, pid))
    })
}

/// Live and allocated objects of the last sites table, by the method that made them.
pub(crate) fn objects_of(text: &str, class: &str) -> Option<(u64, u64)> {
    let table = text.rsplit("SITES BEGIN").next()?;
    let table = table.split("SITES END").next()?;
    let rows = table.lines().filter(|line| line.ends_with(class));
    let rows = rows.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = rows.filter_map(|f| Some((f.get(4)?.parse().ok()?, f.get(6)?.parse().ok()?)));
    rows.reduce(|a: (u64, u64), b| (a.0 + b.0, a.1 + b.1))
}

/// Samples of the last table whose traces have a frame that begins so.
pub(crate) fn samples_under(text: &str, frame: &str) -> u64 {
    let table = text.rsplit("CPU SAMPLES BEGIN").next().unwrap_or_default();
    let table = table.split("CPU SAMPLES END").next().unwrap_or_default();
    let rows = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = rows.filter_map(|row| Some((row.get(3)?.parse::<u64>().ok()?, *row.get(4)?)));
    rows.filter(|(_, trace)| {
        frames_of(text, trace)
            .iter()
            .any(|line| line.starts_with(frame))
    })
    .map(|(count, _)| count)
    .sum()
}

/// Milliseconds of a table of times whose traces have a frame that begins so.
pub(crate) fn ms_under(text: &str, title: &str, frame: &str) -> f64 {
    let begin = format!("{title} BEGIN (total = ");
    let table = text.rsplit(&begin).next().unwrap_or_default();
    let table = table.split(&format!("{title} END")).next();
    let mut lines = table.unwrap_or_default().lines();
    let total = lines.next().and_then(|line| line.split(')').next());
    let total: f64 = total.and_then(|total| total.parse().ok()).unwrap_or(0.0);
    let rows = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = rows.filter_map(|row| {
        let share = row.get(1)?.strip_suffix('%')?;
        Some((share.parse::<f64>().ok()? / 100.0, *row.get(4)?))
    });
    rows.filter(|(_, trace)| {
        let frames = frames_of(text, trace);
        frames.iter().any(|line| line.starts_with(frame))
    })
    .map(|(share, _)| share * total)
    .sum()
}

/// The frames of a trace.
pub(crate) fn frames_of<'a>(text: &'a str, trace: &str) -> Vec<&'a str> {
    let head = format!("TRACE {trace}:");
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with(&head))
        .skip(1);
    std::iter::from_fn(|| lines.next()?.strip_prefix('\t')).collect()
}

/// A field of the START line of a thread: `obj=` or `id = `.
pub(crate) fn thread_field<'a>(text: &'a str, name: &str, field: &str) -> Option<&'a str> {
    let name = format!("name=\"{name}\"");
    let line = text
        .lines()
        .find(|line| line.starts_with("THREAD START") && line.contains(&name))?;
    line.split(field).nth(1)?.split([',', ')']).next()
}
