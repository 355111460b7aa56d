//! Writes an index, section by section.

use super::format::{ALIGN, Entry, IndexFile, MAGIC, VERSION, head_checksum};
use super::{Identity, IndexPlace, Tag};
use crate::raw::{Budget, bytes_of};
use hprof::source::GuardedMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// An index that is being written.
pub(crate) struct IndexWriter {
    file: BufWriter<Summed>,
    at: u64,
    sections: Vec<Entry>,
    identity: Identity,
    /// Where the file will be, and where it is until then. `None` for an unlinked one.
    place: Option<(PathBuf, PathBuf)>,
}

impl IndexWriter {
    /// An index of a dump at the first of its places, or an unlinked temporary one.
    pub(crate) fn create(
        home: Option<&(IndexPlace, Identity)>,
        budget: &Budget,
    ) -> io::Result<IndexWriter> {
        let path = home.and_then(|(place, _)| place.make());
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
                (file, Some((path, temporary)))
            }
            None => (tempfile::tempfile_in(budget.dir())?, None),
        };
        let mut file = BufWriter::with_capacity(1 << 20, Summed::new(file));
        file.write_all(&[0u8; ALIGN as usize])?;
        Ok(IndexWriter {
            file,
            at: ALIGN,
            sections: Vec::new(),
            identity: home.map_or(Identity([0; 4]), |(_, identity)| *identity),
            place,
        })
    }

    /// Writes one section.
    pub(crate) fn section(
        &mut self,
        tag: Tag,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_mut().begin();
        fill(&mut self.file)?;
        self.file.flush()?;
        let (len, crc) = self.file.get_mut().begin();
        self.sections.push(Entry {
            tag: tag as u64,
            offset: self.at,
            len,
            crc,
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
        let map = GuardedMap::of_growing(&self.file.get_ref().file)?;
        Ok(IndexFile::written(map, self.sections.clone()))
    }

    /// Writes table and header, gives the file its name, and opens it.
    pub(crate) fn finish(mut self) -> io::Result<IndexFile> {
        let table: Vec<u64> = self
            .sections
            .iter()
            .flat_map(|s| [s.tag, s.offset, s.len, u64::from(s.crc)])
            .collect();
        self.file.write_all(bytes_of(&table))?;
        let mut head = Vec::with_capacity(ALIGN as usize);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        head.extend_from_slice(&self.at.to_le_bytes());
        head.extend_from_slice(bytes_of(&self.identity.0));
        let checksum = head_checksum(&head, bytes_of(&table));
        head.extend_from_slice(&checksum.to_le_bytes());
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        self.file.flush()?;
        if let Some((path, temporary)) = &self.place {
            // The name must not reach the disk before the content.
            self.file.get_ref().file.sync_all()?;
            std::fs::rename(temporary, path)?;
            self.place = None;
        }
        let map = GuardedMap::new(&self.file.get_ref().file)?;
        Ok(IndexFile::written(map, std::mem::take(&mut self.sections)))
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

/// A file with the length and the checksum of what was written since the last section began.
struct Summed {
    file: File,
    len: u64,
    crc: crc32fast::Hasher,
}

impl Summed {
    fn new(file: File) -> Summed {
        Summed {
            file,
            len: 0,
            crc: crc32fast::Hasher::new(),
        }
    }

    /// Begins anew; gives the length and the checksum of what was written before.
    fn begin(&mut self) -> (u64, u32) {
        let crc = std::mem::take(&mut self.crc).finalize();
        (std::mem::take(&mut self.len), crc)
    }
}

impl Write for Summed {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.file.write(buf)?;
        self.len += n as u64;
        self.crc.update(&buf[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Summed {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
