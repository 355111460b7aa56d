//! Programs with known populations under a live page.
#![allow(dead_code, reason = "each test uses a part")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use testkit::jvm::{Jdk, newest_compiler};

pub(crate) use testkit::wait::PATIENCE;

pub(crate) struct Lab {
    pub(crate) agent: PathBuf,
    pub(crate) classes: tempfile::TempDir,
    pub(crate) jdks: Vec<Jdk>,
}

pub(crate) fn lab(test: &str) -> Option<&'static Lab> {
    static LAB: OnceLock<Option<Lab>> = OnceLock::new();
    let made = LAB.get_or_init(|| {
        newest_compiler()?;
        let classes = compiled(&test_source("Populations"));
        Some(Lab {
            agent: testkit::built::agent(),
            classes,
            jdks: testkit::jvm::tested(),
        })
    });
    if made.is_none() {
        testkit::skip(test, testkit::Need::Jdk, testkit::jvm::NO_JDK);
    }
    made.as_ref()
}

/// A program of this folder.
pub(crate) fn test_source(main: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{main}.java"))
}

/// Its classes. There is a compiler: the lab has been there.
pub(crate) fn compiled(source: &Path) -> tempfile::TempDir {
    let classes = tempfile::tempdir().expect("a folder");
    let compiler = newest_compiler().expect("the lab has one");
    compiler
        .compile(source, 8, classes.path())
        .expect("compiled");
    classes
}

/// A program of this folder under its page, on each JVM; `body` gets the JVM's version, too.
pub(crate) fn with_program(
    test: &str,
    main: &str,
    flags: &[&str],
    body: impl Fn(&mut Program, &Page, u32),
) {
    let Some(lab) = lab(test) else { return };
    let classes = compiled(&test_source(main));
    for jdk in &lab.jdks {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut program, page) =
            run_live_of(lab, jdk, (folder.path(), flags), (classes.path(), &[main]));
        body(&mut program, &page, jdk.version);
        program.child.kill().expect("killed");
    }
}

/// The program under watch.
pub(crate) struct Program {
    pub(crate) child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn of(child: Child) -> Program {
        let mut program = Self::that_speaks(child);
        program.expect("ready");
        program
    }

    /// One that says something else first.
    pub(crate) fn that_speaks(mut child: Child) -> Program {
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Program {
            child,
            input,
            output,
        }
    }

    /// The next line that it prints; `None` at its end.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let count = self.output.read_until(b'\n', &mut line).expect("a line");
        (count > 0).then(|| String::from_utf8_lossy(&line).trim().to_owned())
    }

    pub(crate) fn expect(&mut self, word: &str) {
        assert_eq!(self.line().as_deref(), Some(word));
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.say(line);
        self.expect("ok");
    }

    /// Sends a line that is not answered.
    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("told");
        self.input.flush().expect("told");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A page's address.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) host: String,
    pub(crate) base: String,
    /// What was said on standard error after the address.
    pub(crate) printed: Arc<Mutex<String>>,
}

impl Page {
    /// The address that tenure says on standard error.
    pub(crate) fn of(child: &mut Child) -> Page {
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let url = loop {
            let line = lines.next().expect("an address").expect("text");
            if let Some((_, url)) = line.split_once("live page is http://") {
                break url.to_owned();
            }
        };
        let printed = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&printed);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut printed = heard.lock().expect("no panic while it was locked");
                printed.push_str(&line);
                printed.push('\n');
            }
        });
        let (host, base) = url.split_once('/').expect("a path");
        Page {
            host: host.to_owned(),
            base: format!("/{base}"),
            printed,
        }
    }

    pub(crate) fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let request = format!(
            "{method} {}{path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.base, self.host
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("answered");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.expect("a status"), body.to_owned())
    }

    pub(crate) fn text(&self, path: &str) -> String {
        let (status, body) = self.ask("GET", path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(&format!("api/v1/{path}"))).expect("JSON")
    }

    pub(crate) fn command(&self, path: &str) {
        let (status, body) = self.ask("POST", &format!("api/v1/commands/{path}"));
        assert_eq!(status, 200, "{path}: {body}");
    }

    /// Asks until the answer is as wanted.
    pub(crate) fn until(&self, path: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        testkit::until(|| {
            let answer = self.json(path);
            if wanted(&answer) {
                return Ok(answer);
            }
            Err(format!("{path}: {answer}"))
        })
    }

    /// Has garbage collected, and waits until the timeline knows of it, with its next row.
    pub(crate) fn collect(&self) {
        let count = || self.json("growth")["collections"].as_u64();
        let before = count();
        self.command("gc");
        self.until("growth", |growth| growth["collections"].as_u64() > before);
    }

    /// Waits until this was said on standard error.
    pub(crate) fn hears(&self, words: &str) {
        testkit::until(|| {
            let printed = self
                .printed
                .lock()
                .expect("no panic while it was locked")
                .clone();
            if printed.contains(words) {
                return Ok(());
            }
            Err(format!("{words}: {printed}"))
        });
    }

    /// Waits until the agent is there.
    pub(crate) fn connected(&self) {
        self.until("state", |state| state["recording"]["connected"] == true);
    }

    /// Waits until the agent counts. It notices by what the program allocates, so that is made to.
    pub(crate) fn counting(&self, program: &mut Program) {
        // Rows of the timeline come more often than usual, and tests wait for them.
        self.command("interval?ms=100");
        self.connected();
        testkit::until(|| {
            program.send("nothing");
            self.count();
            let state = self.json("state");
            if state["recording"]["counting"] == true {
                return Ok(());
            }
            Err(state)
        });
    }

    /// Takes a snapshot; a program that gets no time answers late.
    pub(crate) fn count(&self) {
        testkit::until(|| match self.ask("POST", "api/v1/commands/snapshot") {
            (200, _) => Ok(()),
            (status, printed) => Err(format!("{status}: {printed}")),
        });
    }

    /// Takes a snapshot, and gives its time.
    pub(crate) fn snapshot(&self) -> u64 {
        self.count();
        let state = self.json("state");
        state["recording"]["range"][1].as_u64().expect("a time")
    }

    /// As `until`, with a snapshot before each question.
    pub(crate) fn until_counted(
        &self,
        path: &str,
        mut wanted: impl FnMut(&Value) -> bool,
    ) -> Value {
        self.until(path, |answer| {
            let is_wanted = wanted(answer);
            if !is_wanted {
                self.count();
            }
            is_wanted
        })
    }
}

pub(crate) fn java(lab: &Lab, jdk: &Jdk) -> Command {
    let mut java = Command::new(jdk.tool("java"));
    java.arg("-Xmx64m")
        .arg("-cp")
        .arg(lab.classes.path())
        .arg("Populations");
    java
}

/// `tenure run --live` with the program of known populations.
pub(crate) fn run_live(lab: &Lab, jdk: &Jdk, folder: &Path, flags: &[&str]) -> (Program, Page) {
    let program = ["-XX:NativeMemoryTracking=summary", "Populations"];
    run_live_of(lab, jdk, (folder, flags), (lab.classes.path(), &program))
}

/// `tenure run --live` with flags of the JVM, a main class and its arguments.
pub(crate) fn run_live_of(
    lab: &Lab,
    jdk: &Jdk,
    places: (&Path, &[&str]),
    program: (&Path, &[&str]),
) -> (Program, Page) {
    let (child, page) = start_live(lab, jdk, places, program);
    (Program::of(child), page)
}

/// The same, of a program that may say something else than that it is ready.
pub(crate) fn start_live(
    lab: &Lab,
    jdk: &Jdk,
    (folder, flags): (&Path, &[&str]),
    (classes, program): (&Path, &[&str]),
) -> (Child, Page) {
    let tenure = Command::new(env!("CARGO_BIN_EXE_tenure"));
    start_live_with(tenure, lab, jdk, (folder, flags), (classes, program))
}

/// The same, with a command that runs `tenure`.
pub(crate) fn start_live_with(
    mut tenure: Command,
    lab: &Lab,
    jdk: &Jdk,
    (folder, flags): (&Path, &[&str]),
    (classes, program): (&Path, &[&str]),
) -> (Child, Page) {
    let mut child = tenure
        .args(["run", "--live", "--no-browser", "--dumps"])
        .arg(folder)
        .args(flags)
        .arg("--")
        .arg(jdk.tool("java"))
        .args(["-Xmx64m", "-cp"])
        .arg(classes)
        .args(program)
        .env("TENURE_AGENT", &lab.agent)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let page = Page::of(&mut child);
    (child, page)
}

pub(crate) fn wait(child: &mut Child) -> Option<i32> {
    testkit::wait::ended(child).code()
}

/// The JVM below a tenure process.
pub(crate) fn jvm_of(page: &Page) -> u32 {
    page.json("state")["pid"].as_u64().expect("a pid") as u32
}
