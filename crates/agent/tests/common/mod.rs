//! Builds the agent and runs Java programs under it.
#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod front;
pub(crate) mod stage;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use testkit::jvm::{Jdk, crash_report, jdks, newest_compiler};

pub(crate) use testkit::jvm::is_matrix;

/// Options that each switch on a different part of the agent.
pub(crate) const MODES: &[&str] = &[
    "heap=sites",
    "heap=all",
    "heap=dump,format=b",
    "cpu=times",
    "cpu=samples",
    "monitor=y",
    "alloc=512k",
    "heap=sites,stacks=sampled",
];

/// The flag that has a VM leave its report of a crash where the next build does not take it away.
pub(crate) fn kept_report(what: &str) -> String {
    crash_report(env!("CARGO_TARGET_TMPDIR"), what)
}

/// What every test needs: the library, compiled programs, the runtimes.
pub(crate) struct Lab {
    pub(crate) agent: PathBuf,
    /// The oldest and the newest; all of them in the matrix.
    pub(crate) jdks: Vec<Jdk>,
    classes: tempfile::TempDir,
}

/// The laboratory, made once; `None` without a JDK, which is reported.
pub(crate) fn lab() -> Option<&'static Lab> {
    static LAB: OnceLock<Option<Lab>> = OnceLock::new();
    LAB.get_or_init(make).as_ref()
}

fn make() -> Option<Lab> {
    let Some(compiler) = newest_compiler() else {
        testkit::skip(
            "programs under the agent",
            testkit::Need::Jdk,
            testkit::jvm::NO_JDK,
        );
        return None;
    };
    let classes = tempfile::tempdir().expect("temporary folder");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java");
    for program in ["Known.java", "Placed.java", "Trouble.java"] {
        compiler
            .compile(&sources.join(program), 8, classes.path())
            .expect("compiles");
    }
    Some(Lab {
        agent: testkit::built::agent(),
        jdks: testkit::jvm::tested(),
        classes,
    })
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
    /// Where the compiled programs are.
    pub(crate) fn classes(&self) -> &Path {
        self.classes.path()
    }

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

    /// The newest runtime; all of them in the matrix.
    pub(crate) fn some_jdks(&self) -> &[Jdk] {
        let newest = self.jdks.len().saturating_sub(1);
        &self.jdks[if is_matrix() { 0 } else { newest }..]
    }

    /// Compiles one more program for runtimes from `release` on; `None`, having said why, when no
    /// compiler can.
    pub(crate) fn compile(&self, source: &str, release: u32) -> Option<tempfile::TempDir> {
        let Some(compiler) = newest_compiler().filter(|jdk| jdk.version >= release) else {
            testkit::skip(
                source,
                testkit::Need::JdkPart,
                &format!("no compiler for Java {release}"),
            );
            return None;
        };
        let classes = tempfile::tempdir().expect("temporary folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/java")
            .join(source);
        compiler
            .compile(&source, release, classes.path())
            .expect("compiles");
        Some(classes)
    }

    /// Compiles a source of `tests/native` to a library of the same name in `folder`; `None`,
    /// having said why, where it cannot be made.
    pub(crate) fn library(&self, source: &str, folder: &Path) -> Option<PathBuf> {
        let (stem, ending) = source.split_once('.').expect("a source");
        let mut homes = jdks().into_iter().map(|jdk| jdk.home.join("include"));
        let Some(include) = homes.find(|home| home.join("jni.h").is_file()) else {
            testkit::skip(source, testkit::Need::Jdk, "no jni.h in any JDK");
            return None;
        };
        let made = folder.join(format!("lib{stem}.so"));
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native");
        let mut compiler = match ending {
            "cc" => testkit::built::cxx(),
            _ => testkit::built::cc(),
        };
        let compiled = compiler
            .args(["-O1", "-fno-builtin", "-fno-optimize-sibling-calls"])
            .args(["-fno-omit-frame-pointer"])
            .args(["-shared", "-fPIC", "-pthread", "-o"])
            .args([&made, &tests.join(source)])
            .arg(format!("-I{}", include.display()))
            .arg(format!("-I{}", include.join("linux").display()))
            .output();
        match compiled {
            Ok(output) => {
                let printed = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{printed}");
                Some(made)
            }
            Err(error) => {
                testkit::skip(
                    source,
                    testkit::Need::Cc,
                    &format!("the C compiler: {error}"),
                );
                None
            }
        }
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
        self.run_as(jdk, classes, options, |java| {
            java.args(flags).arg("-cp").arg(classes).args(program);
        })
    }

    /// As [`Lab::run_in`], with a process of the caller's making.
    pub(crate) fn run_as(
        &self,
        jdk: &Jdk,
        classes: &Path,
        options: Option<&str>,
        prepare: impl FnOnce(&mut Command),
    ) -> Ran {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut java = Command::new(jdk.tool("java"));
        java.current_dir(folder.path())
            .env_remove("_JAVA_HPROF_OPTIONS")
            .env("CLASSPATH", classes)
            .arg(kept_report(&format!("JDK{}", jdk.version)));
        if let Some(options) = options {
            java.arg(format!("-agentpath:{}={options}", self.agent.display()));
        }
        prepare(&mut java);
        Ran {
            output: java.output().expect("java runs"),
            folder,
        }
    }
}
