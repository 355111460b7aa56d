//! Where the bytes of a dump come from: a plain file (mapped, nothing copied), gzip with any
//! number of members, zip, or standard input. All are told apart by content, never by name.
//! Whatever is not a plain file is decoded once into an unlinked temporary file (mode 0600) and
//! mapped from there, so that every reader above sees one slice.

mod gzip;
mod mmap;
mod zipped;

use crate::{DamageKind, Diagnostic, Diagnostics};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

pub use gzip::GzipReport;
use mmap::Mapped;

/// How the file was packed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Packing {
    /// A plain dump.
    Plain,
    /// gzip with this many members.
    Gzip {
        /// Number of members.
        members: u64,
    },
    /// The entry of this name in a zip archive.
    Zip {
        /// Entry name.
        entry: String,
    },
}

/// Why a dump could not be opened.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The file could not be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The decoded copy could not be written.
    #[error("cannot unpack into {dir}: {error}")]
    Spill {
        /// The folder of the temporary file.
        dir: String,
        /// Why.
        error: io::Error,
    },
    /// A zip archive without a dump in it.
    #[error("the zip archive has no HPROF dump in it ({entries} entries)")]
    EmptyArchive {
        /// Entries that were looked at.
        entries: usize,
    },
    /// The archive itself is damaged.
    #[error("the zip archive cannot be read: {0}")]
    Archive(String),
}

/// The bytes of a dump.
#[derive(Debug)]
pub struct Source {
    bytes: Mapped,
    packing: Packing,
    diagnostics: Diagnostics,
    packed_len: u64,
}

impl Source {
    /// Opens a dump; `-` is standard input. Temporary files go to `spill_dir`, or the system's
    /// folder for them.
    pub fn open(path: &Path, spill_dir: Option<&Path>) -> Result<Source, SourceError> {
        let read = |error| SourceError::Read {
            path: path.display().to_string(),
            error,
        };
        if path == Path::new("-") {
            return Self::from_reader(&mut io::stdin().lock(), spill_dir);
        }
        let file = File::open(path).map_err(read)?;
        let kind = file.metadata().map_err(read)?;
        if kind.is_dir() {
            return Err(read(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if !kind.is_file() {
            let mut file = file;
            return Self::from_reader(&mut file, spill_dir);
        }
        Self::from_mapped(Mapped::file(&file).map_err(read)?, spill_dir)
    }

    /// Copies a stream and opens the copy.
    pub fn from_reader(
        reader: &mut dyn Read,
        spill_dir: Option<&Path>,
    ) -> Result<Source, SourceError> {
        let spill = Spill::new(spill_dir);
        let mut file = spill.file()?;
        io::copy(reader, &mut file).map_err(|e| spill.error(e))?;
        Self::from_mapped(Mapped::file(&file).map_err(|e| spill.error(e))?, spill_dir)
    }

    /// Takes bytes that are already in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Source, SourceError> {
        Self::from_mapped(Mapped::memory(bytes), None)
    }

    fn from_mapped(packed: Mapped, spill_dir: Option<&Path>) -> Result<Source, SourceError> {
        let spill = Spill::new(spill_dir);
        let packed_len = packed.bytes().len() as u64;
        if gzip::is_gzip(packed.bytes()) {
            let mut file = spill.file()?;
            let report = gzip::decode(packed.bytes(), &mut file).map_err(|e| spill.error(e))?;
            file.flush().map_err(|e| spill.error(e))?;
            let bytes = Mapped::file(&file).map_err(|e| spill.error(e))?;
            let packing = Packing::Gzip {
                members: report.members,
            };
            return Ok(Source {
                bytes,
                packing,
                diagnostics: report.diagnostics,
                packed_len,
            });
        }
        if zipped::is_zip(packed.bytes()) {
            let mut file = spill.file()?;
            let report = zipped::extract(packed.bytes(), &mut file, &|e| spill.error(e))?;
            let inner = Mapped::file(&file).map_err(|e| spill.error(e))?;
            let mut source = Self::from_mapped(inner, spill_dir)?;
            source.packing = Packing::Zip {
                entry: report.entry,
            };
            if let Some(problem) = report.problem {
                source.diagnostics.push(Diagnostic::new(
                    DamageKind::Container,
                    source.bytes().len() as u64,
                    "zip",
                    "entry",
                    "a whole entry",
                    problem,
                ));
            }
            source.packed_len = packed_len;
            return Ok(source);
        }
        Ok(Source {
            bytes: packed,
            packing: Packing::Plain,
            diagnostics: Diagnostics::default(),
            packed_len,
        })
    }

    /// The decoded dump.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Copies a part of the decoded dump into a buffer that stays in the cache, which is cheaper
    /// than touching fresh pages of the mapping. False if that part cannot be copied: use
    /// [`bytes`](Self::bytes) then.
    pub fn read_at(&self, at: u64, out: &mut [u8]) -> bool {
        self.bytes.read_at(at, out)
    }

    /// How it was packed.
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// Damage of the container.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Size of the file as it was given.
    pub fn packed_len(&self) -> u64 {
        self.packed_len
    }

    /// Tells the system that the pages of a range are not needed soon, so that they do not count
    /// against this process.
    pub fn release(&self, from: u64, to: u64) {
        self.bytes.release(from, to);
    }

    /// Tells the system how the bytes will be read: front to back, or here and there.
    pub fn advise(&self, sequential: bool) {
        self.bytes.advise(sequential);
    }
}

/// The folder for temporary files.
struct Spill {
    dir: PathBuf,
}

impl Spill {
    fn new(dir: Option<&Path>) -> Spill {
        Spill {
            dir: dir.map_or_else(std::env::temp_dir, Path::to_owned),
        }
    }

    fn file(&self) -> Result<File, SourceError> {
        tempfile::tempfile_in(&self.dir).map_err(|e| self.error(e))
    }

    fn error(&self, error: io::Error) -> SourceError {
        SourceError::Spill {
            dir: self.dir.display().to_string(),
            error,
        }
    }
}
