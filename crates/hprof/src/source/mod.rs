//! Sources of a dump's bytes: a plain file (mapped, nothing is copied), gzip with any number of members, Zstandard,
//! xz, bzip2, zip, tar, or standard input. The content decides about the format, not the name. Everything except a
//! plain file is decoded once into an unlinked temporary file (mode 0600) and mapped from there, so that every reader
//! uses one slice. If a stream does not begin like a dump, only its first bytes are read, so that endless input ends
//! with an error.

mod archive;
mod at;
mod compressed;
mod control;
mod gzip;
mod health;
mod mmap;
mod tar;

use crate::{DamageKind, Diagnostic, Diagnostics};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use thiserror::Error;

pub use at::{read_exact_at, write_all_at};
use compressed::Format;
pub use control::{Cancelled, Control, Progress};
pub use gzip::GzipReport;
pub use health::{Changed, Health, input_changed};
use mmap::Mapped;
pub use mmap::{Guard, GuardedMap, Pages, guard_mappings};

/// How the file was packed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum Packing {
    /// A plain dump.
    Plain,
    /// gzip with this many members.
    Gzip {
        /// Number of members.
        members: u64,
    },
    /// Another compressed stream.
    Compressed {
        /// `bzip2`, `xz` or `zstd`.
        format: Cow<'static, str>,
    },
    /// The entry of this name in a zip archive.
    Zip {
        /// Entry name.
        entry: String,
    },
    /// The entry of this name in a tar archive, which may be compressed.
    Tar {
        /// Entry name.
        entry: String,
    },
}

/// Why a dump could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
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
    /// The file changed while it was unpacked.
    #[error("{path}: {why}")]
    Changed {
        /// The file.
        path: String,
        /// What happened.
        why: Changed,
    },
    /// The caller cancelled the unpacking.
    #[error("cancelled")]
    Cancelled,
    /// An archive of this format, with this number of entries, none of which is a dump.
    #[error("the {0} archive has no HPROF dump in it ({1} entries)")]
    EmptyArchive(&'static str, usize),
    /// An archive with this number of dumps, and the number of the one that was requested.
    #[error("the archive has {0} dumps, so there is no #{1}")]
    NoEntry(usize, usize),
    /// No entry of the zip archive is a readable dump, and this one can only be read with a password.
    #[error("{0} in the zip archive is encrypted: unpack it with its password first")]
    Encrypted(String),
    /// The archive of this format is itself damaged.
    #[error("the {0} archive cannot be read: {1}")]
    Archive(&'static str, String),
}

/// How a packed dump is unpacked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unpack<'a> {
    /// The folder for temporary files; `None` for the system's.
    pub dir: Option<&'a Path>,
    /// Worker threads; 0 for one per core.
    pub threads: usize,
    /// Which dump of an archive with several, from 1; 0 takes the first.
    pub dump: u32,
    /// Progress and cancellation.
    pub control: Control<'a>,
}

impl Unpack<'_> {
    fn dump_number(&self) -> usize {
        self.dump.max(1) as usize
    }

    fn file(&self) -> Result<File, SourceError> {
        let dir = self.dir.map_or_else(std::env::temp_dir, Path::to_owned);
        tempfile::tempfile_in(dir).map_err(|e| self.error(e))
    }

    /// The error of a copy that could not be written; cancellation is an error of the kind `Interrupted` that contains
    /// [`Cancelled`].
    fn error(&self, error: io::Error) -> SourceError {
        if error.get_ref().is_some_and(|e| e.is::<Cancelled>()) {
            return SourceError::Cancelled;
        }
        let dir = self.dir.map_or_else(std::env::temp_dir, Path::to_owned);
        SourceError::Spill {
            dir: dir.display().to_string(),
            error,
        }
    }

    /// Called once per buffer.
    fn step(&self, done: u64, total: u64) -> io::Result<()> {
        self.control.check().map_err(io::Error::other)?;
        self.control.report("unpacking", done, total);
        Ok(())
    }
}

/// The bytes of a dump.
#[derive(Debug)]
pub struct Source {
    bytes: Mapped,
    packing: Packing,
    diagnostics: Diagnostics,
    packed_len: u64,
    is_one_of_several: bool,
}

/// The file and the number of `heap.hprof#2`, which is the second dump of a file, unless a file of that name exists.
pub fn split_number(path: &Path) -> (&Path, Option<u32>) {
    let split = path.to_str().and_then(|text| text.rsplit_once('#'));
    match split.map(|(file, number)| (file, number.parse())) {
        Some((file, Ok(number))) if number > 0 && !path.exists() => (Path::new(file), Some(number)),
        _ => (path, None),
    }
}

/// The first bytes of every dump.
const MAGIC: &[u8] = b"JAVA PROFILE ";

/// Bytes of a stream that are read to determine whether it is a dump.
const HEAD: u64 = 1 << 14;

/// Bytes that are copied between two checks for cancellation.
const BUFFER: usize = 1 << 18;

impl Source {
    /// Opens a dump; `-` is standard input.
    ///
    /// # Errors
    /// When the file cannot be read or unpacked, or the caller cancels.
    pub fn open(path: &Path, unpack: &Unpack<'_>) -> Result<Source, SourceError> {
        let read = |error| SourceError::Read {
            path: path.display().to_string(),
            error,
        };
        if path == Path::new("-") {
            return Self::from_reader(&mut io::stdin().lock(), unpack);
        }
        let file = File::open(path).map_err(read)?;
        let kind = file.metadata().map_err(read)?;
        if kind.is_dir() {
            return Err(read(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if !kind.is_file() {
            let mut file = file;
            return Self::from_reader(&mut file, unpack);
        }
        let packed = Mapped::file(&file).map_err(read)?;
        let health = packed.health();
        let source = Self::from_mapped(packed, unpack)?;
        if source.packing != Packing::Plain
            && let Err(why) = health.check()
        {
            let path = path.display().to_string();
            return Err(SourceError::Changed { path, why });
        }
        Ok(source)
    }

    /// Copies a stream and opens the copy. If it is not a dump, compressed or not, only the first bytes are read.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_reader(reader: &mut dyn Read, unpack: &Unpack<'_>) -> Result<Source, SourceError> {
        let mut head = Vec::new();
        let begun = (&mut *reader).take(HEAD).read_to_end(&mut head);
        begun.map_err(|e| unpack.error(e))?;
        let known = head.starts_with(MAGIC)
            || archive::is_zip(&head)
            || archive::is_tar(&head)
            || gzip::begins_with(&head, MAGIC)
            || Format::of(&head).is_some_and(|format| format.begins_like_a_dump(&head));
        if !known {
            return Self::from_bytes(head);
        }
        let mut file = unpack.file()?;
        let copied = copy_stream(&head, reader, &mut file, unpack);
        copied.map_err(|e| unpack.error(e))?;
        Self::from_mapped(Mapped::file(&file).map_err(|e| unpack.error(e))?, unpack)
    }

    /// Opens bytes that are already in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open), for compressed ones.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Source, SourceError> {
        Self::from_mapped(Mapped::memory(bytes), &Unpack::default())
    }

    fn from_mapped(packed: Mapped, unpack: &Unpack<'_>) -> Result<Source, SourceError> {
        let data = packed.bytes();
        if archive::is_zip(data) {
            let pack = |entry| Packing::Zip { entry };
            return Self::archived(data, archive::extract_zip, pack, unpack);
        }
        if archive::is_tar(data) {
            let pack = |entry| Packing::Tar { entry };
            return Self::archived(data, archive::extract_tar, pack, unpack);
        }
        Self::from_stream(packed, unpack)
    }

    /// Opens data that are not an archive, or that were in one: archives in archives are not searched.
    fn from_stream(packed: Mapped, unpack: &Unpack<'_>) -> Result<Source, SourceError> {
        let packed_len = packed.bytes().len() as u64;
        if gzip::is_gzip(packed.bytes()) {
            let mut file = unpack.file()?;
            let report = gzip::decode(packed.bytes(), &mut file, unpack);
            let report = report.map_err(|e| unpack.error(e))?;
            file.flush().map_err(|e| unpack.error(e))?;
            let bytes = Mapped::file(&file).map_err(|e| unpack.error(e))?;
            let packing = Packing::Gzip {
                members: report.members,
            };
            return Ok(Source {
                bytes,
                packing,
                diagnostics: report.diagnostics,
                packed_len,
                is_one_of_several: false,
            });
        }
        if let Some(format) = Format::of(packed.bytes()) {
            return Self::decompressed(&packed, format, unpack);
        }
        Ok(Source {
            bytes: packed,
            packing: Packing::Plain,
            diagnostics: Diagnostics::default(),
            packed_len,
            is_one_of_several: false,
        })
    }

    /// Opens the dump in an archive.
    fn archived(
        data: &[u8],
        extract: fn(&[u8], &mut File, &Unpack<'_>) -> Result<archive::Entry, SourceError>,
        pack: fn(String) -> Packing,
        unpack: &Unpack<'_>,
    ) -> Result<Source, SourceError> {
        let mut file = unpack.file()?;
        let entry = extract(data, &mut file, unpack)?;
        let inner = Mapped::file(&file).map_err(|e| unpack.error(e))?;
        let mut source = Self::from_stream(inner, unpack)?;
        source.is_one_of_several = !entry.others.is_empty();
        if source.is_one_of_several {
            let count = match entry.all_others {
                true => format!("{} dumps", entry.others.len() + 1),
                false => "more than one dump".to_owned(),
            };
            let others = entry
                .others
                .iter()
                .map(|(number, name)| format!("#{number} is {name}"));
            source.diagnostics.push(Diagnostic::new(
                DamageKind::Note,
                0,
                "archive",
                "",
                "",
                format!(
                    "the archive has {count}; this is #{}, {}; FILE{}",
                    entry.number,
                    entry.name,
                    others.collect::<Vec<_>>().join(", FILE")
                ),
            ));
        }
        source.packing = pack(entry.name);
        source.packed_len = data.len() as u64;
        if let Some(problem) = entry.problem {
            source.diagnostics.push(Diagnostic::new(
                DamageKind::Container,
                source.bytes().len() as u64,
                "archive",
                "entry",
                "a whole entry",
                problem,
            ));
        }
        Ok(source)
    }

    /// Decodes a compressed stream; if it is not a dump, only its beginning.
    fn decompressed(
        packed: &Mapped,
        format: Format,
        unpack: &Unpack<'_>,
    ) -> Result<Source, SourceError> {
        let mut file = unpack.file()?;
        let problem = format.decode(packed.bytes(), &mut file, unpack);
        let problem = problem.map_err(|e| unpack.error(e))?;
        let mut source = Source {
            bytes: Mapped::file(&file).map_err(|e| unpack.error(e))?,
            packing: Packing::Compressed {
                format: format.name().into(),
            },
            diagnostics: Diagnostics::default(),
            packed_len: packed.bytes().len() as u64,
            is_one_of_several: false,
        };
        if let Some(problem) = problem {
            source.diagnostics.push(Diagnostic::new(
                DamageKind::Container,
                source.bytes().len() as u64,
                format.name(),
                "stream",
                "a whole stream",
                problem,
            ));
        }
        Ok(source)
    }

    /// The decoded dump.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Copies a part of the decoded dump into a buffer that stays in the cache, which is cheaper than accessing new
    /// pages of the mapping. False if that part cannot be copied: then use [`bytes`](Self::bytes).
    pub fn read_at(&self, at: u64, out: &mut [u8]) -> bool {
        self.bytes.read_at(at, out)
    }

    /// Whether the bytes are still reliable: check this before an answer about them is returned.
    ///
    /// # Errors
    /// When the file changed since it was opened.
    pub fn check(&self) -> Result<(), Changed> {
        self.bytes.health().check()
    }

    /// True when some bytes could no longer be read. Costs one load, for use in loops.
    pub fn has_failed(&self) -> bool {
        self.bytes.health().has_failed()
    }

    /// How it was packed.
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// Whether it is from an archive with several dumps, of which [`Unpack::dump`] has selected it.
    pub fn is_one_of_several(&self) -> bool {
        self.is_one_of_several
    }

    /// Damage of the container.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Size of the file as it was given.
    pub fn packed_len(&self) -> u64 {
        self.packed_len
    }

    /// Informs the system that the pages of a range are not needed soon, so that they no longer count as memory of
    /// this process.
    pub fn release(&self, from: u64, to: u64) {
        self.bytes.release(from, to);
    }

    /// Informs the system how the bytes will be read: sequentially or at random.
    pub fn advise(&self, sequential: bool) {
        self.bytes.advise(sequential);
    }
}

fn copy_stream(
    head: &[u8],
    reader: &mut dyn Read,
    out: &mut File,
    unpack: &Unpack<'_>,
) -> io::Result<()> {
    out.write_all(head)?;
    let mut buffer = vec![0u8; BUFFER];
    let mut done = head.len() as u64;
    loop {
        unpack.step(done, 0)?;
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                out.write_all(&buffer[..n])?;
                done += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
