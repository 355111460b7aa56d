//! Who talks to the agent from outside: `tenure listen`, `tenure dump`, `tenure attach`. A program
//! that waits for lines makes each step certain.

mod common;

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::jvm::Jdk;

/// How long a thing may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is talked to; killed when dropped.
struct Talk {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Talk {
    fn start(mut command: Command) -> Talk {
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

    fn type_line(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("typed");
    }

    fn expect(&mut self, line: &str) {
        let said = self.output.next().expect("a line").expect("text");
        assert_eq!(said, line);
    }

    fn stderr(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.child.stderr.take().expect("a pipe"))
    }

    fn code(&mut self) -> Option<i32> {
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
fn wait_for(path: &Path, what: &str, done: impl Fn(&str) -> bool) -> String {
    let start = Instant::now();
    loop {
        let bytes = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if done(&text) {
            return text;
        }
        assert!(start.elapsed() < PATIENCE, "no {what} in\n{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

struct Stage {
    folder: tempfile::TempDir,
    classes: tempfile::TempDir,
    tenure: PathBuf,
}

impl Stage {
    fn listen(&self) -> (Talk, u16) {
        let mut command = Command::new(&self.tenure);
        command
            .args(["listen", "0", "-o", "got"])
            .current_dir(self.folder.path());
        let mut listener = Talk::start(command);
        let mut said = listener.stderr();
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        let port = line.trim().rsplit(':').next().and_then(|p| p.parse().ok());
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || said.lines().count());
        (listener, port.expect("a port"))
    }

    fn patient(&self, jdk: &Jdk, agent: Option<(&Path, &str)>) -> Talk {
        let mut java = Command::new(jdk.tool("java"));
        java.current_dir(self.folder.path())
            .env_remove("_JAVA_HPROF_OPTIONS");
        if let Some((library, options)) = agent {
            java.arg(format!("-agentpath:{}={options}", library.display()));
        }
        java.arg("-XX:+IgnoreUnrecognizedVMOptions")
            .arg("-XX:+EnableDynamicAgentLoading");
        if jdk.version >= 9 {
            java.arg("--add-opens=java.base/java.lang=ALL-UNNAMED");
        }
        java.arg("-cp").arg(self.classes.path()).arg("Patient");
        let mut program = Talk::start(java);
        program.expect("ready");
        program
    }

    fn got(&self) -> PathBuf {
        self.folder.path().join("got")
    }

    /// Attaches the agent to a program; the profile.
    fn attach(&self, lab: &common::Lab, pid: &str, profile: &str) -> PathBuf {
        let library = lab.agent.to_string_lossy();
        let file = self.folder.path().join("attached.txt");
        let profile = format!("{profile},file={}", file.display());
        let attached = self.run(&["attach", pid, "--agent", &library, "--profile", &profile]);
        let said = String::from_utf8_lossy(&attached.stderr).into_owned();
        assert_eq!(attached.status.code(), Some(0), "{said}");
        file
    }

    fn run(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new(&self.tenure);
        command.args(arguments).current_dir(self.folder.path());
        command.output().expect("ran")
    }
}

fn stage(lab: &common::Lab) -> Option<Stage> {
    Some(Stage {
        folder: tempfile::tempdir().expect("temporary folder"),
        classes: lab.compile("Patient.java", 8)?,
        tenure: common::tenure().to_path_buf(),
    })
}

/// Live and allocated objects of the last sites table, by the method that made them.
fn objects_of(text: &str, class: &str) -> Option<(u64, u64)> {
    let table = text.rsplit("SITES BEGIN").next()?;
    let rows = table.lines().filter(|line| line.ends_with(class));
    let rows = rows.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = rows.filter_map(|f| Some((f.get(4)?.parse().ok()?, f.get(6)?.parse().ok()?)));
    rows.reduce(|a: (u64, u64), b| (a.0 + b.0, a.1 + b.1))
}

/// Samples of the last table whose traces have a frame that begins so.
fn samples_under(text: &str, frame: &str) -> u64 {
    let table = text.rsplit("CPU SAMPLES BEGIN").next().unwrap_or_default();
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

/// The frames of a trace.
fn frames_of<'a>(text: &'a str, trace: &str) -> Vec<&'a str> {
    let head = format!("TRACE {trace}:");
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with(&head))
        .skip(1);
    std::iter::from_fn(|| lines.next()?.strip_prefix('\t')).collect()
}

/// A field of the START line of a thread: `obj=` or `id = `.
fn thread_field<'a>(text: &'a str, name: &str, field: &str) -> Option<&'a str> {
    let name = format!("name=\"{name}\"");
    let line = text
        .lines()
        .find(|line| line.starts_with("THREAD START") && line.contains(&name))?;
    line.split(field).nth(1)?.split([',', ')']).next()
}

#[test]
fn threads_are_sampled_as_a_listener_orders() {
    let Some(lab) = common::lab() else { return };
    for jdk in lab.some_jdks() {
        // Samples at safepoints, which nobody asked for at the start, and by timers.
        for options in ["heap=sites", "heap=sites,cpu=samples,interval=1"] {
            let Some(stage) = stage(lab) else { continue };
            let (mut listener, port) = stage.listen();
            let options = format!("{options},depth=8,net=127.0.0.1:{port}");
            let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
            program.type_line("twins");
            program.expect("done twins");
            let got = stage.got();
            let is_known = |text: &str| thread_field(text, "right", "id = ").is_some();
            let text = wait_for(&got, "threads", is_known);
            let left = thread_field(&text, "left", "id = ")
                .expect("an id")
                .to_owned();
            let right = thread_field(&text, "right", "obj=")
                .expect("an object")
                .to_owned();
            let mut tables = 0;
            let mut check = |orders: &[&str], expected: [bool; 2]| {
                for order in orders {
                    listener.type_line(order);
                }
                // The answer says that the orders have been carried out.
                listener.type_line("clear samples");
                listener.type_line("samples");
                tables += 1;
                let is_done = |n| move |text: &str| text.matches("CPU SAMPLES END").count() == n;
                wait_for(&got, "samples", is_done(tables));
                program.type_line("both");
                program.expect("done both");
                listener.type_line("samples");
                tables += 1;
                let text = wait_for(&got, "samples", is_done(tables));
                let found =
                    ["Patient.left(", "Patient.right("].map(|frame| samples_under(&text, frame));
                assert_eq!(
                    found.map(|count| count > 0),
                    expected,
                    "{orders:?} {options} {found:?}"
                );
            };
            check(&["sampling on"], [true, true]);
            check(&[&format!("sampling off {left}")], [false, true]);
            check(&["sampling off"], [false, false]);
            check(&[&format!("sampling on 0x{right}")], [false, true]);
            check(&[&format!("sampling on {left}")], [true, true]);
            check(&[&format!("sampling off 0x{right}")], [true, false]);
            check(&["sampling off", "sampling on 299999"], [false, false]);
            let text = std::fs::read_to_string(&got).expect("text");
            assert!(text.contains("NOTE: a control command names no thread: 299999"));
            program.type_line("end");
            assert_eq!(program.code(), Some(3));
        }
    }
}

#[test]
fn stacks_are_as_deep_as_a_listener_orders() {
    let Some(lab) = common::lab() else { return };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let (mut listener, port) = stage.listen();
        let options = format!("heap=sites,cpu=times,cutoff=0,depth=2,net=127.0.0.1:{port}");
        let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
        let got = stage.got();
        for (tables, depth) in [(1, 2), (2, 12), (3, 1), (4, 30), (5, 3)] {
            if tables > 1 {
                listener.type_line(&format!("depth {depth}"));
            }
            listener.type_line("sites 0");
            let is_done = |n| move |text: &str| text.matches("SITES END").count() == n;
            wait_for(&got, "sites", is_done(2 * tables - 1));
            program.type_line("deep");
            program.expect("done deep");
            listener.type_line("sites 0");
            let text = wait_for(&got, "sites", is_done(2 * tables));
            let table = text.rsplit("SITES BEGIN").next().unwrap_or_default();
            let rows = table.lines().filter(|line| line.ends_with(" Patient$Deep"));
            let traces = rows.filter_map(|row| row.split_whitespace().nth(7));
            // The constructor, 21 calls of deep, and main.
            let depths: Vec<usize> = traces.map(|trace| frames_of(&text, trace).len()).collect();
            assert!(depths.contains(&depth.min(23)), "{depth}: {depths:?}");
            assert_eq!(depths.len(), tables, "one more site for each depth");
        }
        program.type_line("end");
        assert_eq!(program.code(), Some(3));
        let text = wait_for(&got, "times", |text| text.contains("CPU TIME (ms) END"));
        let of_deep = text.lines().filter(|line| line.ends_with(" Patient.deep"));
        let traces = of_deep.filter_map(|row| row.split_whitespace().nth(4));
        let deepest = traces.map(|trace| frames_of(&text, trace).len()).max();
        // main was open before the order, and knows no more than it did then.
        assert!((20..=30).contains(&deepest.unwrap_or(0)), "{deepest:?}");
    }
}

#[test]
fn a_listener_gets_what_it_asks_for_when_it_asks() {
    let Some(lab) = common::lab() else { return };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let (mut listener, port) = stage.listen();
        let options = format!("heap=all,cpu=samples,interval=2,net=127.0.0.1:{port}");
        let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
        let got = stage.got();
        let sites = |n: usize| move |text: &str| text.matches("SITES END").count() == n;

        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(1));
        assert_eq!(objects_of(&text, " Patient$Early"), Some((1000, 1000)));
        // The agent stops counting and goes on.
        listener.type_line("alloc off");
        listener.type_line("traces");
        listener.type_line("sites");
        wait_for(&got, "sites", sites(2));
        program.type_line("late");
        program.expect("done late");
        listener.type_line("alloc on");
        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(3));
        assert_eq!(
            objects_of(&text, " Patient$Late"),
            None,
            "they were not to be counted"
        );
        // From here on with traces of one frame.
        listener.type_line("depth 1");
        listener.type_line("sites");
        wait_for(&got, "sites", sites(4));
        program.type_line("late");
        program.expect("done late");
        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(5));
        assert_eq!(objects_of(&text, " Patient$Late").map(|o| o.1), Some(500));
        // What is garbage goes when it is told to.
        program.type_line("forget");
        program.expect("done forget");
        listener.type_line("gc");
        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(6));
        assert_eq!(objects_of(&text, " Patient$Early"), Some((0, 1000)));
        listener.type_line("clear sites");
        listener.type_line("allocated");
        let text = wait_for(&got, "sites", sites(7));
        let left = objects_of(&text, " Patient$Early").unwrap_or_default();
        assert_eq!(left, (0, 0), "cleared");
        // It counts from there on, and what was made before dies without being counted.
        program.type_line("late");
        program.expect("done late");
        listener.type_line("gc");
        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(8));
        assert_eq!(objects_of(&text, " Patient$Late"), Some((500, 500)));
        program.type_line("forget");
        program.expect("done forget");
        listener.type_line("gc");
        listener.type_line("allocated");
        let text = wait_for(&got, "sites", sites(9));
        assert_eq!(objects_of(&text, " Patient$Late"), Some((0, 500)));
        // Samples, on command.
        program.type_line("spin");
        program.expect("done spin");
        listener.type_line("samples");
        let text = wait_for(&got, "samples", |text| text.contains("CPU SAMPLES END"));
        assert!(text.contains("Patient.spin"), "{text}");
        listener.type_line("clear samples");
        listener.type_line("dump");
        wait_for(&got, "a dump", |text| text.contains("HEAP DUMP END"));
        listener.type_line("end");
        listener.type_line("exit");
        program.type_line("end");
        program.expect("kept 0");
        assert_eq!(program.code(), Some(3), "no command after the end is heard");
        assert_eq!(listener.code(), Some(0));
        let text = wait_for(&got, "the last dump", |text| {
            text.contains("CPU SAMPLES END")
        });
        assert_eq!(
            text.matches("HEAP DUMP END").count(),
            2,
            "on command and at the end"
        );
    }
}

#[test]
fn a_binary_stream_is_a_dump_that_validates() {
    let Some(lab) = common::lab() else { return };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let (mut listener, port) = stage.listen();
        let options = format!("heap=all,format=b,net=127.0.0.1:{port}");
        let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
        for command in ["summary", "sites", "gc", "traces", "dump", "summary"] {
            listener.type_line(command);
        }
        let count = |tag: u8| {
            let bytes = std::fs::read(stage.got()).unwrap_or_default();
            let map = hprof::map_file(&bytes, |_| {}).ok();
            let counts = map.map(|map| map.records).unwrap_or_default();
            counts
                .iter()
                .find(|row| row.0 == tag)
                .map_or(0, |row| row.1)
        };
        // HEAP SUMMARY twice, the second behind the dump.
        wait_for(&stage.got(), "two summaries", |_| count(0x07) == 2);
        program.type_line("late");
        program.expect("done late");
        program.type_line("end");
        program.expect("kept 1500");
        assert_eq!(program.code(), Some(3));
        assert_eq!(listener.code(), Some(0));
        let validated = stage.run(&["validate", "got"]);
        let said = String::from_utf8_lossy(&validated.stdout).into_owned();
        assert_eq!(validated.status.code(), Some(0), "{said}");
    }
}

#[test]
fn an_order_to_exit_ends_the_program() {
    let Some(lab) = common::lab() else { return };
    let Some(jdk) = lab.jdks.last() else { return };
    let Some(stage) = stage(lab) else { return };
    let (mut listener, port) = stage.listen();
    let options = format!("heap=sites,net=127.0.0.1:{port}");
    let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
    listener.type_line("exit");
    assert_eq!(program.code(), Some(0));
    assert_eq!(listener.code(), Some(0));
    let said = std::io::read_to_string(program.stderr()).expect("text");
    assert_eq!(said, "HPROF: received exit event, exiting ...\n");
}

#[test]
fn a_lost_listener_costs_the_program_nothing() {
    let Some(lab) = common::lab() else { return };
    for jdk in lab.some_jdks() {
        for mode in [
            "heap=all,format=b",
            "cpu=times",
            "cpu=samples,interval=1",
            "monitor=y",
        ] {
            let Some(stage) = stage(lab) else { continue };
            let (mut listener, port) = stage.listen();
            let options = format!("{mode},net=127.0.0.1:{port}");
            let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
            listener.child.kill().expect("killed");
            drop(listener.child.wait());
            for line in ["late", "spin"] {
                program.type_line(line);
                program.expect(&format!("done {line}"));
            }
            program.type_line("end");
            program.expect("kept 1500");
            assert_eq!(program.code(), Some(3), "{mode} on {}", jdk.full_version);
        }
    }
}

#[test]
fn a_peer_that_stops_reading_is_given_up() {
    let Some(lab) = common::lab() else { return };
    for jdk in lab.some_jdks() {
        for mode in ["heap=all,format=b", "cpu=times,monitor=y"] {
            let Some(stage) = stage(lab) else { continue };
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("bound").port();
            let peer = std::thread::spawn(move || listener.accept().expect("the agent").0);
            let options = format!("{mode},net=127.0.0.1:{port}");
            let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
            let mut peer = peer.join().expect("accepted");
            for line in ["late", "twins", "both"] {
                program.type_line(line);
                program.expect(&format!("done {line}"));
            }
            let began = Instant::now();
            // Dumps that nobody takes, then the end.
            for _ in 0..6 {
                peer.write_all(&[2, 0, 0, 0, 0, 0, 0, 0, 0]).expect("sent");
            }
            program.type_line("end");
            program.expect("kept 1500");
            let what = format!("{mode} on {}", jdk.full_version);
            assert_eq!(program.code(), Some(3), "{what}");
            let took = began.elapsed();
            assert!(took < PATIENCE / 2, "{what}: {took:?}");
            let said = std::io::read_to_string(program.stderr()).expect("text");
            let lost = "HPROF ERROR: the output is lost: the peer does not read; ";
            assert!(said.contains(lost), "{what}: {said}");
        }
    }
}

#[test]
fn a_running_program_is_dumped_and_profiled_from_outside() {
    let Some(lab) = common::lab() else { return };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let mut program = stage.patient(jdk, None);
        let pid = program.child.id().to_string();
        let dumped = stage.run(&["dump", &pid, "-o", "heap.hprof"]);
        let said = String::from_utf8_lossy(&dumped.stderr).into_owned();
        assert_eq!(dumped.status.code(), Some(0), "{said}");
        let counted = stage.run(&["histogram", "heap.hprof", "--json", "--all"]);
        let rows = String::from_utf8_lossy(&counted.stdout).into_owned();
        let early = rows.split("Patient$Early").nth(1).unwrap_or_default();
        assert!(
            early
                .split('}')
                .next()
                .is_some_and(|row| row.contains("1000")),
            "{early}"
        );

        let file = stage.attach(lab, &pid, "heap=sites,cutoff=0");
        program.type_line("counting");
        program.expect("done counting");
        program.type_line("late");
        program.expect("done late");
        program.type_line("end");
        program.expect("kept 1500");
        assert_eq!(program.code(), Some(3));
        let text = std::fs::read_to_string(&file).expect("a profile");
        assert_eq!(objects_of(&text, " Patient$Late"), Some((500, 500)));
        assert_eq!(
            objects_of(&text, " Patient$Early"),
            None,
            "they were there before"
        );
    }
}

#[test]
fn a_running_program_is_sampled_after_an_attach() {
    let Some(lab) = common::lab() else { return };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let mut program = stage.patient(jdk, None);
        // Threads that run already and one that is still to come are both seen.
        program.type_line("twins");
        program.expect("done twins");
        let pid = program.child.id().to_string();
        let file = stage.attach(lab, &pid, "cpu=samples,interval=1,cutoff=0,thread=y");
        // Several rounds: on a loaded machine they get little CPU time in each.
        for line in ["both", "spin"].repeat(4) {
            program.type_line(line);
            program.expect(&format!("done {line}"));
        }
        program.type_line("end");
        program.expect("kept 1000");
        assert_eq!(program.code(), Some(3));
        let text = std::fs::read_to_string(&file).expect("a profile");
        for method in ["left", "right", "spin"] {
            let samples = samples_under(&text, &format!("Patient.{method}("));
            assert!(samples > 0, "{method}\n{text}");
        }
    }
}
