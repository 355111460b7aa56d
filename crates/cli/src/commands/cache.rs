//! `tenure cache`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::session::Session;
use clap::ValueEnum;
use report::cache::{CacheJson, IndexFile};
use std::fs;
use std::path::{Path, PathBuf};

/// Index files: list or remove them
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure cache ls\n  tenure cache ls heap.hprof /dumps\n  tenure cache rm heap.hprof"
)]
pub struct Args {
    /// Action
    #[arg(value_enum)]
    action: Action,
    /// Dumps, or folders with dumps [default for ls: here and the user's cache folder]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// With rm: everything in the user's cache folder (or --cache-dir)
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    Ls,
    Rm,
}

impl Args {
    /// Lists or removes.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let mut folders = Vec::new();
        for path in &self.paths {
            if path.is_dir() && !is_index_folder(path) {
                folders.extend(index_folders(path));
            } else if path.is_dir() {
                folders.push(path.clone());
            } else if let Some(name) = path.file_name() {
                let name = name.to_string_lossy().into_owned() + ".tenure";
                folders.push(path.with_file_name(&name));
                folders.extend(user_cache(session).map(|c| c.join(&name)));
            }
        }
        let rm = self.action == Action::Rm;
        if rm && self.paths.is_empty() && !self.all {
            return Err(Usage("which? (dumps, folders, or --all)".to_owned()).into());
        }
        if self.paths.is_empty() {
            folders.extend(user_cache(session).iter().flat_map(|c| index_folders(c)));
            if !rm {
                folders.extend(index_folders(Path::new(".")));
            }
        }
        folders.sort();
        folders.dedup();
        let entries: Vec<IndexFile> = folders.iter().flat_map(|f| entries(f)).collect();
        if rm {
            for entry in &entries {
                fs::remove_file(&entry.path)?;
            }
            for folder in &folders {
                // Only when nothing else is in it.
                let _ = fs::remove_dir(folder);
            }
        }
        let answer = CacheJson::new(&entries, rm);
        session.say_value(&answer, || answer.doc())?;
        Ok(Exit::Ok)
    }
}

/// The folder for indexes that cannot be beside their dump, and for the past of watched programs.
pub(crate) fn user_cache(session: &Session) -> Option<PathBuf> {
    session.global.cache_dir.clone().or_else(of_user)
}

/// The user's cache folder for Tenure, without options.
pub(crate) fn of_user() -> Option<PathBuf> {
    let folder = |key: &str| {
        std::env::var_os(key)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("tenure"))
}

fn is_index_folder(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "tenure")
}

fn index_folders(parent: &Path) -> Vec<PathBuf> {
    let Ok(list) = fs::read_dir(parent) else {
        return Vec::new();
    };
    list.filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.is_dir() && is_index_folder(p))
        .collect()
}

/// The index files of a folder; nothing else in it belongs to Tenure.
fn entries(folder: &Path) -> Vec<IndexFile> {
    let Ok(list) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<IndexFile> = list
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| {
            p.extension()
                .is_some_and(|e| e == "idx" || e == "inbound" || e == "answers")
        })
        .filter_map(|path| {
            let bytes = fs::symlink_metadata(&path).ok()?.len();
            let path = path.display().to_string();
            Some(IndexFile { path, bytes })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}
