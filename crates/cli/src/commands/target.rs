//! Which dump, and which object in it.

use crate::exit::{NotFound, Usage};
use anyhow::Result;
use clap::Args;
use heap_analysis::paths::Exclusions;
use heap_analysis::sets::set::{classes_of, similar_class};
use heap_graph::{ClassIdx, Heap, HeapError, ObjIdx};
use hprof::source::split_number;
use hprof::{NoObjectId, ObjectId};
use std::fs;
use std::path::{Path, PathBuf};

/// The dump a command is about.
#[derive(Debug, Args)]
pub struct Dump {
    /// The dump: a file, `file#2`, or `-` for standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
}

impl Dump {
    /// Refuses a file that does not exist.
    pub fn refuse_missing(&self) -> Result<()> {
        match self.file.as_os_str() == "-" {
            true => Ok(()),
            false => refuse_missing(&self.file),
        }
    }
}

/// Refuses a dump whose file does not exist; `file#2` is the second dump in a file.
pub fn refuse_missing(file: &Path) -> Result<()> {
    let whole = split_number(file).0;
    match fs::metadata(file).or_else(|_| fs::metadata(whole)) {
        Ok(_) => Ok(()),
        Err(error) => {
            let what = file.display().to_string();
            Err(HeapError::Io { what, error }.into())
        }
    }
}

/// Reads an object id as answers print it: `0x7f00` or `@7f00`.
pub fn parse_id(text: &str) -> Result<ObjectId> {
    let id = text.parse();
    id.map_err(|error: NoObjectId| Usage(format!("{text}: {error}")).into())
}

/// Distinguishes a file and an object id, in either order.
pub fn file_and_id(words: &[String]) -> Result<(PathBuf, Option<ObjectId>)> {
    let marked = |w: &&String| w.starts_with("0x") || w.starts_with('@');
    match words {
        [file] => Ok((PathBuf::from(file), None)),
        [a, b] => {
            let (file, id) = if marked(&a) && !marked(&b) {
                (b, a)
            } else {
                (a, b)
            };
            Ok((PathBuf::from(file), Some(parse_id(id)?)))
        }
        _ => Err(Usage("expected a FILE and an object id".to_owned()).into()),
    }
}

/// The object of an id.
pub fn find_object(heap: &Heap, id: ObjectId) -> Result<ObjIdx> {
    heap.find(id)
        .ok_or_else(|| NotFound(format!("no object {id} in this dump")).into())
}

/// The classes of a name, as answers print names, or of an id; several loaders may each have one of the name.
pub fn find_classes(heap: &Heap, name: &str) -> Result<Vec<ClassIdx>> {
    let found = classes_of(heap, name);
    if found.is_empty() {
        return Err(no_class(name, similar_class(heap, name)).into());
    }
    Ok(found)
}

/// The error of a class that the dump does not have, with one of a similar name.
pub fn no_class(name: &str, similar: Option<&str>) -> NotFound {
    let hint = similar.map(|similar| format!("; did you mean {similar}?"));
    let hint = hint.unwrap_or_default();
    NotFound(format!("no class {name} in this dump{hint}"))
}

/// `--limit N`: 0 means all; not given means `default` in words and all in data.
pub fn limit(top: Option<usize>, is_data: bool, default: usize) -> Option<usize> {
    match top {
        Some(0) => None,
        Some(n) => Some(n),
        None if is_data => None,
        None => Some(default),
    }
}

/// What `--exclude` names, given once or several times: the exclusions to try one after the other.
pub(super) fn exclusions(words: &[String]) -> Result<Vec<Exclusions>, Usage> {
    let text = words.join(",");
    Exclusions::to_try((!words.is_empty()).then_some(&text)).map_err(Usage)
}
