//! Output files: whole or not there, and never in the place of what is read.

use crate::profiles::SENT;
use crate::ran::tenure;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::dump::{Elements, Heap, IdSize, Root};

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// A dump of a bit more than this many bytes.
fn dump(bytes: usize) -> Vec<u8> {
    let mut heap = Heap::new(IdSize::Eight);
    heap.java_lang_object();
    let array = heap.primitive_array(Elements::Byte(vec![7; bytes]));
    heap.root(Root::Unknown, array);
    heap.bytes()
}

fn names(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("text");
    let mut names: Vec<String> = found.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// Commands that write to `OUT`, and what they read.
const COMMANDS: &[(&str, &str)] = &[
    ("heap.hprof", "redact heap.hprof OUT"),
    ("heap.hprof", "redact heap.hprof other.hprof --rename OUT"),
    ("heap.hprof", "extract heap.hprof OUT --class byte[]"),
    ("heap.hprof", "convert heap.hprof -o OUT --to hprof"),
    ("heap.hprof", "report heap.hprof -o OUT --format md"),
    ("heap.hprof", "report heap.hprof#1 -o OUT --format md"),
    ("heap.hprof", "extract heap.hprof#1 OUT --class byte[]"),
    ("heap.hprof", "check heap.hprof --write-baseline OUT"),
    ("heap.hprof", "check heap.hprof --rules rules.toml -o OUT"),
    ("rules.toml", "check heap.hprof --rules rules.toml -o OUT"),
    ("base.json", "check heap.hprof --baseline base.json -o OUT"),
    (
        "map.txt",
        "check heap.hprof --rules rules.toml --mapping map.txt -o OUT",
    ),
    (
        "key",
        "dump --core heap.hprof --redact --key-file key -o OUT",
    ),
    ("run.vmpi", "events run.vmpi -o OUT"),
    ("old.txt", "convert old.txt -o OUT --to html"),
    ("mutator.heap", "collectors --script mutator.heap -o OUT"),
];

/// A folder with everything that is read.
fn inputs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let record = ["collectors", "--gc", "generational", "--record", "run.vmpi"];
    assert_eq!(tenure(at, &record).status.code(), Some(0));
    let profile = "JAVA PROFILE 1.0.1, created Mon Jan  1 00:00:00 2024\n\n\
        CPU SAMPLES BEGIN (total = 0) Mon Jan  1 00:00:00 2024\nCPU SAMPLES END\n";
    for (name, content) in [
        ("old.txt", profile.as_bytes()),
        ("heap.hprof", &dump(100_000)),
        (
            "rules.toml",
            b"[[rule]]\nclass = \"java.lang.Object\"\ncount = 1000000\n",
        ),
        ("mutator.heap", b"class A\na = new A\ngc\n"),
        ("map.txt", b"shop.Order -> a.b:\n"),
        ("key", &[7; 32]),
    ] {
        fs::write(at.join(name), content).expect("written");
    }
    let baseline = "check heap.hprof --write-baseline base.json --no-index";
    let baseline: Vec<&str> = baseline.split(' ').collect();
    assert_eq!(tenure(at, &baseline).status.code(), Some(0));
    folder
}

#[test]
fn an_output_that_is_the_input_is_refused_even_with_force() {
    let folder = inputs();
    let at = folder.path();
    for (input, command) in COMMANDS {
        let before = fs::read(at.join(input)).expect("the input");
        std::os::unix::fs::symlink(input, at.join("link")).expect("a link");
        fs::hard_link(at.join(input), at.join("hard")).expect("a link");
        for output in [input, "./link", "hard"] {
            let command = command.replace("OUT", output);
            let mut args: Vec<&str> = command.split(' ').collect();
            args.push("--force");
            let ran = tenure(at, &args);
            let printed = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(ran.status.code(), Some(2), "{command}: {printed}");
            assert!(printed.contains(" is the input"), "{command}: {printed}");
            assert!(fs::read(at.join(input)).expect("it") == before, "{command}");
        }
        for link in ["link", "hard"] {
            fs::remove_file(at.join(link)).expect("removed");
        }
    }
    let folder = at.join("tables/classes");
    fs::create_dir_all(&folder).expect("made");
    fs::hard_link(at.join("heap.hprof"), folder.join("x.csv")).expect("a link");
    for input in ["heap.hprof", "heap.hprof#1"] {
        let export = format!("export {input} -o tables --name x --format csv --force");
        let ran = tenure(at, &export.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.status.code(), Some(2), "{input}");
    }
    assert!(fs::read(at.join("heap.hprof")).expect("the dump") == dump(100_000));
}

#[test]
fn an_output_appears_when_it_is_whole() {
    let folder = inputs();
    let at = folder.path();
    // A signal when a file reaches a KiB, and an error.
    for trap in ["", "trap '' XFSZ; "] {
        for (_, command) in COMMANDS {
            for old in [None, Some("earlier")] {
                let path = at.join("out");
                if let Some(old) = old {
                    fs::write(&path, old).expect("written");
                }
                let (before, command) = (names(at), command.replace("OUT", "out"));
                let limited = format!(
                    "{trap}ulimit -f 2; exec {TENURE} {command} --no-index -q {}",
                    old.map_or("", |_| "--force")
                );
                let mut shell = Command::new("sh");
                let ran = shell.current_dir(at).args(["-c", &limited]).output();
                let ran = ran.expect("a shell");
                let printed = String::from_utf8_lossy(&ran.stderr);
                let is_whole = ran.status.code() == Some(0);
                let now = fs::read_to_string(&path).ok();
                if !is_whole {
                    assert_eq!(now.as_deref(), old, "{limited}: {printed}");
                }
                let _ = fs::remove_file(&path);
                let mut left = names(at);
                if !trap.is_empty() && !is_whole {
                    left.extend(old.map(|_| "out".to_owned()));
                    left.sort();
                    assert_eq!(left, before, "{limited}: {printed}");
                }
                for part in left.iter().filter(|name| name.ends_with(".part")) {
                    fs::remove_file(at.join(part)).expect("removed");
                }
            }
        }
    }
}

#[test]
fn a_dump_that_fails_leaves_the_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::write(at.join("x.hprof"), "earlier").expect("written");
    let args = ["dump", "no.such.Main", "-o", "x.hprof", "--force"];
    assert_eq!(tenure(at, &args).status.code(), Some(1));
    assert_eq!(names(at), ["x.hprof"]);
    assert_eq!(fs::read(at.join("x.hprof")).expect("it"), b"earlier");
}

#[test]
fn a_device_is_written_to_and_stays() {
    let folder = inputs();
    let report = "report heap.hprof -o /dev/null --format md --force";
    let ran = tenure(folder.path(), &report.split(' ').collect::<Vec<_>>());
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    // What is verified is read again, which a device does not allow.
    let redact = ["redact", "heap.hprof", "/dev/null", "--force"];
    let ran = tenure(folder.path(), &redact);
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{printed}");
    assert!(printed.contains("is not a regular file"), "{printed}");
    let kind = fs::metadata("/dev/null").expect("it").file_type();
    assert!(!kind.is_file());
}

#[test]
fn a_signal_leaves_no_part_of_an_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let mut command = Command::new(TENURE);
        command.args(["redact", "-", "out.hprof"]);
        command.current_dir(folder).stdin(Stdio::piped());
        let mut waiting = command.spawn().expect("running tenure");
        // It waits for its input, and the output has begun.
        testkit::until(|| match names(folder).len() {
            1 => Ok(()),
            _ => Err("no file".to_owned()),
        });
        let pid = waiting.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.expect("kill").success());
        let ended = testkit::wait::ended(&mut waiting);
        assert_eq!(ended.signal(), Some(number), "{signal}");
        assert_eq!(names(folder), [""; 0], "{signal}");
    }
    // What is sent to standard output is in a temporary file first.
    let mut command = Command::new(TENURE);
    command.args(["redact", "-", "-"]).env("TMPDIR", folder);
    let mut waiting = command.stdin(Stdio::piped()).spawn().expect("running");
    testkit::until(|| match names(folder).len() {
        0 => Err("no file"),
        _ => Ok(()),
    });
    let pid = waiting.id().to_string();
    let sent = Command::new("kill").args(["-s", "TERM", &pid]).status();
    assert!(sent.expect("kill").success());
    assert_eq!(testkit::wait::ended(&mut waiting).signal(), Some(15));
    assert_eq!(names(folder), [""; 0]);
    // A signal that is ignored stays so.
    let script = format!("trap '' HUP; exec {TENURE} redact - out.hprof");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder);
    command.stdin(Stdio::piped());
    let mut waiting = command.spawn().expect("a shell");
    testkit::until(|| match names(folder).len() {
        1 => Ok(()),
        _ => Err("no file".to_owned()),
    });
    let pid = waiting.id().to_string();
    let sent = Command::new("kill").args(["-s", "HUP", &pid]).status();
    assert!(sent.expect("kill").success());
    let mut input = waiting.stdin.take().expect("piped");
    input.write_all(&dump(1000)).expect("written");
    drop(input);
    assert_eq!(testkit::wait::ended(&mut waiting).code(), Some(0));
    assert_eq!(names(folder), ["out.hprof"]);
}

/// A program under `tenure run` that starts no JVM: the test connects in place of its agents.
struct Run {
    tenure: Child,
    /// The socket of profiles.
    socket: String,
}

impl Run {
    /// Starts `tenure run` with these words in a shell, with the temporary folder `tmp`.
    fn start(folder: &Path, limits: &str, words: &str) -> Run {
        fs::write(folder.join("libhprof.so"), "").expect("written");
        let program = "echo $JAVA_TOOL_OPTIONS; read line; exit 0";
        let script =
            format!("{limits}exec {TENURE} run --agent libhprof.so {words} -- sh -c '{program}'");
        let mut tenure = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder)
            .env("TMPDIR", folder.join("tmp"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("running tenure");
        let mut line = String::new();
        let printed = tenure.stdout.as_mut().expect("piped");
        BufReader::new(printed).read_line(&mut line).expect("text");
        let socket = line.trim().rsplit_once("net=unix:").expect(&line).1;
        let socket = socket.to_owned();
        Run { tenure, socket }
    }

    /// An agent, which sends the beginning of a profile; its file has the next number.
    fn agent(&self) -> UnixStream {
        let mut agent = UnixStream::connect(&self.socket).expect("connected");
        agent.write_all(&SENT.as_bytes()[..7]).expect("sent");
        agent
    }

    /// Ends the program after the agents, and returns the exit code and the messages.
    fn end(mut self, agents: Vec<UnixStream>) -> (Option<i32>, String) {
        for mut agent in agents {
            agent.write_all(&SENT.as_bytes()[7..]).expect("sent");
        }
        drop(self.tenure.stdin.take());
        let ran = self.tenure.wait_with_output().expect("ended");
        let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
        (ran.status.code(), printed)
    }
}

#[test]
fn a_recording_is_stored_even_if_its_output_cannot_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::create_dir(at.join("tmp")).expect("made");
    // Another process takes the name while the program runs.
    let run = Run::start(at, "", "-o out.html");
    fs::write(at.join("out.html"), "mine").expect("written");
    let agent = run.agent();
    let (code, printed) = run.end(vec![agent]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("wrote out-2.html ("), "{printed}");
    assert_eq!(fs::read(at.join("out.html")).expect("it"), b"mine");
    let page = fs::read_to_string(at.join("out-2.html")).expect("a page");
    assert!(page.starts_with("<!"), "{page}");
    // The second JVM takes the next free number.
    fs::write(at.join("b-2.hprof.txt"), "mine").expect("written");
    let run = Run::start(at, "", "-o b.hprof.txt");
    let agents = vec![run.agent(), run.agent()];
    let (code, printed) = run.end(agents);
    assert_eq!(code, Some(0), "{printed}");
    for (name, content) in [
        ("b.hprof.txt", SENT),
        ("b-2.hprof.txt", "mine"),
        ("b-3.hprof.txt", SENT),
    ] {
        let found = fs::read_to_string(at.join(name)).expect(name);
        assert_eq!(found, content, "{name}: {printed}");
    }
    // The disk is full before the page is written: what the agent sent is shorter.
    let run = Run::start(at, "trap '' XFSZ; ulimit -f 4; ", "-o full.html");
    let agent = run.agent();
    let (code, printed) = run.end(vec![agent]);
    assert_eq!(code, Some(3), "{printed}");
    let expected = "full.html is not written; full.html.hprof.txt is: cannot write full.html";
    assert!(printed.contains(expected), "{printed}");
    let kept = fs::read_to_string(at.join("full.html.hprof.txt")).expect("it");
    assert_eq!(kept, SENT);
    // The folder is gone: the temporary folder has what the agent sent.
    for (output, kept) in [
        ("gone/page.html", "page.html.hprof.txt"),
        ("gone/run.hprof.txt", "run.hprof.txt"),
    ] {
        fs::create_dir(at.join("gone")).expect("made");
        let run = Run::start(at, "", &format!("-o {output}"));
        fs::remove_dir(at.join("gone")).expect("removed");
        let agent = run.agent();
        let (code, printed) = run.end(vec![agent]);
        assert_eq!(code, Some(3), "{printed}");
        assert!(
            printed.contains(&format!("{output} is not written")),
            "{printed}"
        );
        let found = fs::read_to_string(at.join("tmp").join(kept)).expect(&printed);
        assert_eq!(found, SENT);
    }
    let parts = names(at).into_iter().filter(|name| name.ends_with(".part"));
    assert_eq!(parts.count(), 0);
}
