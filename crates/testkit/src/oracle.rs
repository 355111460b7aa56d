//! The recorded runs of the original agent (`oracle/README.md` in the shared folder): what was
//! asked, what it printed, which files it left, what went over its socket.

use flate2::read::GzDecoder;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

/// The folder `oracle` of the shared one; `None` and a line when it is absent.
pub fn folder() -> Option<PathBuf> {
    let oracle = crate::corpus::shared().map(|shared| shared.join("oracle"));
    let found = oracle.filter(|oracle| oracle.join("manifest.json").is_file());
    if found.is_none() {
        crate::skip(
            "the recorded runs",
            crate::Need::Shared,
            "no oracle beside the workspace",
        );
    }
    found
}

/// One recorded run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The exit code.
    pub exit: i64,
    /// The words behind `java`; `cls` is the folder of the compiled programs.
    pub words: Vec<String>,
    /// The agent's option strings, one per `-agentlib:hprof` or `-Xrunhprof`.
    pub options: Vec<String>,
    /// The content of `_JAVA_HPROF_OPTIONS`.
    pub environment: Option<String>,
    /// Signals that were sent, by name, and when after the start.
    pub signals: Vec<(Duration, String)>,
    /// Files that the run left in its folder, with their sizes.
    pub left: Vec<(String, u64)>,
    folder: PathBuf,
}

/// What the collector of a socket run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Bytes of a command.
    Bytes(Vec<u8>),
    /// It closed the connection.
    Close,
}

impl Case {
    /// A file of the case, unpacked; `None` when the run left none of that name.
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
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

    /// The program and its arguments.
    pub fn program(&self) -> &[String] {
        let at = self.words.iter().position(|word| word == "cls");
        &self.words[at.map_or(0, |at| at + 1)..]
    }

    /// What the collector did in a socket run, and when after the connection.
    pub fn peer(&self) -> Vec<(Duration, Sent)> {
        let transcript = self.text("transcript.txt");
        let lines = transcript.lines().filter_map(|line| {
            let (time, rest) = line.split_once(" SEND ")?;
            let time = Duration::from_secs_f64(time.parse().ok()?);
            let rest = rest.split(" (").next()?;
            let bytes = hex(rest.split(' ').next_back()?);
            Some((time, bytes.map_or(Sent::Close, Sent::Bytes)))
        });
        lines.collect()
    }

    /// A file of the case as text; empty when there is none.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.file(name).unwrap_or_default()).into_owned()
    }

    /// Names of every file the run left, without the packing.
    pub fn files(&self) -> Vec<String> {
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

/// The bytes of an even number of hexadecimal digits.
fn hex(digits: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}

/// `(1.5, 'SIGQUIT')` in a note.
fn signals(note: &str) -> Vec<(Duration, String)> {
    let parts = note.split('(').filter_map(|part| {
        let (time, name) = part.split(')').next()?.split_once(", ")?;
        let time = Duration::from_secs_f64(time.parse().ok()?);
        Some((time, name.trim_matches('\'').to_owned()))
    });
    parts.collect()
}

/// Every recorded run; none when the oracle is absent.
pub fn cases() -> Vec<Case> {
    let Some(oracle) = folder() else {
        return Vec::new();
    };
    let manifest = std::fs::read(oracle.join("manifest.json")).expect("manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let runs = manifest.as_object().expect("an object");
    runs.iter()
        .map(|(name, run)| {
            let words = run["argv"].as_array().expect("argv");
            let words = words.iter().skip(1).filter_map(serde_json::Value::as_str);
            let words: Vec<String> = words.map(str::to_owned).collect();
            let options = words.iter().filter_map(|word| {
                let rest = word
                    .strip_prefix("-agentlib:hprof")
                    .or(word.strip_prefix("-Xrunhprof"));
                rest.map(|rest| rest.trim_start_matches(['=', ':']).to_owned())
            });
            let files = run["files"].as_object().into_iter().flatten();
            let left = files.map(|(name, size)| (name.clone(), size.as_u64().unwrap_or(0)));
            let environment = run["env"].get("_JAVA_HPROF_OPTIONS");
            Case {
                name: name.clone(),
                exit: run["rc"].as_i64().expect("rc"),
                options: options.collect(),
                environment: environment.and_then(|v| v.as_str()).map(str::to_owned),
                signals: signals(run["note"].as_str().unwrap_or_default()),
                left: left.collect(),
                folder: oracle.join("cases").join(name),
                words: words.clone(),
            }
        })
        .collect()
}
