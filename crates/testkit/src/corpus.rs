//! The shared corpus: real dumps, the answers of an independent reader, the JVM's own histograms.
//! It lies beside the workspace (`../shared`), or where `TENURE_SHARED` says, and may be absent.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The shared folder, when there is one.
pub fn shared() -> Option<PathBuf> {
    let beside = || workspace().join("../shared");
    let dir = std::env::var_os("TENURE_SHARED").map_or_else(beside, PathBuf::from);
    dir.join("corpus").is_dir().then_some(dir)
}

/// The root of this workspace. The folder that cargo runs the test in comes first: worktrees that
/// share a target folder also share what was compiled into it.
pub fn workspace() -> PathBuf {
    let compiled = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let running = std::env::var_os("CARGO_MANIFEST_DIR").map_or(compiled.clone(), PathBuf::from);
    let is_root = |d: &&Path| d.join("crates/testkit").is_dir();
    let above = running
        .ancestors()
        .find(is_root)
        .or(compiled.ancestors().find(is_root));
    above.unwrap_or(&compiled).to_path_buf()
}

/// A dump of the corpus.
#[derive(Clone, Debug)]
pub struct CorpusDump {
    /// File name without folder, as it lies on disk.
    pub name: String,
    /// Where it lies; `.gz` files are to be read by content.
    pub path: PathBuf,
    /// The answers of `reference_hprof.py`.
    pub expected: Option<Expected>,
    /// The JVM's class histogram of the same moment.
    pub histogram: Option<Vec<JvmHistogramRow>>,
}

impl CorpusDump {
    /// The dump's bytes, unpacked.
    pub fn bytes(&self) -> Vec<u8> {
        unpacked(&self.path)
    }
}

/// The expected answers of one dump, in the plain model written in the head of `reference_hprof.py`.
#[derive(Clone, Debug, Deserialize)]
pub struct Expected {
    /// The dump: `own/NAME` or `github/OWNER+REPO/FILE`.
    pub file: String,
    /// Version string.
    pub format: String,
    /// Id width in bytes.
    pub id_size: u32,
    /// Header timestamp.
    pub timestamp_ms: u64,
    /// Bytes of the file, unpacked.
    pub bytes: u64,
    /// Top-level records by name.
    pub records: BTreeMap<String, u64>,
    /// Sub-records by tag, `0x21`.
    pub sub_records: BTreeMap<String, u64>,
    /// Root records by kind.
    pub gc_roots: BTreeMap<String, u64>,
    /// Objects that roots name, each once.
    pub distinct_root_objects: u64,
    /// Root records that name no object.
    pub dangling_roots: u64,
    /// What was wrong with the file.
    pub errors: Vec<String>,
    /// Object counts: total, classes, instances, object_arrays, primitive_arrays.
    pub objects: BTreeMap<String, u64>,
    /// Plain bytes of all objects.
    pub plain_bytes: u64,
    /// All objects by readable class name; classes of the same name are added up.
    pub histogram: BTreeMap<String, ExpectedRow>,
    /// What the roots reach.
    pub reachable: ExpectedReach,
    /// The same without the referents of weak, soft, phantom and final references.
    pub reachable_without_weak_referents: ExpectedReach,
    /// Dominators and retained sizes, where they were computed.
    pub dominators: Option<ExpectedDominators>,
    /// Every other member of the file.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// A histogram row of the expected answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ExpectedRow {
    /// Objects.
    pub count: u64,
    /// Bytes in the plain model.
    pub plain_bytes: u64,
    /// Distinct class ids under this name.
    pub classes: u64,
}

/// A reachable set of the expected answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ExpectedReach {
    /// Objects, classes included.
    pub objects: u64,
    /// Their plain bytes.
    pub plain_bytes: u64,
}

/// The dominator tree of the expected answers.
#[derive(Clone, Debug, Deserialize)]
pub struct ExpectedDominators {
    /// Retained by the virtual root.
    pub total_retained_of_root: u64,
    /// Objects in the tree.
    pub objects: u64,
    /// Children of the virtual root.
    pub direct_children_of_root: u64,
    /// SHA-256 over all lines `object-hex idom-hex retained`.
    pub sha256_of_all: String,
    /// The hundred objects with the largest retained sizes.
    #[serde(default)]
    pub top100: Vec<ExpectedTop>,
}

/// One of the largest objects.
#[derive(Clone, Debug, Deserialize)]
pub struct ExpectedTop {
    /// Object id, `0x` and hex.
    pub id: String,
    /// Class name, or `class NAME`.
    pub label: String,
    /// Retained plain bytes.
    pub retained: u64,
    /// Retained objects.
    pub objects: u64,
    /// Immediate dominator, `0x0` for the virtual root.
    pub idom: String,
}

/// A row of the JVM's own class histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JvmHistogramRow {
    /// Name as the JVM prints it, without the module: `[B`, `java.lang.String`.
    pub class: String,
    /// Instances.
    pub instances: u64,
    /// Bytes, header and padding included.
    pub bytes: u64,
}

/// All dumps of the corpus by name, or `None` when the corpus is absent (report this with
/// [`crate::skip`]).
pub fn corpus() -> Option<Vec<CorpusDump>> {
    let root = shared()?.join("corpus");
    let mut expected = read_expected(&root.join("expected"));
    let mut dumps = Vec::new();
    for folder in ["own", "public"] {
        for path in files(&root.join(folder)) {
            let name = file_name(&path);
            if !(name.contains(".hprof") || name.contains(".bin")) || name.ends_with(".facts") {
                continue;
            }
            let stem = name.trim_end_matches(".gz").trim_end_matches(".hprof");
            let histo = root.join(folder).join(format!("{stem}.histo"));
            dumps.push(CorpusDump {
                expected: expected.remove(name.trim_end_matches(".gz")),
                histogram: std::fs::read_to_string(histo)
                    .ok()
                    .map(|t| parse_histogram(&t)),
                name,
                path,
            });
        }
    }
    let left: Vec<_> = expected.keys().collect();
    assert!(left.is_empty(), "expected answers without a dump: {left:?}");
    dumps.sort_by(|a, b| a.name.cmp(&b.name));
    Some(dumps)
}

/// One dump of the corpus by the name of its file, with or without `.gz`.
pub fn corpus_dump(name: &str) -> Option<CorpusDump> {
    let all = corpus()?;
    let found = all
        .into_iter()
        .find(|d| d.name.trim_end_matches(".gz") == name.trim_end_matches(".gz"));
    Some(found.unwrap_or_else(|| panic!("the corpus has no {name}")))
}

/// Rows of the text that `jmap -histo` and `jcmd GC.class_histogram` print.
pub fn parse_histogram(text: &str) -> Vec<JvmHistogramRow> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next()?.strip_suffix(':')?.parse::<u64>().ok()?;
        Some(JvmHistogramRow {
            instances: words.next()?.parse().ok()?,
            bytes: words.next()?.parse().ok()?,
            class: words.next()?.to_owned(),
        })
    };
    text.lines().filter_map(row).collect()
}

/// A file's bytes; gzip is known by content and unpacked, all members.
pub fn unpacked(path: &Path) -> Vec<u8> {
    let raw = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    if !raw.starts_with(&[0x1f, 0x8b]) {
        return raw;
    }
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(raw.as_slice())
        .read_to_end(&mut out)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    out
}

fn read_expected(folder: &Path) -> BTreeMap<String, Expected> {
    let mut by_name = BTreeMap::new();
    for path in files(folder) {
        let parsed: Expected = serde_json::from_slice(&unpacked(&path))
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // github/OWNER+REPO/FILE lies at public/OWNER+REPO__FILE.
        let (place, rest) = parsed.file.split_once('/').expect("a folder in front");
        let name = if place == "own" {
            rest.to_owned()
        } else {
            rest.replace('/', "__")
        };
        by_name.insert(name.trim_end_matches(".gz").to_owned(), parsed);
    }
    by_name
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries
        .map(|e| e.expect("a readable folder").path())
        .collect()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
