//! The headers of a tar archive (POSIX ustar and pax, GNU). A header can state a name or a list of properties of any
//! length, so these are read up to a limit: an archive may be hostile.

use std::io::{self, Read};

/// Headers have this length, and contents are padded to a multiple of it.
pub(super) const BLOCK: usize = 512;
/// The longest name or list of properties that is read.
const MOST: u64 = 1 << 20;

/// The header of a file.
pub(super) struct Head {
    pub(super) name: String,
    pub(super) size: u64,
}

/// Whether this block is a header: it has the magic bytes and a correct checksum.
pub(super) fn is_header(block: &[u8]) -> bool {
    block.len() == BLOCK && block[257..].starts_with(b"ustar") && has_checksum(block)
}

/// Bytes of padding after a content of this size.
pub(super) fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64) - size
}

/// The next file of an archive whose reader is at a header; `None` at its end.
///
/// # Errors
/// When the archive cannot be read, a header is damaged, or a length exceeds the limit.
pub(super) fn next(reader: &mut dyn Read) -> io::Result<Option<Head>> {
    let (mut name, mut size) = (None, None);
    loop {
        let mut block = Vec::with_capacity(BLOCK);
        reader.take(BLOCK as u64).read_to_end(&mut block)?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if block.len() < BLOCK || !has_checksum(&block) {
            return Err(io::Error::other("a header is damaged"));
        }
        let own =
            number(&block[124..136]).ok_or_else(|| io::Error::other("a size is no number"))?;
        match block[156] {
            b'L' => {
                let text = text(reader, own)?;
                name = text.split(|byte| *byte == 0).next().map(<[u8]>::to_vec);
            }
            b'x' => {
                let text = text(reader, own)?;
                size = property(&text, b"size").and_then(decimal).or(size);
                name = property(&text, b"path").map(<[u8]>::to_vec).or(name);
            }
            b'K' | b'g' => drop(text(reader, own)?),
            _ => {
                let short = || {
                    block[..100]
                        .split(|byte| *byte == 0)
                        .next()
                        .map(<[u8]>::to_vec)
                };
                let name = name.or_else(short).unwrap_or_default();
                return Ok(Some(Head {
                    name: String::from_utf8_lossy(&name).into_owned(),
                    size: size.unwrap_or(own),
                }));
            }
        }
    }
}

/// Whether the checksum is correct: the sum of all bytes, with spaces instead of the checksum itself.
fn has_checksum(block: &[u8]) -> bool {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let spaces = 8 * u64::from(b' ');
    number(&block[148..156]) == Some(sum(&block[..148]) + spaces + sum(&block[156..]))
}

/// A number of a header: octal digits, or, for GNU's large numbers, all bits after the first.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let (high, low) = field.split_at(field.len() - 8);
        let is_small = high[0] == 0x80 && high[1..].iter().all(|byte| *byte == 0);
        let low = low.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        return Some(low).filter(|low| is_small && *low < 1 << 62);
    }
    let digits = field.trim_ascii().split(|byte| *byte == 0).next()?;
    let digits = std::str::from_utf8(digits.trim_ascii()).ok()?;
    match digits {
        "" => Some(0),
        digits => u64::from_str_radix(digits, 8).ok(),
    }
}

/// The content of a header's extension, and its padding.
fn text(reader: &mut dyn Read, size: u64) -> io::Result<Vec<u8>> {
    if size > MOST {
        return Err(io::Error::other(format!(
            "a header has {size} bytes of properties, more than {MOST}"
        )));
    }
    let mut text = Vec::new();
    let rest = size + padding(size);
    if (&mut *reader).take(rest).read_to_end(&mut text)? as u64 != rest {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    text.truncate(size as usize);
    Ok(text)
}

/// The value of a pax property: lines of `LENGTH NAME=VALUE`. If there are several, the last one counts.
fn property<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let lines = text.split(|byte| *byte == b'\n');
    let value = |line: &'t [u8]| {
        let at = line.iter().position(|byte| *byte == b' ')? + 1;
        line[at..].strip_prefix(name)?.strip_prefix(b"=")
    };
    lines.filter_map(value).next_back()
}

fn decimal(text: &[u8]) -> Option<u64> {
    let size = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(size).filter(|size| *size < 1 << 62)
}
