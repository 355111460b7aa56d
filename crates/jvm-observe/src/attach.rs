//! HotSpot's attach mechanism: a socket in the JVM's temporary folder, which the JVM opens on request.

use crate::error::{Context, Result, refuse};
use crate::files::JvmFiles;
use crate::jvm::Jvm;
use crate::process;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a JVM may take to open its socket; one that is starting or collecting garbage is slow. If the JVM handles
/// the signal only after that time, it prints a thread dump.
const PATIENCE: Duration = Duration::from_secs(60);
/// The name of the socket that receives an answer of the agent.
const REPLY: &str = "reply";
/// How long a command may take, such as a heap dump of many gigabytes.
const ANSWER: Duration = Duration::from_secs(3600);
/// The most bytes of an answer; a histogram of a million classes is shorter.
const MOST_ANSWER: u64 = 256 << 20;

/// Sends one command and returns the JVM's answer.
///
/// # Errors
/// The JVM opens no attach socket, does not answer, or refuses.
pub fn command(jvm: &Jvm, name: &str, arguments: [&str; 3]) -> Result<String> {
    let inside = JvmFiles::of(jvm)?;
    let mut stream = inside.as_owner(|| connect(jvm, &inside))?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(&request(name, arguments))?;
    let mut answer = Vec::new();
    (&mut stream)
        .take(MOST_ANSWER)
        .read_to_end(&mut answer)
        .context("the JVM did not answer")?;
    read_answer(&String::from_utf8_lossy(&answer))
}

/// Protocol version, command and three arguments, each ended by NUL.
fn request(name: &str, arguments: [&str; 3]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in ["1", name].into_iter().chain(arguments) {
        bytes.extend_from_slice(part.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Returns the text after a first line of `0`; any other first line is a refusal.
fn read_answer(answer: &str) -> Result<String> {
    let (code, text) = answer.split_once('\n').unwrap_or((answer, ""));
    match code.trim() {
        "0" => Ok(text.to_owned()),
        "" => refuse!("the JVM closed the connection without an answer"),
        code => refuse!("the JVM refused ({code}): {}", text.trim()),
    }
}

fn connect(jvm: &Jvm, inside: &JvmFiles) -> Result<UnixStream> {
    // If two threads requested the socket at once, the second signal would print a thread dump in the program's output.
    static ASKING: Mutex<()> = Mutex::new(());
    let socket = format!(".java_pid{}", jvm.inner_pid);
    let _one = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stream) = inside.connect(&socket)? {
        return Ok(stream);
    }
    // The JVM opens the socket on SIGQUIT if a file `.attach_pidN` exists. Without the file, the signal would print a
    // thread dump, so the file is created first.
    wait_for_handler(jvm)?;
    let command_line = fs::read(process::folder(jvm.pid).join("cmdline"));
    if command_line.is_ok_and(|words| refuses_to_attach(&words)) {
        refuse!("process {} was started with {NO_ATTACH}", jvm.pid);
    }
    let trigger = format!(".attach_pid{}", jvm.inner_pid);
    inside.with_trigger(&trigger, || wait_for(jvm, inside, &socket))
}

/// The option with which a JVM opens no attach socket.
const NO_ATTACH: &str = "-XX:+DisableAttachMechanism";

/// Whether a JVM with this command line opens no attach socket: it prints a thread dump on SIGQUIT in any case.
fn refuses_to_attach(command_line: &[u8]) -> bool {
    let mut words = command_line.rsplit(|byte| *byte == 0);
    let last = words.find(|word| word.ends_with(b"DisableAttachMechanism"));
    last.is_some_and(|word| word == NO_ATTACH.as_bytes())
}

/// True if the process has a handler for SIGQUIT: without one, the signal would end it. A JVM that is starting has none
/// yet, and one with `-Xrs` never gets one.
fn catches_quit(status: &str) -> bool {
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal n is bit n - 1.
    caught.is_some_and(|mask| mask & (1 << 2) != 0)
}

/// Refuses a process that was stopped by a signal or a debugger: it takes no signal and answers nothing.
fn refuse_stopped(jvm: &Jvm) -> Result<()> {
    let status = fs::read_to_string(format!("/proc/{}/status", jvm.pid));
    let status = status.with_context(|| format!("process {} has ended", jvm.pid))?;
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    if state.is_some_and(|state| state.trim_start().starts_with(['T', 't'])) {
        refuse!(
            "process {0} is stopped and does not answer (kill -CONT {0} continues it; tenure dump {0} --frozen reads its heap \
             as it is)",
            jvm.pid
        );
    }
    Ok(())
}

/// Whether a JVM with these threads has started. Before that, it already handles the signal, but for a moment its
/// working folder is another one, in which it does not find the request, and it prints a thread dump; `Service Thread`
/// is started after that. JDK 8 does not name its threads, but has seven or more by then.
fn has_started(threads: &[String]) -> bool {
    const UNNAMED: usize = 7;
    let are_named = threads.iter().any(|thread| *thread != threads[0]);
    match are_named {
        true => threads.iter().any(|thread| thread == "Service Thread"),
        false => threads.len() >= UNNAMED,
    }
}

/// Names of a process's threads, as far as they can be read.
fn thread_names(jvm: &Jvm) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", jvm.pid));
    let names = tasks.into_iter().flatten().flatten();
    names
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect()
}

fn wait_for_handler(jvm: &Jvm) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let status = fs::read_to_string(format!("/proc/{}/status", jvm.pid));
        let status = status.with_context(|| format!("process {} has ended", jvm.pid))?;
        if catches_quit(&status) && has_started(&thread_names(jvm)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    refuse!(
        "process {} does not take the signal that requests its attach socket (started with -Xrs?)",
        jvm.pid
    )
}

fn wait_for(jvm: &Jvm, inside: &JvmFiles, socket: &str) -> Result<UnixStream> {
    let pid = i32::try_from(jvm.pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let pid = pid.context("not a process id")?;
    rustix::process::kill_process(pid, rustix::process::Signal::QUIT)
        .with_context(|| format!("cannot signal process {}", jvm.pid))?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        refuse_stopped(jvm)?;
        if let Some(stream) = inside.connect(socket)? {
            return Ok(stream);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    refuse!(
        "process {} did not open its attach socket (started with {NO_ATTACH}?)",
        jvm.pid
    )
}

/// Makes the JVM write a heap dump to a new file of this process.
///
/// # Errors
/// The JVM writes none, or the file exists.
pub fn dump(jvm: &Jvm, path: &Path, live_only: bool) -> Result<()> {
    const NAME: &str = "heap.hprof";
    let which = if live_only { "-live" } else { "-all" };
    refuse_stopped(jvm)?;
    // A file that is there is not this dump, and must not be removed as one that failed.
    if fs::symlink_metadata(path).is_ok() {
        refuse!("{} exists", path.display());
    }
    if !jvm.has_own_files() {
        let inside = path.to_str().context("the path is not UTF-8")?;
        let answer = command(jvm, "dumpheap", [inside, which, ""])?;
        if !path.is_file() {
            refuse!("no dump was written: {}", answer.trim());
        }
        return completed(&answer).inspect_err(|_| drop(fs::remove_file(path)));
    }
    let mut folder = JvmFiles::of(jvm)?.private_folder()?;
    let inside = folder.file(NAME);
    let answer = command(jvm, "dumpheap", [&inside, which, ""])?;
    let written = folder.open(NAME);
    let mut written = written.with_context(|| format!("no dump was written: {}", answer.trim()))?;
    completed(&answer)?;
    let mut new = fs::OpenOptions::new();
    let file = new.write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| std::io::copy(&mut written, &mut file))
        .with_context(|| path.display().to_string())?;
    Ok(())
}

/// Fails unless the JVM reports that it wrote the whole dump: a file may also be there if the disk was full.
fn completed(answer: &str) -> Result<()> {
    // JDK 8 to 25.
    if answer.contains("Heap dump file created") {
        return Ok(());
    }
    // Lines before the last name the file that the JVM writes for this command, which is removed.
    let why = answer.trim().lines().next_back().unwrap_or_default();
    refuse!("the JVM did not complete the dump: {why}")
}

/// Whether the JVM opened its socket before it could load agents, which happens on a busy machine from JDK 21 on.
fn is_too_early(answer: &Result<String>) -> bool {
    let text = answer
        .as_ref()
        .map_or_else(ToString::to_string, String::clone);
    text.contains("only permitted in the live phase")
}

/// Loads an agent library, or sends a command to the one that is already loaded: options, `stop`, `dump` or `status`.
/// Returns its answer. The path is in the JVM's file system.
///
/// # Errors
/// The JVM cannot load it, or the agent refuses.
pub fn order(jvm: &Jvm, library: &str, text: &str) -> Result<String> {
    let inside = JvmFiles::of(jvm)?;
    let mut folder = inside.private_folder()?;
    let listener = folder.listen(&inside, REPLY)?;
    listener.set_nonblocking(true)?;
    let text = format!("reply={}/{REPLY},{text}", folder.path);
    let start = Instant::now();
    let answer = loop {
        let answer = command(jvm, "load", [library, "true", &text]);
        if !is_too_early(&answer) || start.elapsed() > PATIENCE {
            break answer;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    // The agent answers before the JVM does, unless it was not loaded.
    if let Ok((stream, _)) = listener.accept() {
        inside.check(&stream)?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(ANSWER))?;
        let mut printed = String::new();
        stream.take(MOST_ANSWER).read_to_string(&mut printed)?;
        return match printed.split_once(' ') {
            Some(("0", printed)) => Ok(printed.to_owned()),
            Some((_, fault)) => refuse!("{fault}"),
            None => refuse!("the agent gave no answer"),
        };
    }
    // JDK 8 answers `0`, later ones `return code: 0`; for a missing library, the answer is a sentence.
    let answer = answer?;
    if jvm.agent.is_some() {
        refuse!("another version of the agent is loaded, and stays until the program ends");
    }
    let code = answer.trim();
    let code = code.strip_prefix("return code: ").unwrap_or(code);
    refuse!("the JVM could not load the agent: {code}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jvm_that_starts_is_not_asked_yet() {
        let check = |threads: &[&str], expected| {
            let threads: Vec<String> = threads.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(has_started(&threads), expected, "{threads:?}");
        };
        check(&["java", "VM Thread", "Signal Dispatch"], false);
        check(
            &["java", "VM Thread", "Signal Dispatch", "Service Thread"],
            true,
        );
        check(&["java"], false);
        check(&["java", "java"], false);
        check(&["java"; 9], true);
    }

    #[test]
    fn a_jvm_without_the_attach_mechanism_gets_no_signal() {
        let command_line = |options: &[&str]| [&["java"], options, &["Main"]].concat().join("\0");
        let check = |options: &[&str], expected| {
            let words = command_line(options);
            assert_eq!(refuses_to_attach(words.as_bytes()), expected, "{options:?}");
        };
        check(&[], false);
        check(&[NO_ATTACH], true);
        check(&[NO_ATTACH, "-XX:-DisableAttachMechanism"], false);
    }

    #[test]
    fn a_dump_is_complete_if_the_jvm_says_so() {
        for whole in ["Heap dump file created", "Heap dump file created [7 bytes]"] {
            assert!(completed(whole).is_ok(), "{whole}");
        }
        let full = "Dump file is incomplete: No space left on device";
        let answer = format!("Dumping heap to /tmp/.tenure-1/dump ...\n{full}\n");
        let error = completed(&answer).expect_err("it is incomplete");
        assert!(error.to_string().ends_with(full), "{error}");
        assert!(!error.to_string().contains("/tmp"), "{error}");
    }

    #[test]
    fn a_dump_replaces_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("heap.hprof");
        fs::write(&path, "mine").expect("written");
        let jvm = Jvm {
            pid: std::process::id(),
            inner_pid: std::process::id(),
            main: String::new(),
            user: (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
            agent: None,
        };
        let error = dump(&jvm, &path, true).expect_err("it exists");
        assert!(error.to_string().ends_with("heap.hprof exists"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("there"), "mine");
    }

    #[test]
    fn a_request_is_five_strings() {
        assert_eq!(
            request("load", ["/a", "true", "x=y"]),
            b"1\0load\0/a\0true\0x=y\0"
        );
    }

    #[test]
    fn a_process_without_a_handler_gets_no_signal() {
        assert!(catches_quit("Name:\tjava\nSigCgt:\t2000000181005ccf\n"));
        assert!(!catches_quit("SigCgt:\t0000000000000000\n"));
        assert!(!catches_quit("SigCgt:\t0000000000000003\n"));
        assert!(!catches_quit(""));
    }

    #[test]
    fn a_jvm_that_starts_is_asked_again() {
        let printed = "Dynamic agent loading is only permitted in the live phase\n";
        assert!(is_too_early(&read_answer(&format!("0\n{printed}"))));
        assert!(is_too_early(&read_answer(&format!("100\n{printed}"))));
        assert!(!is_too_early(&read_answer("0\nreturn code: 0\n")));
        assert!(!is_too_early(&read_answer("")));
    }

    #[test]
    fn an_answer_begins_with_its_code() {
        assert_eq!(
            read_answer("0\nreturn code: 0\n").expect("ok"),
            "return code: 0\n"
        );
        assert!(read_answer("101\nOperation not allowed").is_err());
        assert!(read_answer("").is_err());
    }
}
