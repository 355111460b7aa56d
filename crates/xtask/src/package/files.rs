//! The files of an installation: what `./x install` has put into a folder.

use std::fs;
use std::path::Path;

/// A file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// From the root of the installation, with slashes.
    pub path: String,
    /// Permissions.
    pub mode: u32,
    /// Bytes.
    pub content: Vec<u8>,
}

impl File {
    /// A file that all users may read.
    pub fn plain(path: impl Into<String>, content: impl Into<Vec<u8>>) -> File {
        File {
            path: path.into(),
            mode: 0o644,
            content: content.into(),
        }
    }

    /// A file that all users may run.
    pub fn program(path: impl Into<String>, content: impl Into<Vec<u8>>) -> File {
        File {
            mode: 0o755,
            ..File::plain(path, content)
        }
    }
}

/// All files below a folder by path. Programs are those below `bin`; other permissions, which depend on
/// who built, are not examined.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn below(folder: &Path) -> Result<Vec<File>, String> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(next) = todo.pop() {
        let fault = |error: std::io::Error| format!("{}: {error}", next.display());
        for entry in fs::read_dir(&next).map_err(fault)? {
            let path = entry.map_err(fault)?.path();
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            let content = fs::read(&path).map_err(fault)?;
            let name = path.strip_prefix(folder).unwrap_or(&path);
            let name = name.to_string_lossy().into_owned();
            found.push(match name.starts_with("bin/") {
                true => File::program(name, content),
                false => File::plain(name, content),
            });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The file of this path.
///
/// # Errors
/// There is none.
pub fn get<'a>(files: &'a [File], path: &str) -> Result<&'a File, String> {
    let found = files.iter().find(|file| file.path == path);
    found.ok_or_else(|| format!("the installation has no {path}"))
}

/// The agent libraries of an installation, with their file names.
///
/// # Errors
/// One is missing.
pub fn agents(files: &[File]) -> Result<Vec<(&'static str, &File)>, String> {
    let libraries = ["libhprof.so", "libjvmpi.so"].into_iter();
    libraries
        .map(|name| Ok((name, get(files, &format!("lib/tenure/{name}"))?)))
        .collect()
}
