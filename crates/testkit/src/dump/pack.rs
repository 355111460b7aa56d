//! Dumps as they travel: gzip in one or many members, zip.

use std::io::{Cursor, Write};

/// The bytes as gzip with one member.
pub fn gzip(data: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    e.write_all(data).expect("writing to memory");
    e.finish().expect("writing to memory")
}

/// The bytes as gzip with a member per `member` bytes, as `jcmd GC.heap_dump -gz=1` writes them.
pub fn gzip_members(data: &[u8], member: usize) -> Vec<u8> {
    assert!(member > 0, "a member holds at least one byte");
    data.chunks(member).flat_map(gzip).collect()
}

/// The bytes as a zip archive with one deflated entry.
pub fn zip(data: &[u8], name: &str) -> Vec<u8> {
    zip_of(&[(name, data)])
}

/// A zip archive with these deflated entries.
pub fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut w = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, data) in entries {
        w.start_file(*name, zip::write::SimpleFileOptions::default())
            .expect("a valid entry name");
        w.write_all(data).expect("writing to memory");
    }
    w.finish().expect("writing to memory").into_inner()
}
