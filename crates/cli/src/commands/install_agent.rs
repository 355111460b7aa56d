//! `tenure install-agent`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::agent;
use crate::output::note;
use crate::session::Session;
use anyhow::{Context, Result};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Copy the agent to where -agentlib:hprof finds it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A library that is there already is kept as libhprof.so.orig (--force replaces it without).\nWithout writing into the JDK: set LD_LIBRARY_PATH to a folder that holds libhprof.so.\n\nExamples:\n  tenure install-agent                   into $JAVA_HOME\n  tenure install-agent /usr/lib/jvm/java-17-openjdk-amd64\n  tenure install-agent --dir /opt/agent"
)]
pub struct Args {
    /// The JDK or JRE [default: $JAVA_HOME]
    #[arg(value_name = "JAVA_HOME", conflicts_with = "dir", value_hint = clap::ValueHint::DirPath)]
    java_home: Option<PathBuf>,
    /// A plain folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// The agent library [default: beside this program]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    agent: Option<PathBuf>,
}

impl Args {
    /// Installs.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let library = agent::find(self.agent.as_deref())?;
        let folder = match (&self.dir, &self.java_home) {
            (Some(dir), _) => {
                fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
                dir.clone()
            }
            (None, Some(home)) => library_folder(home)?,
            (None, None) => {
                let home = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
                let home = home.map(PathBuf::from);
                let home = home.ok_or_else(|| Usage("which JDK? (JAVA_HOME is not set)".into()))?;
                library_folder(&home)?
            }
        };
        let place = folder.join(agent::LIBRARY);
        install(&library, &place, session.global.force)?;
        note(&format!("installed as {}", place.display()));
        Ok(Exit::Ok)
    }
}

/// The folder a VM loads its own libraries from: `lib` since JDK 9, `jre/lib/amd64` before.
fn library_folder(home: &Path) -> Result<PathBuf> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        other => other,
    };
    let places = [
        home.join("lib"),
        home.join("jre/lib").join(arch),
        home.join("lib").join(arch),
    ];
    let holds_vm = |place: &&PathBuf| place.join("server/libjvm.so").exists();
    let found = places.iter().find(holds_vm).cloned();
    found.ok_or_else(|| Usage(format!("{} holds no Java VM", home.display())).into())
}

/// Copies the library, keeping one that is another's.
fn install(library: &Path, place: &Path, force: bool) -> Result<()> {
    let error = || format!("cannot write {}", place.display());
    if place.exists() && !force {
        let new = fs::read(library).with_context(|| library.display().to_string())?;
        if fs::read(place).is_ok_and(|old| old == new) {
            return Ok(());
        }
        let kept = place.with_extension("so.orig");
        if !kept.exists() {
            fs::rename(place, &kept).with_context(error)?;
        }
    }
    // A JVM may have the old file mapped: it keeps its own, as the name gets a new file.
    let new = place.with_extension("so.new");
    fs::copy(library, &new).with_context(error)?;
    // Unpacked libraries are private, and JVMs of other users load this one.
    fs::set_permissions(&new, Permissions::from_mode(0o755)).with_context(error)?;
    fs::rename(&new, place).with_context(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_goes_beside_the_vm() {
        let home = tempfile::tempdir().expect("a folder");
        assert!(library_folder(home.path()).is_err());
        fs::create_dir_all(home.path().join("lib/server")).expect("made");
        fs::write(home.path().join("lib/server/libjvm.so"), "").expect("made");
        assert_eq!(
            library_folder(home.path()).expect("found"),
            home.path().join("lib")
        );
    }

    #[test]
    fn an_original_library_is_kept_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (ours, place) = (
            folder.path().join("ours"),
            folder.path().join("libhprof.so"),
        );
        fs::write(&ours, "ours").expect("made");
        fs::set_permissions(&ours, Permissions::from_mode(0o700)).expect("private");
        fs::write(&place, "original").expect("made");
        install(&ours, &place, false).expect("installed");
        fs::write(&ours, "newer").expect("made");
        install(&ours, &place, false).expect("installed");
        let kept = fs::read_to_string(folder.path().join("libhprof.so.orig")).expect("kept");
        assert_eq!(kept, "original");
        let mode = fs::metadata(&place).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(fs::read_to_string(&place).expect("there"), "newer");
    }
}
