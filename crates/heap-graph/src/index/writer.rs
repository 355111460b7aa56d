//! Writes an index, section by section.

use super::format::{ALIGN, Entry, IndexFile, MAGIC, Tag, VERSION, head_checksum};
use super::identity::Identity;
use super::place::IndexPlace;
use crate::options::is_full_disk;
use crate::raw::{Budget, bytes_of};
use hprof::source::GuardedMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
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
}

/// Where a file will be, and where it is until then. `None` for an unlinked one.
type Place = Option<(PathBuf, PathBuf)>;

/// A new file that will be at this place.
fn create_at(path: PathBuf) -> io::Result<(File, Place)> {
    let dir = path.parent().unwrap_or(Path::new("."));
    remove_abandoned(dir);
    let (file, temporary) = tempfile::Builder::new()
        .prefix(BUILDING)
        .tempfile_in(dir)?
        .keep()
        .map_err(|e| e.error)?;
    // Says that someone is at work, until the file is closed. A file system without
    // locks has none to say.
    let _ = file.lock();
    Ok((file, Some((path, temporary))))
}

impl IndexWriter {
    /// An index of a dump at the first of its places that can be written, or an unlinked temporary
    /// one. It continues at the next place when a disk is full, in the end in the folder for
    /// temporary files.
    pub(crate) fn create(
        home: Option<&(IndexPlace, Identity)>,
        budget: &Budget,
    ) -> io::Result<IndexWriter> {
        let mut others = home.map(|(place, _)| place.paths()).unwrap_or_default();
        let (file, place) = match next_file(&mut others) {
            Some(made) => made,
            None => (tempfile::tempfile_in(budget.dir())?, None),
        };
        let mut file = BufWriter::with_capacity(1 << 18, Summed::new(file, place, others));
        file.write_all(&[0u8; ALIGN as usize])?;
        Ok(IndexWriter {
            file,
            at: ALIGN,
            sections: Vec::new(),
            identity: home.map_or(Identity([0; 4]), |(_, identity)| *identity),
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
        Ok(IndexFile::written(map, &self.sections))
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
        self.file.flush()?;
        let written = self.file.get_mut();
        (&written.file).seek(SeekFrom::Start(0))?;
        (&written.file).write_all(&head)?;
        if let Some((path, temporary)) = &written.place {
            // If the system stops before the content is on the disk, the checksums show that.
            std::fs::rename(temporary, path)?;
            written.place = None;
        }
        let map = GuardedMap::new(&self.file.get_ref().file)?;
        Ok(IndexFile::written(map, &self.sections))
    }
}

/// A file at the first of these places where one can be made; the place and those before it are removed from the list.
fn next_file(places: &mut Vec<PathBuf>) -> Option<(File, Place)> {
    while !places.is_empty() {
        let path = places.remove(0);
        if IndexPlace::make(&path)
            && let Ok(made) = create_at(path)
        {
            return Some(made);
        }
    }
    None
}

/// A file with the length and the checksum of what was written since the last section began.
struct Summed {
    file: File,
    /// Bytes in the file.
    end: u64,
    len: u64,
    crc: crc32fast::Hasher,
    place: Place,
    /// Places for when the disk of this one is full.
    others: Vec<PathBuf>,
    /// Whether the folder for temporary files was no help either.
    is_last: bool,
}

impl Summed {
    fn new(file: File, place: Place, others: Vec<PathBuf>) -> Summed {
        Summed {
            file,
            end: 0,
            len: 0,
            crc: crc32fast::Hasher::new(),
            place,
            others,
            is_last: false,
        }
    }

    /// Begins anew; gives the length and the checksum of what was written before.
    fn begin(&mut self) -> (u64, u32) {
        let crc = std::mem::take(&mut self.crc).finalize();
        (std::mem::take(&mut self.len), crc)
    }

    /// Continues in a file at the next place, which gets what was written so far.
    fn move_on(&mut self) -> io::Result<()> {
        let (mut file, place) = match next_file(&mut self.others) {
            Some(made) => made,
            None if !self.is_last => {
                self.is_last = true;
                (tempfile::tempfile()?, None)
            }
            None => {
                let printed = "no space left beside the dump, in the cache folder and in that for temporary files \
                            (--cache-dir names another one)";
                return Err(io::Error::new(io::ErrorKind::StorageFull, printed));
            }
        };
        self.remove();
        self.place = place;
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut (&self.file).take(self.end), &mut file)?;
        self.file = file;
        Ok(())
    }

    /// Removes an unfinished file: nothing of it can be used.
    fn remove(&mut self) {
        if let Some((_, temporary)) = self.place.take() {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

impl Drop for Summed {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Write for Summed {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = loop {
            match self.file.write(buf) {
                Ok(n) => break n,
                Err(e) if is_full_disk(&e) => {
                    while let Err(e) = self.move_on() {
                        if !is_full_disk(&e) || self.is_last {
                            return Err(e);
                        }
                    }
                }
                Err(e) => return Err(e),
            }
        };
        self.end += n as u64;
        self.len += n as u64;
        self.crc.update(&buf[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_folder_that_cannot_be_written_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let second = folder.path().join("second/1.idx");
        // A folder of this user's, in which not even root can make a file.
        let own = PathBuf::from("/proc/self/fd/1.idx");
        assert!(IndexPlace::make(&own) && create_at(own.clone()).is_err());
        let mut places = vec![own.clone(), second.clone(), own];
        let (_, place) = next_file(&mut places).expect("a file");
        assert_eq!(place.expect("a place").0, second);
        assert!(next_file(&mut places).is_none());
    }

    #[test]
    fn a_file_on_a_full_disk_goes_on_at_the_next_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).join("1.idx");
        let (file, place) = {
            assert!(IndexPlace::make(&at("first")));
            create_at(at("first")).expect("a file")
        };
        let first = place.as_ref().expect("a place").1.clone();
        let mut written = Summed::new(file, place, vec![at("second")]);
        written.write_all(b"before").expect("room");
        written.move_on().expect("another place");
        assert!(!first.exists());
        let second = written.place.as_ref().expect("a place").clone();
        assert_eq!(second.0, at("second"));
        written.write_all(b", after").expect("room");
        assert_eq!(
            std::fs::read(&second.1).expect("the file"),
            b"before, after"
        );
        // Whatever is written to this file, there is no space.
        let full = File::options().read(true).write(true).open("/dev/full");
        written.file = full.expect("the device");
        written.write_all(b", last").expect("an unlinked file");
        assert!(!second.1.exists() && written.place.is_none());
        assert_eq!((written.end, written.begin().0), (19, 19));
        let mut last = [0; 6];
        written.file.read_exact_at(&mut last, 13).expect("19 bytes");
        assert_eq!(&last, b", last");
        let full = File::options().read(true).write(true).open("/dev/full");
        written.file = full.expect("the device");
        let printed = written.write(b"x").expect_err("no space").to_string();
        assert!(printed.contains("--cache-dir"), "{printed}");
    }
}
