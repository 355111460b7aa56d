//! A dump inside a zip or tar archive: the first entry whose content is a dump, or gzip. A tar archive may be
//! compressed in the same formats as a dump; it is read as a stream, so that only the dump is written to disk.

use super::compressed::Format;
use super::{BUFFER, MAGIC, SourceError, Unpack, gzip, tar};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use zip::ZipArchive;

/// The dump found in an archive.
pub(super) struct Entry {
    pub(super) name: String,
    /// Why it could not be read to its end.
    pub(super) problem: Option<String>,
    /// Dumps after it that were found without decoding everything.
    pub(super) others: Vec<String>,
    /// Whether these are all others: a tar archive has no list of its entries.
    pub(super) all_others: bool,
}

pub(super) fn is_zip(data: &[u8]) -> bool {
    data.starts_with(b"PK\x03\x04")
}

/// Whether the bytes are a tar archive, compressed or not.
pub(super) fn is_tar(data: &[u8]) -> bool {
    if data.starts_with(MAGIC) {
        return false;
    }
    let mut head = Vec::new();
    // An error after the first bytes is reported later, when everything is decoded.
    let _ = decoder(data).take(tar::BLOCK as u64).read_to_end(&mut head);
    tar::is_header(&head)
}

/// Decodes the bytes if they are compressed.
fn decoder(data: &[u8]) -> Box<dyn Read + '_> {
    if gzip::is_gzip(data) {
        return Box::new(MultiGzDecoder::new(data));
    }
    match Format::of(data) {
        Some(format) => format.decoder(data),
        None => Box::new(data),
    }
}

/// Copies the dump in a tar archive.
pub(super) fn extract_tar(
    data: &[u8],
    out: &mut File,
    unpack: &Unpack<'_>,
) -> Result<Entry, SourceError> {
    let mut reader = decoder(data);
    let broken = |error: io::Error| SourceError::Archive("tar", error.to_string());
    let mut count = 0;
    while let Some(head) = tar::next(&mut *reader).map_err(broken)? {
        count += 1;
        let mut entry = (&mut *reader).take(head.size);
        let found = copy_dump(&mut entry, (head.name, head.size), out, unpack)?;
        // Skipped contents may be endless.
        let rest = entry.limit() + tar::padding(head.size);
        pass_over(&mut (&mut *reader).take(rest), unpack)?;
        if let Some(mut found) = found {
            if let Ok(Some(next)) = tar::next(&mut *reader)
                && is_dump(&mut reader).is_some()
            {
                found.others.push(next.name);
            }
            return Ok(found);
        }
    }
    Err(SourceError::EmptyArchive("tar", count))
}

/// Copies the dump in a zip archive.
pub(super) fn extract_zip(
    data: &[u8],
    out: &mut File,
    unpack: &Unpack<'_>,
) -> Result<Entry, SourceError> {
    let broken = |error: zip::result::ZipError| SourceError::Archive("zip", error.to_string());
    let mut archive = ZipArchive::new(Cursor::new(data)).map_err(broken)?;
    let mut found: Option<Entry> = None;
    for index in 0..archive.len() {
        let Ok(mut entry) = archive.by_index(index) else {
            continue;
        };
        let name = entry.name().map(|name| name.into_owned());
        let name = name.unwrap_or_else(|_| format!("#{index}"));
        let size = entry.size();
        match &mut found {
            Some(found) => found.others.extend(is_dump(&mut entry).map(|_| name)),
            None => found = copy_dump(&mut entry, (name, size), out, unpack)?,
        }
        unpack.step(0, 0).map_err(|error| unpack.error(error))?;
    }
    if let Some(found) = &mut found {
        found.all_others = true;
    }
    found.ok_or(SourceError::EmptyArchive("zip", archive.len()))
}

/// The first bytes of a dump, or of gzip.
fn is_dump(entry: &mut dyn Read) -> Option<[u8; MAGIC.len()]> {
    let mut head = [0; MAGIC.len()];
    let is_one = entry.read_exact(&mut head).is_ok() && (head == MAGIC || gzip::is_gzip(&head));
    is_one.then_some(head)
}

/// Copies an entry that is a dump, as far as it can be read; `None` if it is not a dump.
fn copy_dump(
    entry: &mut dyn Read,
    (name, size): (String, u64),
    out: &mut File,
    unpack: &Unpack<'_>,
) -> Result<Option<Entry>, SourceError> {
    let Some(head) = is_dump(entry) else {
        return Ok(None);
    };
    let problem = copy(&mut head.as_slice().chain(entry), out, size, unpack);
    let problem = problem.map_err(|error| unpack.error(error))?;
    Ok(Some(Entry {
        name,
        problem,
        others: Vec::new(),
        all_others: false,
    }))
}

/// Copies the readable part; a read error is a finding, a write error is returned.
fn copy(
    from: &mut dyn Read,
    out: &mut File,
    size: u64,
    unpack: &Unpack<'_>,
) -> io::Result<Option<String>> {
    let mut buffer = vec![0; BUFFER];
    let mut done = 0;
    loop {
        unpack.step(done, size)?;
        match from.read(&mut buffer) {
            Ok(0) => {
                let missing =
                    (done < size).then(|| format!("it ends after {done} of {size} bytes"));
                return Ok(missing);
            }
            Ok(count) => {
                out.write_all(&buffer[..count])?;
                done += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
}

/// Skips the rest of an entry, unless the caller cancels. A read error is ignored, because it occurs again at the next
/// entry.
fn pass_over(entry: &mut dyn Read, unpack: &Unpack<'_>) -> Result<(), SourceError> {
    let mut buffer = vec![0; BUFFER];
    let mut done = 0;
    while let Ok(count) = entry.read(&mut buffer) {
        if count == 0 {
            break;
        }
        done += count as u64;
        unpack.step(done, 0).map_err(|error| unpack.error(error))?;
    }
    Ok(())
}
