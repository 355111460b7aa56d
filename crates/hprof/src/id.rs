//! The numbers in a dump, each with its own type so that they cannot be confused.

use std::fmt;
use std::str::FromStr;

/// A byte position in the (decoded) dump file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FileOffset(pub u64);

/// An identifier exactly as in the file: an address for HotSpot and ART, a serial number for the JDK agent. Names,
/// classes and objects share this number space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ObjectId(pub u64);

/// A serial number of a class, thread or stack trace (u4 in the format).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Serial(pub u32);

/// A number of bytes of heap (not of file).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bytes(pub u64);

impl fmt::Display for FileOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// The text is not an object id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoObjectId;

impl fmt::Display for NoObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an object id such as 0x7f001000")
    }
}

impl std::error::Error for NoObjectId {}

impl FromStr for ObjectId {
    type Err = NoObjectId;

    /// Parses an id as answers print it, `0x7f00`, with an `@` before it or instead of `0x`. Digits alone are refused,
    /// because they could be decimal or hexadecimal and so mean two objects.
    fn from_str(text: &str) -> Result<ObjectId, NoObjectId> {
        let rest = text.strip_prefix('@');
        let plain = rest.unwrap_or(text);
        let digits = plain
            .strip_prefix("0x")
            .or_else(|| plain.strip_prefix("0X"))
            .or(rest);
        let digits = digits
            .filter(|digits| !digits.is_empty())
            .ok_or(NoObjectId)?;
        let mut id = 0u64;
        for digit in digits.bytes() {
            let value = char::from(digit).to_digit(16).filter(|_| id >> 60 == 0);
            id = id << 4 | u64::from(value.ok_or(NoObjectId)?);
        }
        Ok(ObjectId(id))
    }
}

impl ObjectId {
    /// The null reference.
    pub const NULL: ObjectId = ObjectId(0);

    /// True for the null reference.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// Width of an identifier in this file. Every id of a file has the same width; it does not follow from the version
/// string (1.0.1 with 8 bytes and 1.0.2 with 4 both exist).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum IdSize {
    /// 4-byte identifiers.
    Four,
    /// 8-byte identifiers.
    Eight,
}

impl IdSize {
    /// The width in bytes: 4 or 8.
    pub const fn bytes(self) -> usize {
        match self {
            IdSize::Four => 4,
            IdSize::Eight => 8,
        }
    }

    /// From the header word; `None` for anything but 4 and 8.
    pub fn from_u32(n: u32) -> Option<IdSize> {
        match n {
            4 => Some(IdSize::Four),
            8 => Some(IdSize::Eight),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_one_object_or_none() {
        let check = |text: &str, id: Option<u64>| {
            assert_eq!(text.parse().ok(), id.map(ObjectId), "{text}");
        };
        for text in ["0x10", "0X10", "@0x10", "@10"] {
            check(text, Some(16));
        }
        check(&ObjectId(u64::MAX).to_string(), Some(u64::MAX));
        check("0x0000000000000000000aF", Some(0xaf));
        for text in [
            "10",
            "7f00",
            "",
            "@",
            "0x",
            "0x+10",
            "0x1_0",
            "@@10",
            "0x1ffffffffffffffff",
            "x",
        ] {
            check(text, None);
        }
    }
}
