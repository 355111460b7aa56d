//! `tenure cache`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::session::Session;
use clap::ValueEnum;
use report::doc::{number, words};
use report::{Cell, Doc, Span, Table};
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

/// An index file.
struct Entry {
    path: PathBuf,
    bytes: u64,
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
        let entries: Vec<Entry> = folders.iter().flat_map(|f| entries(f)).collect();
        if rm {
            for entry in &entries {
                fs::remove_file(&entry.path)?;
            }
            for folder in &folders {
                // Only when nothing else is in it.
                let _ = fs::remove_dir(folder);
            }
        }
        say(session, &entries, rm)?;
        Ok(Exit::Ok)
    }
}

fn say(session: &Session, entries: &[Entry], removed: bool) -> std::io::Result<()> {
    let total: u64 = entries.iter().map(|e| e.bytes).sum();
    let mut table = Table::new([number("size"), words("index")]);
    table.when_empty = "no index files";
    for entry in entries {
        table.row([
            Span::Bytes(entry.bytes).into(),
            Cell::value(entry.path.display().to_string()),
        ]);
    }
    if !entries.is_empty() {
        let word = if removed { "removed" } else { "in all" };
        table.total = Some(vec![Span::Bytes(total).into(), Span::from(word).into()]);
    }
    session.say_doc(&Doc::new().table(table))
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
fn entries(folder: &Path) -> Vec<Entry> {
    let Ok(list) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<Entry> = list
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| {
            p.extension()
                .is_some_and(|e| e == "idx" || e == "inbound" || e == "answers")
        })
        .filter_map(|path| {
            let bytes = fs::symlink_metadata(&path).ok()?.len();
            Some(Entry { path, bytes })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}
