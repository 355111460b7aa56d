//! Archives in the format of POSIX (ustar), with sorted names, one time and no owner, and gzip without
//! a name or a time.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::{Compression, GzBuilder};

use super::files::File;

const BLOCK: usize = 512;

/// An archive under construction.
#[derive(Debug)]
pub struct Tar {
    bytes: Vec<u8>,
    time: u64,
}

impl Tar {
    /// An archive whose files all have this time.
    pub fn new(time: u64) -> Tar {
        Tar {
            bytes: Vec::new(),
            time,
        }
    }

    /// Adds a folder.
    ///
    /// # Errors
    /// A name that is too long.
    pub fn folder(&mut self, path: &str, mode: u32) -> Result<(), String> {
        self.header(&format!("{path}/"), mode, 0, b'5')
    }

    /// Adds a file.
    ///
    /// # Errors
    /// A name that is too long.
    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<(), String> {
        self.header(path, mode, content.len(), b'0')?;
        self.bytes.extend_from_slice(content);
        let padded = self.bytes.len().next_multiple_of(BLOCK);
        self.bytes.resize(padded, 0);
        Ok(())
    }

    /// The archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }

    fn header(&mut self, path: &str, mode: u32, size: usize, kind: u8) -> Result<(), String> {
        let (prefix, name) = split(path).ok_or_else(|| format!("too long a name: {path}"))?;
        let mut header = [0_u8; BLOCK];
        let mut put = |at: usize, text: &str| {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        };
        put(0, name);
        put(100, &format!("{mode:07o}"));
        put(108, "0000000");
        put(116, "0000000");
        put(124, &format!("{size:011o}"));
        put(136, &format!("{:011o}", self.time));
        // The sum is that of a header with blanks in this place.
        put(148, "        ");
        put(257, "ustar\x0000");
        put(265, "root");
        put(297, "root");
        put(345, prefix);
        header[156] = kind;
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend_from_slice(&header);
        Ok(())
    }
}

/// A path in two parts that the header has room for.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= 100 {
        return Some(("", path));
    }
    let cuts = path.match_indices('/').map(|(at, _)| at);
    let mut parts = cuts.map(|at| (&path[..at], &path[at + 1..]));
    parts.find(|(prefix, name)| prefix.len() <= 155 && name.len() <= 100 && !name.is_empty())
}

/// An archive of these files and of their folders, in the order of their names. All paths get `prefix`
/// in front of them, which ends with a slash.
///
/// # Errors
/// A name that is too long.
pub fn tree(prefix: &str, files: &[File], time: u64) -> Result<Vec<u8>, String> {
    let mut sorted: Vec<(String, &File)> = files
        .iter()
        .map(|file| (format!("{prefix}{}", file.path), file))
        .collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut tar = Tar::new(time);
    let mut made = BTreeSet::new();
    for (path, file) in &sorted {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for folder in ends.map(|at| &path[..at]) {
            if folder != "." && made.insert(folder.to_owned()) {
                tar.folder(folder, 0o755)?;
            }
        }
        tar.file(path, file.mode, &file.content)?;
    }
    Ok(tar.finish())
}

/// Compresses; the same bytes always give the same bytes.
///
/// # Errors
/// None in memory, but writing may fail in principle.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let fault = |error: std::io::Error| error.to_string();
    // 255 is "unknown": no operating system is named.
    let builder = GzBuilder::new().mtime(0).operating_system(255);
    let mut writer = builder.write(Vec::new(), Compression::best());
    writer.write_all(bytes).map_err(fault)?;
    writer.finish().map_err(fault)
}
