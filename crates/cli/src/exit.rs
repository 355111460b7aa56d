//! How a run ends. The codes are part of the interface (`tenure --help`, docs/reference/commands.md).

use crate::output::note;
use crate::system;
use anyhow::Error;
use heap_graph::HeapError;
use hprof::source::SourceError;
use jvm_observe::ObserveError;
use std::fmt;
use std::io;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Answered.
    Ok,
    /// Answered, and the answer is no: nothing found, a gate not passed.
    No,
    /// The command line is invalid.
    Usage,
    /// The input cannot be used at all, or the output cannot be written.
    Input,
    /// Answered from a damaged input.
    Damaged,
    /// A time limit ended the work: partial result.
    Partial,
    /// A program was run: its exit code.
    Program(u8),
}

impl Exit {
    /// The process exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::Input => 3,
            Exit::Damaged => 4,
            Exit::Partial => 5,
            Exit::Program(code) => code,
        }
    }
}

/// An error that is the fault of the command line.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A search that found nothing.
#[derive(Debug)]
pub struct NotFound(pub String);

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotFound {}

/// Says what clap says: help and version on stdout, faults on stderr.
pub(crate) fn of_clap(error: &clap::Error) -> u8 {
    // A closed pipe is no fault here either.
    let _ = error.print();
    if error.use_stderr() {
        Exit::Usage.code()
    } else {
        Exit::Ok.code()
    }
}

/// Says an error with its causes, and gives its code. A reader that went away (`| head`) is
/// success.
pub(crate) fn of_error(error: &Error) -> u8 {
    let broken_pipe = error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    });
    if broken_pipe {
        return Exit::Ok.code();
    }
    let hint = running(error);
    let text = format!("{error:#}{}", hint.as_deref().unwrap_or_default());
    note(&text);
    if hint.is_some() || error.is::<Usage>() {
        return Exit::Usage.code();
    }
    if error.is::<NotFound>() {
        return Exit::No.code();
    }
    match error.downcast_ref() {
        Some(ObserveError::Ambiguous(_)) => Exit::Usage.code(),
        Some(ObserveError::NotFound(_)) => Exit::No.code(),
        _ => Exit::Input.code(),
    }
}

/// The hint for a dump that does not exist, if its name means a running JVM.
fn running(error: &Error) -> Option<String> {
    let source = match error.downcast_ref() {
        Some(HeapError::Source(source)) => Some(source),
        _ => error.downcast_ref(),
    };
    let Some(SourceError::Read { path, error }) = source else {
        return None;
    };
    let is_missing = error.kind() == io::ErrorKind::NotFound && !path.contains('/');
    let is_running = is_missing && system::is_running_jvm(path);
    is_running.then(|| {
        format!(
            "; {path} is a running JVM: tenure dump {path} writes its heap to a file, tenure watch {path} shows it"
        )
    })
}
