//! A dump inside a zip archive: the first entry whose content is a dump, or gzip.

use super::{BUFFER, MAGIC, SourceError, Unpack};
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use zip::ZipArchive;

pub(super) struct ZipReport {
    pub(super) entry: String,
    /// The entry could not be read to its end.
    pub(super) problem: Option<String>,
}

pub(super) fn is_zip(data: &[u8]) -> bool {
    data.starts_with(b"PK\x03\x04")
}

pub(super) fn extract(
    data: &[u8],
    out: &mut File,
    unpack: &Unpack<'_>,
) -> Result<ZipReport, SourceError> {
    let spill_error = |e| unpack.error(e);
    let archive_error = |e: zip::result::ZipError| SourceError::Archive(e.to_string());
    let mut archive = ZipArchive::new(Cursor::new(data)).map_err(archive_error)?;
    for index in 0..archive.len() {
        let Ok(mut entry) = archive.by_index(index) else {
            continue;
        };
        let mut head = [0u8; 13];
        let Ok(()) = entry.read_exact(&mut head) else {
            continue;
        };
        if head != MAGIC && !super::gzip::is_gzip(&head) {
            continue;
        }
        out.write_all(&head).map_err(spill_error)?;
        let total = entry.size();
        let problem = copy(&mut entry, out, total, unpack).map_err(spill_error)?;
        return Ok(ZipReport {
            entry: entry
                .name()
                .map_or_else(|_| format!("#{index}"), |n| n.into_owned()),
            problem,
        });
    }
    Err(SourceError::EmptyArchive {
        entries: archive.len(),
    })
}

/// Copies what can be read; a read error is a finding, a write error ends it.
fn copy(
    entry: &mut dyn Read,
    out: &mut File,
    total: u64,
    unpack: &Unpack<'_>,
) -> io::Result<Option<String>> {
    let mut buffer = vec![0u8; BUFFER];
    let mut done = 0;
    loop {
        unpack.step(done, total)?;
        match entry.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(n) => {
                out.write_all(&buffer[..n])?;
                done += n as u64;
            }
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
}
