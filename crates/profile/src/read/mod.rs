//! Files to profiles: the text and the binary form of the agent, and recordings of JFR.

mod binary;
mod jfr;
mod text;

pub use binary::StreamReader;

use crate::profile::Profile;
use hprof::{Diagnostics, HeaderError};

/// A file that holds no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoProfile {
    /// No known form: what is wrong with the header.
    Header(HeaderError),
    /// A heap dump without any profile record.
    OnlyHeap,
    /// Neither a heap dump nor a profile record.
    Empty,
}

impl std::fmt::Display for NoProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoProfile::Header(error) => error.fmt(f),
            NoProfile::Empty => f.write_str("the file holds no profile"),
            NoProfile::OnlyHeap => {
                f.write_str("it is a heap dump without a profile: try `tenure FILE`, or `tenure convert` for a flame graph of it")
            },
        }
    }
}

impl std::error::Error for NoProfile {}

/// Reads the profile of a (decompressed) file of any form. Tables of several dumps in one file
/// come together: samples, times and contention are summed (each dump begins again at zero),
/// allocation sites are those of the last dump (they never begin again).
///
/// # Errors
/// When the file is of no form.
pub fn read(data: &[u8]) -> Result<(Profile, Diagnostics), NoProfile> {
    if jfr::is_recording(data) {
        return jfr::read(data);
    }
    if hprof_text::is_text(data) {
        return Ok(text::read(data));
    }
    binary::read(data)
}
