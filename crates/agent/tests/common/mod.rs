//! Builds the agent and runs Java programs under it.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use testkit::jvm::{Jdk, jdks, newest_compiler};

/// What every test needs: the library, compiled programs, the runtimes.
pub(crate) struct Lab {
    pub(crate) agent: PathBuf,
    pub(crate) jdks: Vec<Jdk>,
    classes: tempfile::TempDir,
}

/// The laboratory, made once; `None` without a JDK, which is said.
pub(crate) fn lab() -> Option<&'static Lab> {
    static LAB: OnceLock<Option<Lab>> = OnceLock::new();
    LAB.get_or_init(make).as_ref()
}

fn make() -> Option<Lab> {
    let Some(compiler) = newest_compiler() else {
        #[expect(clippy::print_stderr, reason = "tells why nothing was tested")]
        {
            eprintln!("skipped: {}", testkit::jvm::NO_JDK);
        }
        return None;
    };
    let classes = tempfile::tempdir().expect("temporary folder");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java");
    for program in ["Known.java", "Trouble.java"] {
        compiler
            .compile(&sources.join(program), 8, classes.path())
            .expect("compiles");
    }
    Some(Lab {
        agent: build(),
        jdks: jdks(),
        classes,
    })
}

/// A test does not link a cdylib, so cargo is asked for it.
fn build() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--package=agent", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let end = text
        .find("/libhprof.so\"")
        .expect("cargo names the library");
    let start = text[..end].rfind('"').expect("a quoted path") + 1;
    PathBuf::from(&text[start..end + "/libhprof.so".len()])
}

/// One run: what was printed, and the profile if one was written.
pub(crate) struct Ran {
    pub(crate) output: Output,
    pub(crate) folder: tempfile::TempDir,
}

impl Ran {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The text profile under its default name.
    pub(crate) fn profile(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join("java.hprof.txt")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Lab {
    /// Runs a program, with the agent if there are options for it.
    pub(crate) fn run(
        &self,
        jdk: &Jdk,
        options: Option<&str>,
        flags: &[&str],
        program: &[&str],
    ) -> Ran {
        self.run_in(jdk, self.classes.path(), options, flags, program)
    }

    /// Compiles one more program with a runtime's own compiler; `None` without one.
    pub(crate) fn compile(
        &self,
        jdk: &Jdk,
        source: &str,
        release: u32,
    ) -> Option<tempfile::TempDir> {
        if !jdk.tool("javac").is_file() {
            return None;
        }
        let classes = tempfile::tempdir().expect("temporary folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/java")
            .join(source);
        jdk.compile(&source, release, classes.path())
            .expect("compiles");
        Some(classes)
    }

    /// As [`Lab::run`], with classes of the caller's.
    pub(crate) fn run_in(
        &self,
        jdk: &Jdk,
        classes: &Path,
        options: Option<&str>,
        flags: &[&str],
        program: &[&str],
    ) -> Ran {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut java = Command::new(jdk.tool("java"));
        java.current_dir(folder.path())
            .env_remove("_JAVA_HPROF_OPTIONS")
            .args(flags);
        if let Some(options) = options {
            java.arg(format!("-agentpath:{}={options}", self.agent.display()));
        }
        java.arg("-cp").arg(classes).args(program);
        Ran {
            output: java.output().expect("java runs"),
            folder,
        }
    }
}
