//! Files to profiles: the text and the binary form of the agent.

mod binary;
mod text;

pub use binary::StreamReader;

use crate::profile::Profile;
use hprof::{Diagnostics, HeaderError};

/// A file that holds no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoProfile {
    /// Neither form: what is wrong with the header.
    Header(HeaderError),
    /// A dump without any profile record.
    OnlyHeap,
}

impl std::fmt::Display for NoProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoProfile::Header(error) => error.fmt(f),
            NoProfile::OnlyHeap => f.write_str("the file holds no profile"),
        }
    }
}

impl std::error::Error for NoProfile {}

/// Reads the profile of a (decompressed) file of either form. Tables of several dumps in one file
/// come together: samples, times and contention are summed (each dump begins again at zero),
/// allocation sites are those of the last dump (they never begin again).
///
/// # Errors
/// When the file is of neither form.
pub fn read(data: &[u8]) -> Result<(Profile, Diagnostics), NoProfile> {
    if hprof::text::is_text(data) {
        return Ok(text::read(data));
    }
    binary::read(data)
}
