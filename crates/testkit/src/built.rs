//! What this workspace builds, for tests that start it, and what tests compile once for all.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program `tenure`: the one that `TENURE_BIN` names, or the one of this build.
pub fn tenure() -> PathBuf {
    named("TENURE_BIN").unwrap_or_else(|| product("tenure", "tenure"))
}

/// The agent: the one that `TENURE_AGENT` names, or the one of this build.
pub fn agent() -> PathBuf {
    named("TENURE_AGENT").unwrap_or_else(|| product("agent", "libhprof.so"))
}

/// The bridge for agents of the old profiler interface: the one that `TENURE_BRIDGE` names, or the one
/// of this build.
pub fn bridge() -> PathBuf {
    named("TENURE_BRIDGE").unwrap_or_else(|| product("jvmpi-bridge", "libjvmpi.so"))
}

fn named(variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(variable)?);
    // Tests run in other folders than the person who sets the variable.
    Some(path.canonicalize().unwrap_or(path))
}

/// A file that a package of this workspace consists of. A test does not link a library for other
/// programs, nor another package's program. `./x` builds them all and reports this by `TENURE_BUILT`;
/// without it cargo is asked, so that what is tested is never older than its source.
fn product(package: &str, file: &str) -> PathBuf {
    let folder = profile_folder();
    if std::env::var_os("TENURE_BUILT").is_none() {
        static BUILD: OnceLock<()> = OnceLock::new();
        BUILD.get_or_init(|| build(&folder));
    }
    let path = folder.join(file);
    assert!(path.is_file(), "{} is not built: {package}", path.display());
    path
}

fn build(folder: &Path) {
    // One run of nextest has a process per test; the first one builds for all.
    let run = std::env::var("NEXTEST_RUN_ID").unwrap_or_default();
    let stamp = folder.join("tenure-built");
    if !run.is_empty() && std::fs::read_to_string(&stamp).is_ok_and(|built| built == run) {
        return;
    }
    let is_release = folder.ends_with("release");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "-q",
        "-p",
        "tenure",
        "-p",
        "agent",
        "-p",
        "jvmpi-bridge",
    ]);
    cargo.args(is_release.then_some("--release"));
    let output = cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    std::fs::write(stamp, run).expect("a stamp in the target folder");
}

/// `target/debug` or its like, where this test was built.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a file");
    let folder = test.ancestors().find(|folder| {
        folder.join("deps").is_dir()
            && (folder.join("build").is_dir() || folder.join(".fingerprint").is_dir())
    });
    folder.expect("target/PROFILE/deps/TEST").to_path_buf()
}

/// The C compiler for libraries that a JVM loads: the words of `TENURE_CC`, or `cc`.
pub fn cc() -> Command {
    compiler("TENURE_CC", "cc")
}

/// As [`cc`], for C++: the words of `TENURE_CXX`, or `c++`.
pub fn cxx() -> Command {
    compiler("TENURE_CXX", "c++")
}

fn compiler(variable: &str, usual: &str) -> Command {
    let given = std::env::var(variable).unwrap_or_default();
    let mut words = given.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(usual));
    command.args(words);
    command
}

/// The folder for what tests leave behind, in the target folder.
pub fn scratch() -> PathBuf {
    profile_folder().join("../tmp")
}

/// A folder of files that are made once for all test processes and runs. `key` is everything that
/// the files depend on; `make` gets an empty folder.
///
/// # Errors
/// What `make` says.
///
/// # Panics
/// If the target folder cannot be written.
pub fn made_once(
    key: impl Hash,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let all = scratch().join("made");
    let wanted = all.join(format!("{:016x}", hasher.finish()));
    if wanted.is_dir() {
        return Ok(wanted);
    }
    std::fs::create_dir_all(&all).expect("a folder in the target folder");
    let unfinished = tempfile::tempdir_in(&all).expect("a folder in the target folder");
    make(unfinished.path())?;
    // Another process may have been first; its files are the same.
    let _ = std::fs::rename(unfinished.path(), &wanted);
    assert!(wanted.is_dir(), "{} was not made", wanted.display());
    Ok(wanted)
}

/// The names and contents of the files with an ending in a folder, in order: a part of a key.
pub fn contents(folder: &Path, ending: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|have| have == ending))
        .collect();
    files.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap_or_default());
    files.into_iter().map(read).collect()
}
