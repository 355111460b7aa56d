//! The messages with which the agent refuses to start, with the text of the original.

use thiserror::Error;

/// A fault in the option string. The text is the original's up to its ` [file:line]` suffix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("hprof option error: {fault} ({options})")]
pub struct OptionError {
    /// What is wrong.
    pub fault: OptionFault,
    /// The whole option string, the environment's part included.
    pub options: String,
}

impl OptionError {
    /// The process ends with this code.
    pub const EXIT_CODE: i32 = 1;
}

/// The kind of fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OptionFault {
    /// An unknown option name, or a word without `=`.
    #[error("Unknown option: {0}")]
    Unknown(String),
    /// An empty name or one of more than 15 bytes.
    #[error("general syntax error parsing options")]
    General,
    /// An empty or too long value; the text is the option's form.
    #[error("syntax error parsing {0}")]
    Syntax(&'static str),
    /// A value outside the option's set.
    #[error("{option} option value must be {demand}")]
    Value {
        /// The option's name.
        option: &'static str,
        /// The values that it takes.
        demand: &'static str,
    },
    /// An option that only modifies others was given without any of those.
    #[error("{option}= selects nothing to record: it needs {needs}")]
    Alone {
        /// The option's name.
        option: &'static str,
        /// The options that it modifies.
        needs: &'static str,
    },
    /// `cpu=times` or `cpu=old` together with `format=b` in compat mode.
    #[error("cpu=times|old is not supported with format=b")]
    TimesBinary,
    /// `monitor=y` together with `format=b` in compat mode.
    #[error("monitor=y is not supported with format=b")]
    MonitorBinary,
    /// A second `file` or `net`.
    #[error("file or net options should only appear once")]
    TwoOutputs,
    /// `net` with an empty host.
    #[error("net option missing ':'")]
    NetColon,
    /// `net` without a port.
    #[error("net option missing port")]
    NetPort,
    /// An option that old versions had; the text names the VM's replacement.
    #[error("The {option} option was removed, use -XX:OnError='{instead} %%p'")]
    Removed {
        /// The option's name.
        option: &'static str,
        /// The command the message recommends.
        instead: &'static str,
    },
}

/// A failure after the options were parsed, while the agent opens its output.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StartError {
    /// No collector at the address of `net`.
    #[error("can't connect to {host}:{port}")]
    Connect {
        /// Host as given.
        host: String,
        /// Port as given, even when it is out of range.
        port: i64,
    },
    /// The recording would be sent to another machine without protection.
    #[error(
        "net={0} is another machine: give secret-file=FILE, which its tenure listen --secret-file gets, \
         too, or insecure=y"
    )]
    Unprotected(String),
    /// The collector does not know the secret, or the file of the secret cannot be used.
    #[error("no profile goes to {0}: {1}")]
    Stranger(String, String),
    /// The output file cannot be created, with the system's reason. The name is `(null)` for a `net` whose port is 0.
    #[error("can't create profile file: {0}")]
    ProfileFile(String, Option<String>),
    /// The output file of heap dumps cannot be created: the original created a temporary file beside it first.
    #[error("can't create temp heap file: {0}.TMP")]
    TempHeapFile(String, Option<String>),
    /// The agent is in this VM already.
    #[error(
        "Cannot load this JVM TI agent twice, check your java command line for duplicate hprof options."
    )]
    LoadedTwice,
}

impl StartError {
    /// The code the process ends with.
    pub fn exit_code(&self) -> i32 {
        match self {
            StartError::Connect { .. }
            | StartError::ProfileFile(..)
            | StartError::Unprotected(_)
            | StartError::Stranger(..) => 1,
            StartError::TempHeapFile(..) | StartError::LoadedTwice => 9,
        }
    }

    /// The message with the system's reason, which the original did not print.
    pub fn with_reason(&self) -> String {
        match self {
            StartError::ProfileFile(name, Some(reason))
            | StartError::TempHeapFile(name, Some(reason)) => {
                format!("can't create profile file: {name}: {reason}")
            }
            _ => self.to_string(),
        }
    }

    /// True when the original also printed [`TERMINATED`] on a second line.
    pub fn is_fatal(&self) -> bool {
        self.exit_code() == 9
    }
}

/// The prefix of every message on standard error.
pub const ERROR_PREFIX: &str = "HPROF ERROR: ";

/// The second line of a fatal error.
pub const TERMINATED: &str = "HPROF TERMINATED PROCESS";
