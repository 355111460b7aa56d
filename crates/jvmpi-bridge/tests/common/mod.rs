//! Builds the bridge and the agents, and runs Java programs under them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use testkit::jvm::{Jdk, compile_agent, is_matrix, newest_compiler, tested};
use testkit::run::run_command;

/// Compiled libraries and programs, and the runtimes.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
    bridge: PathBuf,
    jdks: Vec<Jdk>,
}

/// What a run printed, and the agent's report.
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) report: String,
}

/// Collectors to run under: two, or all in the matrix.
pub(crate) fn collectors() -> &'static [&'static str] {
    if is_matrix() {
        &["Serial", "Parallel", "G1", "Z", "Shenandoah"]
    } else {
        &["Serial", "G1"]
    }
}

/// The laboratory, made once; `None` without a JDK or C compiler, which is reported.
pub(crate) fn lab() -> Option<&'static Lab> {
    static LAB: OnceLock<Option<Lab>> = OnceLock::new();
    LAB.get_or_init(make).as_ref()
}

fn make() -> Option<Lab> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let jdks = tested();
    let Some(compiler) = newest_compiler() else {
        testkit::skip(
            "agents of the profiler interface",
            testkit::Need::Jdk,
            testkit::jvm::NO_JDK,
        );
        return None;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    for agent in ["everything", "sites"] {
        let library = folder.path().join(format!("lib{agent}.so"));
        let source = here.join(format!("tests/agents/{agent}.c"));
        compile_agent(&source, &[&here.join("include")], &library)?;
    }
    let programs = [
        here.join("tests/java/Everything.java"),
        here.join("tests/java/Load.java"),
        here.join("../agent/tests/java/Known.java"),
    ];
    for program in programs {
        compiler
            .compile(&program, 8, folder.path())
            .expect("compiles");
    }
    Some(Lab {
        bridge: testkit::built::bridge(),
        folder,
        jdks,
    })
}

impl Lab {
    /// All runtimes in the matrix, else the newest.
    pub(crate) fn jdks_to_test(&self) -> impl Iterator<Item = &Jdk> {
        let newest = self.jdks.len() - 1;
        let wanted = move |at: usize| is_matrix() || at == newest;
        self.jdks
            .iter()
            .enumerate()
            .filter_map(move |(at, jdk)| wanted(at).then_some(jdk))
    }

    pub(crate) fn starts(&self, jdk: &Jdk, flag: &str) -> bool {
        let mut java = Command::new(jdk.tool("java"));
        java.args([flag, "-version"]);
        java.output().is_ok_and(|output| output.status.success())
    }

    fn java(&self, jdk: &Jdk, flags: &[&str], program: &[&str], report: &Path) -> Run {
        let mut java = Command::new(jdk.tool("java"));
        java.current_dir(report.parent().expect("a folder"))
            .env("LD_LIBRARY_PATH", self.folder.path())
            .args(flags)
            .arg("-cp")
            .arg(self.folder.path())
            .args(program);
        let ran = run_command(java, Duration::from_secs(120));
        Run {
            stdout: ran
                .stdout
                .lines()
                .last()
                .map(|l| l.to_owned() + "\n")
                .unwrap_or_default(),
            stderr: format!("{:?} {}", ran.code, ran.stderr),
            report: std::fs::read_to_string(report).unwrap_or_default(),
        }
    }

    /// Runs a program under an agent.
    pub(crate) fn run(&self, jdk: &Jdk, agent: &str, flags: &[&str], program: &[&str]) -> Run {
        let folder = tempfile::tempdir().expect("temporary folder");
        let report = folder.path().join("report.txt");
        let library = self.folder.path().join(format!("lib{agent}.so"));
        let load = format!(
            "-agentpath:{}={}:{}",
            self.bridge.display(),
            library.display(),
            report.display()
        );
        let mut all = vec![load.as_str()];
        all.extend(flags);
        self.java(jdk, &all, program, &report)
    }

    /// As [`Lab::run`], with `-Xrun`.
    pub(crate) fn run_historic(&self, jdk: &Jdk, agent: &str, program: &[&str]) -> Run {
        let folder = tempfile::tempdir().expect("temporary folder");
        let report = folder.path().join("report.txt");
        let bridge = format!("-agentpath:{}", self.bridge.display());
        let load = format!("-Xrun{agent}:{}", report.display());
        self.java(jdk, &[&bridge, &load], program, &report)
    }

    /// The message for an invalid option text.
    pub(crate) fn refused(&self, jdk: &Jdk, text: &str) -> String {
        let mut java = Command::new(jdk.tool("java"));
        java.arg(format!("-agentpath:{}={text}", self.bridge.display()))
            .arg("-version");
        let output = java.output().expect("java runs");
        assert!(!output.status.success(), "{text}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// The text profile of `libhprof.so` with every site in it.
    pub(crate) fn profile(&self, jdk: &Jdk, program: &[&str]) -> String {
        let agent = testkit::built::agent();
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = folder.path().join("profile.txt");
        let load = format!(
            "-agentpath:{}=heap=sites,cutoff=0,file={}",
            agent.display(),
            file.display()
        );
        self.java(jdk, &[&load], program, &file).report
    }
}
