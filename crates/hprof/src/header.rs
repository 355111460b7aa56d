//! The first bytes of a dump: version string, id width, time stamp.

use crate::IdSize;
use crate::foreign;
use std::fmt;

/// The file header ("The binary output begins with the information").
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Header {
    /// The version string without its final NUL, e.g. `JAVA PROFILE 1.0.2`. Nothing else is derived from it.
    pub format: String,
    /// Width of every id.
    pub id_size: IdSize,
    /// Milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// Bytes of the header; the first record starts here.
    pub len: u64,
}

/// Why a file is not an HPROF binary dump.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is empty.
    Empty,
    /// It does not begin with the magic words.
    Magic {
        /// The first bytes, printable.
        found: String,
    },
    /// A file of another kind.
    Foreign(&'static str),
    /// The header is truncated.
    Cut {
        /// Bytes that the header needs.
        expected: u64,
        /// Bytes that the file has.
        found: u64,
    },
    /// An id width other than 4 or 8.
    IdSize {
        /// Offset of the word.
        offset: u64,
        /// Its value.
        found: u32,
    },
    /// The text output of the agent, which has no heap graph.
    TextProfile {
        /// The first line.
        found: String,
    },
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Empty => f.write_str(
                "the file is empty (0 bytes): the dump was never written, or the disk was full",
            ),
            HeaderError::Magic { found } => write!(
                f,
                "not an HPROF dump: expected \"JAVA PROFILE 1.0.x\" at offset 0, found {found}"
            ),
            HeaderError::Foreign(kind) => write!(f, "not an HPROF dump but {kind}"),
            HeaderError::Cut { expected, found } => write!(
                f,
                "the file ends inside the header: expected at least {expected} bytes, found {found}"
            ),
            HeaderError::IdSize { offset, found } => write!(
                f,
                "header at offset {offset}: identifier size: expected 4 or 8, found {found}"
            ),
            HeaderError::TextProfile { found } => write!(
                f,
                "this is a text profile ({found}), not a heap dump; tenure profile shows it"
            ),
        }
    }
}

impl std::error::Error for HeaderError {}

const MAGIC: &[u8] = b"JAVA PROFILE ";
/// The longest version string that is accepted; the real ones have 18 bytes.
const LONGEST_VERSION: usize = 64;

impl Header {
    /// Reads the header from the first bytes of a file.
    ///
    /// # Errors
    /// When the file does not begin with the header of a binary dump, or ends inside it, or its ids have neither 4 nor 8
    /// bytes. The error names other kinds of files that are recognized.
    pub fn parse(data: &[u8]) -> Result<Header, HeaderError> {
        if data.is_empty() {
            return Err(HeaderError::Empty);
        }
        if !data.starts_with(&MAGIC[..MAGIC.len().min(data.len())]) {
            return Err(match foreign::recognize(data) {
                Some(kind) => HeaderError::Foreign(kind),
                None => HeaderError::Magic {
                    found: printable(data),
                },
            });
        }
        let window = &data[..data.len().min(LONGEST_VERSION)];
        let Some(nul) = window.iter().position(|&b| b == 0) else {
            if window.len() < LONGEST_VERSION {
                return Err(HeaderError::Cut {
                    expected: 31,
                    found: data.len() as u64,
                });
            }
            return Err(match window.iter().position(|&b| b == b'\n') {
                Some(end) => HeaderError::TextProfile {
                    found: printable(&window[..end]),
                },
                None => HeaderError::Magic {
                    found: printable(data),
                },
            });
        };
        let word = |at: usize| {
            let bytes = data.get(at..at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        let cut = HeaderError::Cut {
            expected: nul as u64 + 13,
            found: data.len() as u64,
        };
        let (Some(ids), Some(high), Some(low)) = (word(nul + 1), word(nul + 5), word(nul + 9))
        else {
            return Err(cut);
        };
        let id_size = IdSize::from_u32(ids).ok_or(HeaderError::IdSize {
            offset: nul as u64 + 1,
            found: ids,
        })?;
        Ok(Header {
            format: String::from_utf8_lossy(&data[..nul]).into_owned(),
            id_size,
            timestamp_ms: u64::from(high) << 32 | u64::from(low),
            len: nul as u64 + 13,
        })
    }

    /// The header's bytes, exactly as they were read.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.format.clone().into_bytes();
        out.push(0);
        out.extend((self.id_size.bytes() as u32).to_be_bytes());
        out.extend(self.timestamp_ms.to_be_bytes());
        out
    }
}

fn printable(data: &[u8]) -> String {
    let shown = &data[..data.len().min(24)];
    format!("\"{}\"", shown.escape_ascii())
}
