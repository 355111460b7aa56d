//! A dump inside a zip archive: the first entry whose content is a dump, or gzip.

use super::SourceError;
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
    spill_error: &dyn Fn(io::Error) -> SourceError,
) -> Result<ZipReport, SourceError> {
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
        if &head != b"JAVA PROFILE " && !super::gzip::is_gzip(&head) {
            continue;
        }
        out.write_all(&head).map_err(spill_error)?;
        let problem = copy(&mut entry, out).map_err(spill_error)?;
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
fn copy(entry: &mut dyn Read, out: &mut File) -> io::Result<Option<String>> {
    let mut buffer = vec![0u8; 1 << 18];
    loop {
        match entry.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(n) => out.write_all(&buffer[..n])?,
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
}
