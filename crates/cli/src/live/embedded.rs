//! The agent libraries that the program contains, and where it unpacks them.
//!
//! A program of `./x package` contains them; that of an ordinary build contains none and needs them
//! beside itself.

use crate::commands::cache;
use anyhow::{Context, Result, bail};
use jvm_observe::files::{JvmFiles, checksum};
use rustix::fs::{self, Mode, OFlags};
use rustix::process::geteuid;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// File names and contents.
type Libraries = [(&'static str, &'static [u8])];

/// The libraries in this program, written by `build.rs`.
const AGENTS: &Libraries = include!(concat!(env!("OUT_DIR"), "/agents.rs"));

/// The unpacked library of this name, beside the other one; `None` if the program contains none.
pub(super) fn unpacked(name: &str) -> Result<Option<PathBuf>> {
    if !AGENTS.iter().any(|(library, _)| *library == name) {
        return Ok(None);
    }
    Ok(Some(unpack(AGENTS, cache::of_user())?.join(name)))
}

/// Unpacks the libraries into a folder named by their content, unless they are there: in this cache, or
/// in the temporary folder if there is none.
fn unpack(libraries: &Libraries, cache: Option<PathBuf>) -> Result<PathBuf> {
    let all: Vec<&[u8]> = libraries.iter().map(|(_, content)| *content).collect();
    let name = format!("agents-{:016x}", checksum(&all.concat()));
    let (parent, name) = match cache {
        Some(cache) => (cache, name),
        None => {
            let user = geteuid().as_raw();
            (std::env::temp_dir(), format!(".tenure-{user}-{name}"))
        }
    };
    let path = parent.display().to_string();
    let cannot = || format!("cannot unpack the agent into {path} (see XDG_CACHE_HOME and --agent)");
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(&parent).with_context(cannot)?;
    // A JVM that starts in another folder needs the whole path.
    let parent = parent.canonicalize().with_context(cannot)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = fs::open(&parent, flags, Mode::empty()).with_context(cannot)?;
    let stat = fs::fstat(&folder)?;
    // Who can rename the folder could replace a library after it was compared.
    let is_trusted = [geteuid().as_raw(), 0].contains(&stat.st_uid);
    if !is_trusted || stat.st_mode & 0o022 != 0 && stat.st_mode & STICKY == 0 {
        bail!("other users can write to {path}; name another folder with XDG_CACHE_HOME");
    }
    JvmFiles::of_this_process()?.keep(&folder, &path, &name, libraries)?;
    Ok(parent.join(name))
}

/// Only the owner of a file may remove it from a folder of this mode.
const STICKY: u32 = 0o1000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    const LIBRARIES: &Libraries = &[("libhprof.so", b"agent"), ("libjvmpi.so", b"bridge")];

    #[test]
    fn libraries_are_unpacked_once_and_for_this_user_alone() {
        let home = tempfile::tempdir().expect("a folder");
        let cache = home.path().join("a/tenure");
        let folder = unpack(LIBRARIES, Some(cache.clone())).expect("unpacked");
        assert!(folder.starts_with(cache.canonicalize().expect("made")));
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&cache), mode(&folder)), (0o700, 0o700));
        assert_eq!(
            fs::read(folder.join("libhprof.so")).expect("there"),
            b"agent"
        );
        assert_eq!(
            fs::read(folder.join("libjvmpi.so")).expect("there"),
            b"bridge"
        );
        let made = |name| fs::metadata(folder.join(name)).and_then(|about| about.modified());
        let first = made("libhprof.so").expect("a time");
        assert_eq!(
            unpack(LIBRARIES, Some(cache.clone())).expect("again"),
            folder
        );
        assert_eq!(made("libhprof.so").expect("a time"), first);
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2);
        // Another version goes into another folder.
        let newer: &Libraries = &[("libhprof.so", b"newer"), ("libjvmpi.so", b"bridge")];
        assert_ne!(unpack(newer, Some(cache)).expect("unpacked"), folder);
    }

    #[test]
    fn a_library_or_a_folder_of_somebody_else_is_refused() {
        let home = tempfile::tempdir().expect("a folder");
        let cache = home.path().to_path_buf();
        let folder = unpack(LIBRARIES, Some(cache.clone())).expect("unpacked");
        fs::write(folder.join("libhprof.so"), "other").expect("written");
        let error = unpack(LIBRARIES, Some(cache.clone())).expect_err("another library");
        assert!(
            format!("{error:#}").contains("another library"),
            "{error:#}"
        );
        // A link in place of a file, or of the folder.
        fs::remove_file(folder.join("libhprof.so")).expect("removed");
        fs::write(home.path().join("planted"), "agent").expect("written");
        symlink(home.path().join("planted"), folder.join("libhprof.so")).expect("a link");
        let again = unpack(LIBRARIES, Some(cache.clone())).expect("written anew");
        let about = fs::symlink_metadata(again.join("libhprof.so")).expect("there");
        assert!(about.is_file());
        fs::rename(&folder, home.path().join("moved")).expect("moved");
        symlink(home.path().join("moved"), &folder).expect("a link");
        unpack(LIBRARIES, Some(cache.clone())).expect_err("a link");
        // A cache that others can write to.
        fs::remove_file(&folder).expect("removed");
        fs::set_permissions(&cache, Permissions::from_mode(0o777)).expect("set");
        unpack(LIBRARIES, Some(cache)).expect_err("a shared folder");
    }
}
