//! The position at which a stream is invalid.

/// What is wrong with a stream, and where. Everything before it is valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {what}: expected {expected}, found {found}")]
pub struct Damage {
    /// Bytes from the beginning of the stream.
    pub offset: u64,
    /// The part of the format.
    pub what: &'static str,
    /// The content that the format requires there.
    pub expected: String,
    /// The actual content.
    pub found: String,
}

impl Damage {
    pub(crate) fn new(
        offset: u64,
        what: &'static str,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Self {
        Self {
            offset,
            what,
            expected: expected.into(),
            found: found.to_string(),
        }
    }
}
