//! Reads files into profiles: the text and the binary form of the agent, and recordings of JFR.

mod binary;
mod jfr;
mod remarks;
mod text;
mod threads;

pub use binary::{AGENT_NAMES, SHARED_NAMES, StreamReader};

use crate::profile::Profile;
use hprof::{Diagnostics, HeaderError};

/// Why a file contains no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoProfile {
    /// It has no known form; this is the fault in its header.
    Header(HeaderError),
    /// It is a heap dump without any profile record.
    OnlyHeap,
    /// It has neither a heap dump nor a profile record.
    Empty,
}

impl std::fmt::Display for NoProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoProfile::Header(HeaderError::Magic { found }) => write!(
                f,
                "not a profile: expected a recording of the agent (text or binary) or of JFR, found {found}; .pb.gz, .collapsed, .json and .html are written and not read"
            ),
            NoProfile::Header(error) => error.fmt(f),
            NoProfile::Empty => f.write_str("the file holds no profile"),
            NoProfile::OnlyHeap => {
                f.write_str("it is a heap dump without a profile: try `tenure FILE`, or `tenure convert` for a flame graph of it")
            },
        }
    }
}

impl std::error::Error for NoProfile {}

/// Reads the profile of a (decompressed) file of any form. Tables of several dumps in one file are combined: samples,
/// times and contention are summed (each dump starts again at zero), allocation sites are those of the last dump (their
/// counts are never reset).
///
/// # Errors
/// The file has no known form.
pub fn read(data: &[u8]) -> Result<(Profile, Diagnostics), NoProfile> {
    if jfr::is_recording(data) {
        return jfr::read(data);
    }
    if hprof_text::is_text(data) {
        return Ok(text::read(data));
    }
    read_binary(data)
}

/// As [`read`], for the binary form of the agent only, without the readers of the others.
///
/// # Errors
/// The file has another form.
pub fn read_binary(data: &[u8]) -> Result<(Profile, Diagnostics), NoProfile> {
    binary::read(data)
}
