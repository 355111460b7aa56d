//! The agent: where its library is, also for a JVM with another file system, and the order that begins a recording.

use super::embedded;
use crate::exit::Usage;
use anyhow::{Context, Result};
use jvm_observe::attach;
use jvm_observe::files::JvmFiles;
pub(crate) use jvm_observe::jvm::AGENT_LIBRARY as LIBRARY;
use jvm_observe::jvm::Jvm;
use std::path::{Path, PathBuf};

/// Joins two lists of options of the agent.
pub(crate) fn joined(words: &str, more: &str) -> String {
    let words = words.trim_end_matches(',');
    let separator = if words.is_empty() { "" } else { "," };
    format!("{words}{separator}{more}")
}

/// The agent library: from `--agent` or `TENURE_AGENT`; otherwise beside this program or in a `lib` folder next to it;
/// otherwise the one in this program, unpacked.
pub(crate) fn find(given: Option<&Path>) -> Result<PathBuf> {
    let from_environment = std::env::var_os("TENURE_AGENT").map(PathBuf::from);
    if let Some(path) = given.map(Path::to_path_buf).or(from_environment) {
        return path
            .canonicalize()
            .with_context(|| format!("no agent at {}", path.display()));
    }
    let program = std::env::current_exe().context("where this program is")?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let places = [
        folder.to_path_buf(),
        folder.join("../lib"),
        folder.join("../lib/tenure"),
    ];
    for place in &places {
        if let Ok(path) = place.join(LIBRARY).canonicalize() {
            return Ok(path);
        }
    }
    if let Some(path) = embedded::unpacked(LIBRARY)? {
        return Ok(path);
    }
    Err(Usage(format!(
        "{LIBRARY} is not beside {}; name it with --agent or TENURE_AGENT",
        program.display()
    ))
    .into())
}

/// The same for a JVM that is to load it: a loaded agent is found by its file name, so that one with another name could
/// not be ended.
pub(crate) fn loadable(given: Option<&Path>) -> Result<PathBuf> {
    let path = find(given)?;
    match path.file_name() == Some(LIBRARY.as_ref()) {
        true => Ok(path),
        false => {
            let text = format!(
                "{}: the agent library must be named {LIBRARY}",
                path.display()
            );
            Err(Usage(text).into())
        }
    }
}

/// How the agent's status begins while something is recorded.
pub(crate) const RECORDS: &str = "records ";

/// Begins a recording with these options, unless the JVM is being recorded: another recording would end that one. One
/// whose collector has disconnected is continued, if it has the same options. The agent decides, because another command
/// may begin a recording at the same time. `hint` follows the way out in the error.
pub(crate) fn begin(jvm: &Jvm, library: &str, options: &str, hint: &str) -> Result<String> {
    let begun = attach::order(jvm, library, &format!("unless-recorded,{options}"));
    begun.map_err(|error| match error.to_string() {
        status if status.starts_with(RECORDS) => {
            let (name, pid) = (jvm.name(), jvm.pid);
            let way = format!("`tenure attach {pid} stop` ends that recording{hint}");
            Usage(format!("{name} {status}; {way}")).into()
        }
        // So an agent answers that does not know the order.
        text if text.contains("general syntax error") && jvm.agent.is_some() => {
            let name = jvm.name();
            let text = "has an agent of another version, which stays until the program ends";
            Usage(format!("{name} {text}")).into()
        }
        _ => error.into(),
    })
}

/// A path of the library for the JVM: of the library itself, or of a copy if the JVM has another file system.
pub(crate) fn visible(jvm: &Jvm, given: Option<&Path>) -> Result<String> {
    if let Some(loaded) = &jvm.agent {
        return Ok(loaded.clone());
    }
    let library = loadable(given)?;
    if jvm.has_own_files() {
        return Ok(JvmFiles::of(jvm)?.library(&library, LIBRARY)?);
    }
    let path = library.to_str().context("the agent's path is not UTF-8")?;
    Ok(path.to_owned())
}
