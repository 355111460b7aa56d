//! Where an index file goes: a folder beside the dump, or the user's cache folder.

use crate::{LayoutModel, Options, Strength};
use std::fs;
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

/// The folder for what belongs to a dump: `DUMP.tenure/` beside it, or a folder of that name in
/// the cache.
fn folder(dump: &Path, options: &Options) -> Option<PathBuf> {
    let name = dump.file_name()?.to_string_lossy().into_owned() + ".tenure";
    if let Some(cache) = &options.cache_dir {
        return Some(cache.join(name));
    }
    let beside = dump.with_file_name(&name);
    if beside.is_dir() || private_dir(&beside) {
        return Some(beside);
    }
    let home = |key: &str| {
        std::env::var_os(key)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let cache = home("XDG_CACHE_HOME").or_else(|| Some(home("HOME")?.join(".cache")))?;
    let full = fs::canonicalize(dump).ok()?;
    let tag = super::hash(full.as_os_str().as_encoded_bytes());
    Some(cache.join("tenure").join(format!("{tag:016x}-{name}")))
}

/// Makes a folder that only its owner can enter.
fn private_dir(path: &Path) -> bool {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path).is_ok()
}

/// The index file for a dump, its folder made; `None` when there is no place for one.
pub(crate) fn index_path(dump: &Path, options: &Options, snapshot: u32) -> Option<PathBuf> {
    if options.no_index || dump == Path::new("-") {
        return None;
    }
    let folder = folder(dump, options)?;
    (folder.is_dir() || private_dir(&folder)).then(|| folder.join(file_name(options, snapshot)))
}

/// The folder for temporary files: large ones must not go to a memory file system.
pub(crate) fn spill_dir(dump: &Path, options: &Options) -> PathBuf {
    let beside = dump
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let candidates = [options.cache_dir.clone(), Some(beside.to_owned())];
    candidates
        .into_iter()
        .flatten()
        .find(|dir| (dir.is_dir() || private_dir(dir)) && tempfile::tempfile_in(dir).is_ok())
        .unwrap_or_else(std::env::temp_dir)
}
