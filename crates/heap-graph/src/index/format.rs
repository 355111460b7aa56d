//! The index file: a header, sections aligned to 64 bytes, and a table of them at the end.
//!
//! ```text
//! 0   magic "TENUREIX"           8 bytes
//! 8   version                    u32, little-endian like everything here
//! 12  number of sections         u32
//! 16  offset of the table        u64
//! 24  identity of the dump       32 bytes (size, head hash, tail hash, options hash)
//! 56  hash of the table          u64
//! 64  sections ...
//!     table: per section its tag (u64), offset (u64), length (u64), 0 (u64)
//! ```
//! A file is written under another name and renamed when it is whole, so an index that exists is
//! complete; one of another version or of another dump is made again.

use crate::raw::{Budget, bytes_of, map_file, view};
use memmap2::Mmap;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Changed whenever a section changes its meaning.
pub(crate) const VERSION: u32 = 2;
const MAGIC: &[u8; 8] = b"TENUREIX";
const ALIGN: u64 = 64;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Tag {
    /// Postcard of `Meta`.
    Meta = 1,
    /// Blocks of the id map.
    IdBlocks = 2,
    /// Their numbers.
    IdNumbers = 3,
    /// Class of each object, packed.
    Classes = 4,
    /// Shallow sizes in units of the alignment, a column.
    Shallow = 5,
    /// Anchors: object numbers.
    AnchorObjects = 6,
    /// Anchors: file offsets.
    AnchorOffsets = 7,
    /// Immediate dominator of each object, packed.
    Dominators = 8,
    /// Retained minus shallow in units of the alignment, a column.
    Retained = 9,
    /// Dominated objects by dominator, packed.
    Dominated = 10,
    /// How many objects each object dominates, a column.
    DominatedCounts = 11,
    /// Where each block of 64 objects begins in `Dominated`.
    DominatedStarts = 12,
    /// Stacks, names and everything the first screen does not need; postcard of `Detail`.
    Detail = 13,
    /// Referrers: row starts of each block of 64 objects.
    InboundStarts = 14,
    /// Referrers: rows.
    InboundRows = 15,
    /// Children of the virtual root, largest first, packed.
    TopLevel = 16,
    /// Trace serial of each object, a column; absent when all have the same.
    Traces = 17,
    /// Sums of groups; postcard of `GroupSums`.
    Groups = 18,
}

/// What an index belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(pub(crate) [u64; 4]);

impl Identity {
    /// Of a file as it is on disk (packed or not), and a number that stands for the options.
    pub(crate) fn of_file(path: &Path, options: u64) -> io::Result<Identity> {
        const EDGE: u64 = 1 << 16;
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut edge = |from: u64| -> io::Result<u64> {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(from))?;
            (&mut file).take(EDGE).read_to_end(&mut bytes)?;
            Ok(hash(&bytes))
        };
        let (head, tail) = (edge(0)?, edge(len.saturating_sub(EDGE))?);
        Ok(Identity([len, head, tail, options]))
    }
}

/// A 64-bit hash of bytes, the same on every machine.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    for chunk in bytes.chunks(8) {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hasher.write_u64(u64::from_le_bytes(word));
    }
    hasher.write_u64(bytes.len() as u64);
    hasher.finish()
}

#[derive(Clone, Copy)]
struct Entry {
    tag: u64,
    offset: u64,
    len: u64,
}

/// What the names of unfinished files begin with.
const BUILDING: &str = ".building-";

/// An unfinished file that was not written to for so long may be left from a process that was
/// killed.
const ABANDONED: Duration = Duration::from_secs(60);

/// Removes unfinished files that no process holds.
fn remove_abandoned(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(BUILDING);
        let age = |m: std::fs::Metadata| m.modified().ok()?.elapsed().ok();
        let old = ours && entry.metadata().ok().and_then(age) > Some(ABANDONED);
        // Who builds holds the lock; it ends with the process.
        if old
            && let Ok(file) = File::options().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            // If it cannot be removed it stays, as it would have.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes an index, section by section.
pub(crate) struct IndexWriter {
    file: BufWriter<File>,
    at: u64,
    sections: Vec<Entry>,
    /// Where the file will be, and where it is until then. `None` for an unlinked one.
    place: Option<(PathBuf, PathBuf)>,
}

impl IndexWriter {
    /// An index at `path`, or an unlinked temporary one.
    pub(crate) fn create(path: Option<&Path>, budget: &Budget) -> io::Result<IndexWriter> {
        let (file, place) = match path {
            Some(path) => {
                let dir = path.parent().unwrap_or(Path::new("."));
                remove_abandoned(dir);
                let (file, temporary) = tempfile::Builder::new()
                    .prefix(BUILDING)
                    .tempfile_in(dir)?
                    .keep()
                    .map_err(|e| e.error)?;
                // Says that somebody is at work, until the file is closed. A file system without
                // locks has none to say.
                let _ = file.lock();
                (file, Some((path.to_owned(), temporary)))
            }
            None => (tempfile::tempfile_in(budget.dir())?, None),
        };
        let mut file = BufWriter::with_capacity(1 << 20, file);
        file.write_all(&[0u8; ALIGN as usize])?;
        Ok(IndexWriter {
            file,
            at: ALIGN,
            sections: Vec::new(),
            place,
        })
    }

    /// Writes one section.
    pub(crate) fn section(
        &mut self,
        tag: Tag,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = Counted {
            out: &mut self.file,
            len: 0,
        };
        fill(&mut out)?;
        let len = out.len;
        self.sections.push(Entry {
            tag: tag as u64,
            offset: self.at,
            len,
        });
        let padding = len.next_multiple_of(ALIGN) - len;
        self.file
            .write_all(&[0u8; ALIGN as usize][..padding as usize])?;
        self.at += len + padding;
        Ok(())
    }

    /// Maps what was written so far, to read sections while others are still to come.
    pub(crate) fn view(&mut self) -> io::Result<IndexFile> {
        self.file.flush()?;
        let map = map_file(self.file.get_ref())?;
        Ok(IndexFile::new(map, self.sections.clone()))
    }

    /// Writes table and header, gives the file its name, and opens it.
    pub(crate) fn finish(mut self, identity: Identity) -> io::Result<IndexFile> {
        let table: Vec<u64> = self
            .sections
            .iter()
            .flat_map(|s| [s.tag, s.offset, s.len, 0])
            .collect();
        self.file.write_all(bytes_of(&table))?;
        let mut head = Vec::with_capacity(ALIGN as usize);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        head.extend_from_slice(&self.at.to_le_bytes());
        head.extend_from_slice(bytes_of(&identity.0));
        head.extend_from_slice(&hash(bytes_of(&table)).to_le_bytes());
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        self.file.flush()?;
        if let Some((path, temporary)) = self.place.take() {
            std::fs::rename(temporary, path)?;
        }
        self.view()
    }
}

impl Drop for IndexWriter {
    fn drop(&mut self) {
        if let Some((_, temporary)) = self.place.take() {
            // Not finished: nothing of it can be used.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

struct Counted<'a> {
    out: &'a mut BufWriter<File>,
    len: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.out.write(buf)?;
        self.len += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A mapped index.
pub(crate) struct IndexFile {
    map: Mmap,
    sections: Vec<Entry>,
    /// Where each section lies, by tag.
    places: [(usize, usize); TAGS],
}

/// Tags are below this.
const TAGS: usize = 32;

impl IndexFile {
    fn new(map: Mmap, sections: Vec<Entry>) -> IndexFile {
        let mut places = [(0, 0); TAGS];
        for entry in &sections {
            let end = entry.offset.checked_add(entry.len);
            let fits = end.is_some_and(|end| end <= map.len() as u64);
            if let Some(place) = places.get_mut(entry.tag as usize)
                && fits
                && *place == (0, 0)
            {
                *place = (entry.offset as usize, entry.len as usize);
            }
        }
        IndexFile {
            map,
            sections,
            places,
        }
    }

    /// Opens an index; `None` if it is not one, is of another version, or of another dump.
    pub(crate) fn open(path: &Path, identity: Identity) -> Option<IndexFile> {
        let file = File::open(path).ok()?;
        let map = map_file(&file).ok()?;
        let head = map.get(..ALIGN as usize)?;
        let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
        let same = head.starts_with(MAGIC)
            && head[8..12] == VERSION.to_le_bytes()
            && (0..4).all(|k| word(24 + 8 * k) == Some(identity.0[k]));
        if !same {
            return None;
        }
        let count = u32::from_le_bytes(head[12..16].try_into().ok()?) as usize;
        let from = usize::try_from(word(16)?).ok()?;
        let table = map.get(from..from.checked_add(count.checked_mul(32)?)?)?;
        if word(56) != Some(hash(table)) {
            return None;
        }
        let sections = view::<u64>(table)?
            .chunks_exact(4)
            .map(|e| Entry {
                tag: e[0],
                offset: e[1],
                len: e[2],
            })
            .collect();
        Some(IndexFile::new(map, sections))
    }

    /// The bytes of a section; empty if there is none.
    pub(crate) fn bytes(&self, tag: Tag) -> &[u8] {
        let (from, len) = self.places[tag as usize];
        self.map.get(from..from + len).unwrap_or_default()
    }

    /// A section as an array; empty if there is none.
    pub(crate) fn array<T: crate::raw::Plain>(&self, tag: Tag) -> &[T] {
        view(self.bytes(tag)).unwrap_or_default()
    }

    /// Bytes of each section, for reports about the index itself.
    pub(crate) fn sizes(&self) -> Vec<(u64, u64)> {
        self.sections.iter().map(|s| (s.tag, s.len)).collect()
    }
}
