//! The programs and libraries of an architecture, by `cargo zigbuild` (`./x setup cross`): C and linker
//! for any architecture, and any version of glibc as the oldest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Arch, elf};

/// The oldest glibc that loads the agents.
const OLDEST: &str = "2.17";

/// Where packages are built.
#[derive(Clone, Debug)]
pub struct Workshop {
    /// The sources.
    pub root: PathBuf,
    /// Everything that is made.
    pub target: PathBuf,
    /// The time that compilers may write, in seconds since 1970.
    pub time: u64,
}

/// Runs a command.
///
/// # Errors
/// It cannot be started, or fails.
pub fn run(command: &mut Command) -> Result<(), String> {
    let name = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// The output of a command, without the line break at its end.
///
/// # Errors
/// It cannot be started, or fails.
pub fn output(command: &mut Command) -> Result<String, String> {
    let name = format!("{command:?}");
    let ran = command
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if !ran.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&ran.stderr)));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).trim_end().to_owned())
}

impl Workshop {
    /// Builds for an architecture; the folder with `tenure`, which contains the agents, and the agents.
    ///
    /// # Errors
    /// A build that fails, or an agent that some C library does not load.
    pub fn build(&self, arch: Arch) -> Result<PathBuf, String> {
        let (musl, gnu) = (
            format!("{}-unknown-linux-musl", arch.name),
            format!("{}-unknown-linux-gnu", arch.name),
        );
        let built = self.target.join("built").join(arch.name);
        let fault = |error: std::io::Error| format!("{}: {error}", built.display());
        fs::create_dir_all(&built).map_err(fault)?;
        let agents = ["-p", "agent", "-p", "jvmpi-bridge", "--target"];
        run(self.cargo().args(agents).arg(format!("{gnu}.{OLDEST}")))?;
        let libc = self.musl_symbols(&musl)?;
        for name in ["libhprof.so", "libjvmpi.so"] {
            let from = self.target.join(&gnu).join("release").join(name);
            let mut library = fs::read(&from).map_err(fault)?;
            let loader = elf::loader(&library)?;
            elf::remove_library(&mut library, loader)?;
            let problems = elf::problems(&elf::needs(&library)?, &libc);
            if !problems.is_empty() {
                return Err(format!("{name} {}", problems.join("\n  ")));
            }
            // What has not changed keeps its time, so that the program is not built again.
            let to = built.join(name);
            if fs::read(&to).ok().as_ref() != Some(&library) {
                fs::write(&to, library).map_err(fault)?;
            }
        }
        let mut program = self.cargo();
        program.args(["-p", "tenure", "--target", &musl]);
        run(program.env("TENURE_EMBED_AGENTS", &built))?;
        let from = self.target.join(&musl).join("release/tenure");
        fs::copy(from, built.join("tenure")).map_err(fault)?;
        Ok(built)
    }

    /// `cargo zigbuild --release` without anything that would differ from folder to folder.
    fn cargo(&self) -> Command {
        let mut cargo = Command::new("cargo");
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
        // The target folder is the last, because it may be in the folder of the sources.
        let folders = [
            (self.root.clone(), "/tenure"),
            (home.unwrap_or_default(), "/cargo"),
            (self.target.clone(), "/target"),
        ];
        let flags = |option: &str| {
            let flag =
                |(folder, name): &(PathBuf, &str)| format!("{option}{}={name}", folder.display());
            folders.iter().map(flag).collect::<Vec<String>>()
        };
        let rust = flags("--remap-path-prefix=").join("\u{1f}");
        let c = format!("-g0 {}", flags("-ffile-prefix-map=").join(" "));
        cargo
            .args(["zigbuild", "--release", "--locked"])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
            .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
            .env("SOURCE_DATE_EPOCH", self.time.to_string())
            .env("CARGO_ENCODED_RUSTFLAGS", rust)
            .env("CFLAGS", c)
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env_remove("CLIPPY_ARGS");
        cargo
    }

    /// The functions of musl: those of the C library that comes with the target.
    fn musl_symbols(&self, target: &str) -> Result<BTreeSet<String>, String> {
        let sysroot = output(
            Command::new("rustc")
                .args(["--print", "sysroot"])
                .current_dir(&self.root),
        )?;
        let library = Path::new(&sysroot)
            .join("lib/rustlib")
            .join(target)
            .join("lib/self-contained/libc.a");
        let bytes =
            fs::read(&library).map_err(|error| format!("{}: {error}", library.display()))?;
        elf::archive_symbols(&bytes)
    }
}
