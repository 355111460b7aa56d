//! Damaged dumps: `mutate_hprof.py` of the corpus, run into a temporary folder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The damaged variants of one good dump. The files live as long as this value.
#[derive(Debug)]
pub struct Mutants {
    /// The variants in the order of the script.
    pub all: Vec<Mutant>,
    folder: tempfile::TempDir,
}

/// One damaged file, a row of the script's `INDEX.tsv`.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The file.
    pub path: PathBuf,
    /// Kind of damage, `cut-sub-21`.
    pub kind: String,
    /// What was changed.
    pub what: String,
    /// What a reader must do.
    pub must: String,
}

impl Mutants {
    /// The folder with the files; free for more.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Why there are no mutants.
pub const NO_MUTANTS: &str = "needs python3 and the shared corpus (mutate_hprof.py)";

/// Every named damage of `good` and `random` random ones. `None` without python3 or the script;
/// report this with [`crate::skip`] and [`NO_MUTANTS`].
pub fn mutants(good: &Path, random: u32, seed: u32) -> Option<Mutants> {
    let script = crate::corpus::shared()?.join("corpus/tools/mutate_hprof.py");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = Command::new("python3")
        .arg(script)
        .args([good, folder.path()])
        .args(["--n", &random.to_string(), "--seed", &seed.to_string()])
        .output()
        .ok()?;
    let printed = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "mutate_hprof.py failed: {printed}");
    let index = std::fs::read_to_string(folder.path().join("INDEX.tsv")).expect("INDEX.tsv");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        Mutant {
            path: folder.path().join(cells[0]),
            kind: cells[1].to_owned(),
            what: cells[2].to_owned(),
            must: cells[3].to_owned(),
        }
    };
    let all = index.lines().map(row).collect();
    Some(Mutants { all, folder })
}
