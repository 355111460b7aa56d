//! Where an index file goes: a folder beside the dump, or the user's cache folder. Only what
//! belongs to this user and can be written by no one else is read: who can write an index can
//! choose the answers.

use super::format::IndexFile;
use super::identity::Identity;
use crate::{HeapError, LayoutModel, Options, Strength};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// The file name for these options: sizes and dominators differ between them.
fn file_name(options: &Options, snapshot: u32) -> String {
    let layout = match options.layout {
        LayoutModel::Measured => "measured",
        LayoutModel::Mat => "mat",
        LayoutModel::Plain => "plain",
    };
    let strength = match options.strength {
        Strength::All => "all",
        Strength::Strong => "strong",
        Strength::StrongSoft => "strong-soft",
    };
    format!("{snapshot}-{layout}-{strength}.idx")
}

/// The places of one index file, best first. Making this value creates nothing on disk.
#[derive(Debug)]
pub(crate) struct IndexPlace {
    folders: Vec<PathBuf>,
    name: String,
}

impl IndexPlace {
    /// The places for a dump under these options; none when no index is wanted.
    pub(crate) fn of(dump: &Path, options: &Options) -> IndexPlace {
        let wanted = !options.no_index && dump != Path::new("-");
        IndexPlace {
            folders: if wanted {
                folders(dump, options)
            } else {
                Vec::new()
            },
            name: file_name(options, options.snapshot.max(1)),
        }
    }

    /// The same places with another extension of the file.
    pub(crate) fn with_extension(mut self, extension: &str) -> IndexPlace {
        let name = Path::new(&self.name).with_extension(extension);
        self.name = name.to_string_lossy().into_owned();
        self
    }

    /// The first index of this dump that is there and is this user's.
    pub(crate) fn find(&self, identity: Identity) -> Option<IndexFile> {
        let ours = self.folders.iter().filter(|folder| is_own_folder(folder));
        ours.filter_map(|folder| IndexFile::open(&folder.join(&self.name), identity))
            .next()
    }

    /// The file to write, its folder made; `None` when there is no place for one.
    pub(crate) fn first(&self) -> Option<PathBuf> {
        self.paths().into_iter().find(|path| IndexPlace::make(path))
    }

    /// The files that may be written, best first.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|f| f.join(&self.name)).collect()
    }

    /// Makes the folder of a file; false if there is none that can be trusted.
    pub(crate) fn make(file: &Path) -> bool {
        file.parent().is_some_and(make_own_folder)
    }
}

/// The folders for what belongs to a dump: `DUMP.tenure/` beside it and a folder of that name in
/// the user's cache, or in the cache folder that was requested.
fn folders(dump: &Path, options: &Options) -> Vec<PathBuf> {
    let Some(name) = dump.file_name() else {
        return Vec::new();
    };
    let name = name.to_string_lossy().into_owned() + ".tenure";
    if let Some(cache) = &options.cache_dir {
        return vec![cache.join(name)];
    }
    let mut found = vec![dump.with_file_name(&name)];
    if let (Some(cache), Some(tag)) = (user_cache(), path_tag(dump)) {
        found.push(cache.join("tenure").join(format!("{tag}-{name}")));
    }
    found
}

/// The user's cache folder.
fn user_cache() -> Option<PathBuf> {
    let home = |key: &str| {
        std::env::var_os(key)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    home("XDG_CACHE_HOME").or_else(|| Some(home("HOME")?.join(".cache")))
}

/// A word that distinguishes files of one name in a folder for several dumps: a hash of the whole path. `None` if there is
/// no such file.
pub fn path_tag(dump: &Path) -> Option<String> {
    let full = fs::canonicalize(dump).ok()?;
    let hash = super::hash(full.as_os_str().as_encoded_bytes());
    Some(format!("{hash:016x}"))
}

/// True when this user owns it and no one else can write to it.
#[cfg(unix)]
fn is_own(about: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_own(_: &Metadata) -> bool {
    true
}

/// True for a folder of this user's; a link to one is none.
fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir() && is_own(&about))
}

/// Makes the folder if it is not there; false if it cannot be trusted.
fn make_own_folder(path: &Path) -> bool {
    let made = fs::symlink_metadata(path).is_err() && private_dir(path).is_ok();
    let ours = is_own_folder(path);
    if made && !ours {
        // A file system without owners and modes; what was made is empty.
        let _ = fs::remove_dir(path);
    }
    ours
}

/// Opens a file for reading if it is a regular file of this user's that no one else can write to
/// and that has no other name.
///
/// # Errors
/// If it is not, or cannot be opened.
pub fn open_own(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe of that name must not stop the opening.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    let about = file.metadata()?;
    #[cfg(unix)]
    let names = std::os::unix::fs::MetadataExt::nlink(&about);
    #[cfg(not(unix))]
    let names = 1;
    if about.is_file() && is_own(&about) && names == 1 {
        Ok(file)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Makes a folder that only its owner can enter.
fn private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Makes the folder if it is not there; an error if no files can be made in it.
fn usable_folder(dir: &Path) -> io::Result<()> {
    if !dir.is_dir() {
        private_dir(dir)?;
    }
    tempfile::tempfile_in(dir).map(drop)
}

/// Makes the cache folder that was requested: without it the index and the temporary files would go elsewhere.
///
/// # Errors
/// If it cannot be made or written.
pub(crate) fn make_requested(options: &Options) -> Result<(), HeapError> {
    let Some(dir) = &options.cache_dir else {
        return Ok(());
    };
    usable_folder(dir).map_err(HeapError::io(format!(
        "--cache-dir {}: the folder cannot be made or written",
        dir.display()
    )))
}

/// The folders for temporary files, best first: the cache folder that was requested, the folder of the dump, that of the
/// user's cache, and the system's, last because it may be in memory.
fn spill_folders(dump: &Path, options: &Options) -> impl Iterator<Item = PathBuf> {
    let beside = dump.parent().filter(|p| !p.as_os_str().is_empty());
    let beside = beside.unwrap_or(Path::new("."));
    let candidates = [
        options.cache_dir.clone(),
        Some(beside.to_owned()),
        user_cache().map(|cache| cache.join("tenure")),
    ];
    let usable = candidates.into_iter().flatten();
    let usable = usable.filter(|folder| usable_folder(folder).is_ok());
    usable.chain(std::iter::once_with(std::env::temp_dir))
}

/// The first folder for temporary files.
pub(crate) fn spill_dir(dump: &Path, options: &Options) -> PathBuf {
    let first = spill_folders(dump, options).next();
    first.unwrap_or_else(std::env::temp_dir)
}

/// Does work that needs temporary files in the first folder for them, and again in the next one if the disk is full.
///
/// # Errors
/// Those of the work; if all disks are full, the error in the last folder.
pub(crate) fn in_spill_folder<T>(
    dump: &Path,
    options: &Options,
    work: impl Fn(&Path) -> Result<T, HeapError>,
) -> Result<T, HeapError> {
    let mut folders = spill_folders(dump, options).peekable();
    loop {
        let folder = folders.next().unwrap_or_else(std::env::temp_dir);
        match work(&folder) {
            Err(error) if error.is_full_disk() && folders.peek().is_some() => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn work_goes_on_in_the_next_folder_if_a_disk_is_full() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            cache_dir: Some(folder.path().join("cache")),
            ..Options::default()
        };
        let dump = folder.path().join("heap.hprof");
        let tried = RefCell::new(Vec::new());
        let fails = |kind: io::ErrorKind, until: usize| {
            tried.borrow_mut().clear();
            in_spill_folder(&dump, &options, |at| {
                tried.borrow_mut().push(at.to_owned());
                match tried.borrow().len() > until {
                    true => Ok(()),
                    false => Err(HeapError::io("search")(kind.into())),
                }
            })
        };
        let requested = folder.path().join("cache");
        assert!(fails(io::ErrorKind::StorageFull, 1).is_ok());
        assert_eq!(tried.take(), [requested.clone(), folder.path().to_owned()]);
        assert!(fails(io::ErrorKind::StorageFull, 9).is_err());
        assert_eq!(tried.borrow().last(), Some(&std::env::temp_dir()));
        assert!(fails(io::ErrorKind::PermissionDenied, 9).is_err());
        assert_eq!(tried.take(), [requested]);
    }
}
