//! The index file: a header, sections aligned to 64 bytes, and a table of them at the end.
//!
//! ```text
//! 0   magic "TENUREIX"           8 bytes
//! 8   version                    u32, little-endian like everything here
//! 12  number of sections         u32
//! 16  offset of the table        u64
//! 24  identity of the dump       32 bytes (see `identity`)
//! 56  CRC-32 of the 56 bytes before and of the table, u64
//! 64  sections ...
//!     table: per section its tag, offset, length and CRC-32, each u64
//! ```
//! A file is written under another name and renamed when it is whole, so an index that exists is
//! complete; one of another version or of another dump is made again. The checksum of a section is
//! verified when the section is first read.

use super::identity::Identity;
use crate::packed::ColumnPlace;
use crate::raw::view;
use hprof::source::{GuardedMap, Health};
use std::path::Path;
use std::sync::OnceLock;

/// Changed whenever a section changes its meaning.
pub(crate) const VERSION: u32 = 11;
pub(super) const MAGIC: &[u8; 8] = b"TENUREIX";
pub(super) const ALIGN: u64 = 64;

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
    /// Offsets of the records that repeat an id and are not counted; absent when there are none.
    Repetitions = 19,
}

/// A row of the table of sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) tag: u64,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) crc: u32,
}

/// The checksum of the header and the table.
pub(super) fn head_checksum(head: &[u8], table: &[u8]) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(table);
    u64::from(hasher.finalize())
}

/// A mapped index.
pub(crate) struct IndexFile {
    map: GuardedMap,
    /// Where each section lies, by tag.
    places: [Option<Place>; TAGS],
    /// Whether the checksum of each section is right, by tag; empty until it is first read.
    sound: [OnceLock<bool>; TAGS],
    /// The sections that are columns and sound, by tag; empty until a value of it is first read.
    columns: [OnceLock<Option<(Place, ColumnPlace)>>; TAGS],
}

#[derive(Clone, Copy)]
struct Place {
    from: usize,
    to: usize,
    crc: u32,
}

/// Tags are below this.
const TAGS: usize = 32;

impl IndexFile {
    fn new(map: GuardedMap, sections: &[Entry]) -> IndexFile {
        let mut places = [None; TAGS];
        for entry in sections {
            let end = entry.offset.checked_add(entry.len);
            let end = end.filter(|end| *end <= map.len() as u64);
            if let Some(place) = places.get_mut(entry.tag as usize)
                && let Some(end) = end
                && place.is_none()
            {
                *place = Some(Place {
                    from: entry.offset as usize,
                    to: end as usize,
                    crc: entry.crc,
                });
            }
        }
        IndexFile {
            map,
            places,
            sound: Default::default(),
            columns: Default::default(),
        }
    }

    /// Views what this process has just written: its checksums need no verification.
    pub(super) fn written(map: GuardedMap, sections: &[Entry]) -> IndexFile {
        let file = IndexFile::new(map, sections);
        for sound in &file.sound {
            // A new cell is empty, so this cannot fail.
            let _ = sound.set(true);
        }
        file
    }

    /// Opens an index; `None` if it is not one, is not Tenure's, is of another version, or of another
    /// dump.
    pub(crate) fn open(path: &Path, identity: Identity) -> Option<IndexFile> {
        let map = GuardedMap::new(&super::open_own(path).ok()?).ok()?;
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
        if word(56) != Some(head_checksum(&head[..56], table)) {
            return None;
        }
        let sections: Vec<Entry> = view::<u64>(table)?
            .chunks_exact(4)
            .map(|e| Entry {
                tag: e[0],
                offset: e[1],
                len: e[2],
                crc: e[3] as u32,
            })
            .collect();
        Some(IndexFile::new(map, &sections))
    }

    /// The bytes of a section, empty if there is none; `None` if its checksum is wrong.
    pub(crate) fn verified(&self, tag: Tag) -> Option<&[u8]> {
        let Some(place) = self.places[tag as usize] else {
            return Some(&[]);
        };
        let bytes = self.map.get(place.from..place.to).unwrap_or_default();
        let sound = self.sound[tag as usize].get_or_init(|| crc32fast::hash(bytes) == place.crc);
        sound.then_some(bytes)
    }

    /// A value of a section that is a column, 0 if there is none; `None` if its checksum is wrong.
    #[inline]
    pub(crate) fn value(&self, tag: Tag, at: u64) -> Option<u64> {
        let column = self.columns[tag as usize].get_or_init(|| {
            let column = ColumnPlace::of(self.verified(tag)?)?;
            Some((self.places[tag as usize]?, column))
        });
        match column {
            Some((place, column)) => {
                let bytes = self.map.get(place.from..place.to).unwrap_or_default();
                Some(column.get(bytes, at))
            }
            None => self.verified(tag).map(|_| 0),
        }
    }

    /// The bytes of a section; empty if there is none, or if its checksum is wrong.
    pub(crate) fn bytes(&self, tag: Tag) -> &[u8] {
        self.verified(tag).unwrap_or_default()
    }

    /// A section as an array; empty if there is none.
    pub(crate) fn array<T: crate::raw::Plain>(&self, tag: Tag) -> &[T] {
        view(self.bytes(tag)).unwrap_or_default()
    }

    /// Whether what was read so far can be trusted.
    pub(crate) fn health(&self) -> &Health {
        self.map.health()
    }
}
