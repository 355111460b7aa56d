//! A dump inside a zip or tar archive: of the entries whose content is a dump, or gzip, the one with the wanted number.
//! A tar archive may be compressed in the same formats as a dump; it is read as a stream, so that only the dump is
//! written to disk.

use super::compressed::Format;
use super::{BUFFER, MAGIC, SourceError, Unpack, gzip, tar};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use zip::ZipArchive;
use zip::read::ZipFile;

/// The dump found in an archive.
pub(super) struct Entry {
    pub(super) name: String,
    /// Its number among the dumps of the archive, from 1.
    pub(super) number: usize,
    /// Why it could not be read to its end.
    pub(super) problem: Option<String>,
    /// Other dumps that were found without decoding everything, with their numbers.
    pub(super) others: Vec<(usize, String)>,
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

/// Copies the dump in a tar archive: the one with the wanted number, or the only one.
pub(super) fn extract_tar(
    data: &[u8],
    out: &mut File,
    unpack: &Unpack<'_>,
) -> Result<Entry, SourceError> {
    let mut reader = decoder(data);
    let broken = |error: io::Error| SourceError::Archive("tar", error.to_string());
    let wanted = unpack.dump_number();
    let (mut count, mut names, mut copied) = (0, Vec::new(), None);
    while names.len() < wanted {
        let head = match tar::next(&mut *reader) {
            Ok(Some(head)) => head,
            // The first one is used, if there is one.
            Err(error) if names.is_empty() => return Err(broken(error)),
            Ok(None) | Err(_) => break,
        };
        count += 1;
        let mut entry = (&mut *reader).take(head.size);
        if let Some(begin) = is_dump(&mut entry) {
            names.push(head.name);
            if [1, wanted].contains(&names.len()) {
                empty(out).map_err(|error| unpack.error(error))?;
                let problem = copy(&begin, &mut entry, head.size, (out, unpack))?;
                copied = Some((names.len(), problem));
            }
        }
        // Skipped contents may be endless.
        let rest = entry.limit() + tar::padding(head.size);
        pass_over(&mut (&mut *reader).take(rest), unpack)?;
    }
    let Some((number, problem)) = copied else {
        return Err(SourceError::EmptyArchive("tar", count));
    };
    let is_all = names.len() < wanted;
    if number < wanted && names.len() > 1 {
        return Err(SourceError::NoEntry(names.len(), wanted));
    }
    if !is_all
        && let Ok(Some(next)) = tar::next(&mut *reader)
        && is_dump(&mut reader).is_some()
    {
        names.push(next.name);
    }
    Ok(Entry::new(names, number, (problem, is_all)))
}

/// Copies the dump in a zip archive: the one with the wanted number, or the only one.
pub(super) fn extract_zip(
    data: &[u8],
    out: &mut File,
    unpack: &Unpack<'_>,
) -> Result<Entry, SourceError> {
    let broken = |error: zip::result::ZipError| SourceError::Archive("zip", error.to_string());
    let mut archive = ZipArchive::new(Cursor::new(data)).map_err(broken)?;
    let name = |entry: &ZipFile<'_, _>, index| {
        let name = entry.name().map(|name| name.into_owned());
        name.unwrap_or_else(|_| format!("entry {index}"))
    };
    let (mut indexes, mut names, mut encrypted) = (Vec::new(), Vec::new(), None);
    for index in 0..archive.len() {
        if let Ok(mut entry) = archive.by_index(index) {
            if is_dump(&mut entry).is_some() {
                names.push(name(&entry, index));
                indexes.push(index);
            }
        } else if let Ok(entry) = archive.by_index_raw(index)
            && entry.encrypted()
        {
            encrypted.get_or_insert_with(|| name(&entry, index));
        }
        unpack.step(0, 0).map_err(|error| unpack.error(error))?;
    }
    let wanted = unpack.dump_number();
    let number = if indexes.len() == 1 { 1 } else { wanted };
    let index = match indexes.get(number - 1) {
        Some(index) => *index,
        None if indexes.is_empty() => {
            let none = SourceError::EmptyArchive("zip", archive.len());
            return Err(encrypted.map_or(none, SourceError::Encrypted));
        }
        None => return Err(SourceError::NoEntry(indexes.len(), wanted)),
    };
    let mut entry = archive.by_index(index).map_err(broken)?;
    let size = entry.size();
    let problem = copy(&[], &mut entry, size, (out, unpack))?;
    Ok(Entry::new(names, number, (problem, true)))
}

impl Entry {
    /// The one with this number among all names.
    fn new(
        names: Vec<String>,
        number: usize,
        (problem, all_others): (Option<String>, bool),
    ) -> Entry {
        let mut others: Vec<_> = (1..).zip(names).collect();
        let (_, name) = others.remove(number - 1);
        Entry {
            name,
            number,
            problem,
            others,
            all_others,
        }
    }
}

fn empty(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()
}

/// The first bytes of a dump, or of gzip.
fn is_dump(entry: &mut dyn Read) -> Option<[u8; MAGIC.len()]> {
    let mut head = [0; MAGIC.len()];
    let is_one = entry.read_exact(&mut head).is_ok() && (head == MAGIC || gzip::is_gzip(&head));
    is_one.then_some(head)
}

/// Copies the readable part of an entry of which the beginning was read. A read error is a finding, a write error is
/// returned.
fn copy(
    begin: &[u8],
    rest: &mut dyn Read,
    size: u64,
    (out, unpack): (&mut File, &Unpack<'_>),
) -> Result<Option<String>, SourceError> {
    let mut from = begin.chain(rest);
    let mut buffer = vec![0; BUFFER];
    let mut done = 0;
    loop {
        unpack
            .step(done, size)
            .map_err(|error| unpack.error(error))?;
        match from.read(&mut buffer) {
            Ok(0) => {
                let missing =
                    (done < size).then(|| format!("it ends after {done} of {size} bytes"));
                return Ok(missing);
            }
            Ok(count) => {
                let written = out.write_all(&buffer[..count]);
                written.map_err(|error| unpack.error(error))?;
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
