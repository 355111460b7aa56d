//! Access to the recorded runs of the original agent (`oracle/README.md` in the shared folder).

#![allow(dead_code)] // Each test file uses its part.

use flate2::read::GzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};

/// `TENURE_SHARED/oracle`, or `../shared/oracle` beside the workspace; a line when it is absent.
pub(crate) fn folder() -> Option<PathBuf> {
    let shared = std::env::var_os("TENURE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let oracle = shared.join("oracle");
    if oracle.join("manifest.json").is_file() {
        return Some(oracle);
    }
    #[allow(clippy::print_stderr)]
    {
        eprintln!("skipped: no oracle at {}", oracle.display());
    }
    None
}

/// One recorded run.
pub(crate) struct Case {
    /// Its name.
    pub(crate) name: String,
    /// The exit code.
    pub(crate) exit: i64,
    /// The agent's option strings, one per `-agentlib:hprof` or `-Xrunhprof`.
    pub(crate) options: Vec<String>,
    /// The content of `_JAVA_HPROF_OPTIONS`.
    pub(crate) environment: Option<String>,
    folder: PathBuf,
}

impl Case {
    /// A file of the case, unpacked; `None` when the run left none of that name.
    pub(crate) fn file(&self, name: &str) -> Option<Vec<u8>> {
        if let Ok(bytes) = std::fs::read(self.folder.join(name)) {
            return Some(bytes);
        }
        let packed = std::fs::read(self.folder.join(format!("{name}.gz"))).ok()?;
        let mut bytes = Vec::new();
        GzDecoder::new(&packed[..])
            .read_to_end(&mut bytes)
            .expect("gzip");
        Some(bytes)
    }

    /// A file of the case as text; empty when there is none.
    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.file(name).unwrap_or_default()).into_owned()
    }

    /// Names of every file the run left, without the packing.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder)
            .expect("case folder")
            .flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names
            .map(|name| name.trim_end_matches(".gz").to_owned())
            .collect();
        names.sort();
        names
    }
}

/// Every recorded run; none when the oracle is absent.
pub(crate) fn cases() -> Vec<Case> {
    let Some(oracle) = folder() else {
        return Vec::new();
    };
    let manifest = std::fs::read(oracle.join("manifest.json")).expect("manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let runs = manifest.as_object().expect("an object");
    runs.iter()
        .map(|(name, run)| {
            let words = run["argv"].as_array().expect("argv");
            let words = words.iter().filter_map(serde_json::Value::as_str);
            let options = words.filter_map(|word| {
                let rest = word
                    .strip_prefix("-agentlib:hprof")
                    .or(word.strip_prefix("-Xrunhprof"));
                rest.map(|rest| rest.trim_start_matches(['=', ':']).to_owned())
            });
            let environment = run["env"].get("_JAVA_HPROF_OPTIONS");
            Case {
                name: name.clone(),
                exit: run["rc"].as_i64().expect("rc"),
                options: options.collect(),
                environment: environment.and_then(|v| v.as_str()).map(str::to_owned),
                folder: oracle.join("cases").join(name),
            }
        })
        .collect()
}
