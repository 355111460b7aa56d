//! `tenure dump --frozen` and `--core` as commands.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use testkit::jvm;

/// A program that says `ready`, and a line for each byte of its input.
const SOURCE: &str = r#"
import java.util.ArrayList;
import java.util.List;

public class Resting {
    static final List<byte[]> kept = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 1000; i++) {
            kept.add(new byte[4000 + i]);
        }
        System.out.println("ready");
        for (int next = System.in.read(); next >= 0; next = System.in.read()) {
            System.out.println("alive");
        }
    }
}
"#;

struct Resting {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: tempfile::TempDir,
}

impl Resting {
    fn start(flags: &[&str]) -> Option<Resting> {
        let found = jvm::tested().pop().zip(jvm::newest_compiler());
        let Some((jdk, compiler)) = found else {
            testkit::skip("a resting program", testkit::Need::Jdk, jvm::NO_JDK);
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("Resting.java");
        fs::write(&source, SOURCE).expect("written");
        compiler
            .compile(&source, 8, folder.path())
            .expect("compiled");
        let mut command = Command::new(jdk.tool("java"));
        command
            .args(flags)
            .arg("-cp")
            .arg(folder.path())
            .arg("Resting");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a JVM");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut resting = Resting {
            child,
            input,
            output,
            folder,
        };
        assert_eq!(resting.line(), "ready");
        Some(resting)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn is_alive(&mut self) {
        self.input.write_all(b"x").expect("written");
        self.input.flush().expect("flushed");
        assert_eq!(self.line(), "alive");
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Exit code, standard output and standard error.
fn tenure(folder: &Path, args: &[&str]) -> (Option<i32>, Vec<u8>, String) {
    let ran = Command::new(testkit::built::tenure())
        .args(args)
        .current_dir(folder)
        .output();
    let ran = ran.expect("tenure");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    (ran.status.code(), ran.stdout, said)
}

#[test]
fn a_frozen_program_is_dumped_to_a_file_and_to_standard_output() {
    let Some(mut resting) = Resting::start(&[]) else {
        return;
    };
    let (pid, folder) = (resting.pid(), resting.folder.path().to_owned());
    let args = ["dump", &pid, "--frozen", "-o", "rest.hprof"];
    let (code, _, said) = tenure(&folder, &args);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("was stopped for"), "{said}");
    assert!(said.contains("local variables are conservative"), "{said}");
    let path = folder.join("rest.hprof");
    let mode = fs::metadata(&path).expect("a dump").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    resting.is_alive();
    let (code, stdout, said) = tenure(&folder, &["histogram", "rest.hprof", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let rows: serde_json::Value = serde_json::from_slice(&stdout).expect("JSON");
    assert_eq!(rows["damaged"], false);
    let rows = rows["rows"].as_array().expect("rows");
    let bytes = rows.iter().find(|row| row["class"] == "byte[]");
    let bytes = bytes.expect("a row of arrays");
    assert!(bytes["objects"].as_u64() > Some(1000), "{bytes}");
    assert!(bytes["shallow"].as_u64() > Some(4_400_000), "{bytes}");
    let (code, _, said) = tenure(&folder, &args);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("exists (--force overwrites)"), "{said}");
    let (code, stdout, said) = tenure(&folder, &["dump", "Resting", "--frozen", "-o", "-"]);
    assert_eq!(code, Some(0), "{said}");
    // Nothing was allocated since; the number of the conservative roots may differ by a few.
    let len = fs::metadata(&path).expect("a dump").len();
    assert!(
        stdout.len().abs_diff(len as usize) < 1 << 20,
        "{len} {}",
        stdout.len()
    );
    assert!(stdout.starts_with(b"JAVA PROFILE 1.0.2\0"));
}

#[test]
fn a_program_continues_when_the_command_that_stopped_it_is_killed() {
    let Some(mut resting) = Resting::start(&[]) else {
        return;
    };
    let mut command = Command::new(testkit::built::tenure());
    command.args(["dump", &resting.pid(), "--frozen", "-o", "-"]);
    let mut dumping = command.stdout(Stdio::piped()).spawn().expect("tenure");
    // Some of the dump has come, so the program is stopped; the rest is not read.
    let mut first = [0; 4096];
    let stdout = dumping.stdout.as_mut().expect("its output");
    stdout
        .read_exact(&mut first)
        .expect("the beginning of a dump");
    let status = fs::read_to_string(format!("/proc/{}/status", resting.pid())).expect("a process");
    assert!(status.contains("t (tracing stop)"), "{status}");
    dumping.kill().expect("killed");
    dumping.wait().expect("ended");
    resting.is_alive();
}

#[test]
fn what_cannot_be_dumped_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("core"), b"what").expect("written");
    let check = |args: &[&str], code, sentence: &str| {
        let (found, _, said) = tenure(folder, args);
        assert_eq!(found, Some(code), "{args:?}: {said}");
        assert!(said.contains(sentence), "{args:?}: {said}");
        let left = fs::read_dir(folder).expect("a folder").count();
        assert_eq!(left, 1, "{args:?} left a file");
    };
    check(&["dump", "--core", "core", "-o", "x"], 3, "is no ELF core");
    check(
        &["dump", "--core", "none", "-o", "x"],
        3,
        "cannot open none",
    );
    check(
        &["dump", "--core", "core", "-o", "core", "--force"],
        2,
        "is the input",
    );
    check(&["dump", "1", "--libjvm", "x", "-o", "x"], 2, "--core");
    check(&["dump", "1", "--frozen", "--all", "-o", "x"], 2, "--all");
    check(&["dump", "-o", "x"], 2, "PID|MAIN");
    check(&["dump", "1", "-o", "-"], 2, "only --frozen and --core");
    check(
        &["dump", "no.such.Main", "--frozen", "-o", "x"],
        1,
        "no JVM runs",
    );
}
