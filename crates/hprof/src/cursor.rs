//! A checked big-endian reader over a byte slice: every access returns `None` at the end.

use crate::{IdSize, ObjectId};

/// A position in a slice. All numbers of the format are big-endian.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    data: &'a [u8],
    pos: usize,
    ids: IdSize,
}

impl<'a> Cursor<'a> {
    /// Starts at the beginning of `data`.
    pub fn new(data: &'a [u8], ids: IdSize) -> Cursor<'a> {
        Cursor { data, pos: 0, ids }
    }

    /// Bytes read so far.
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> usize {
        self.data.len() - self.pos
    }

    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let end = self.pos.checked_add(n)?;
        let slice = self.data.get(self.pos..end)?;
        self.pos = end;
        Some(slice)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let slice = &self.data[self.pos..];
        self.pos = self.data.len();
        slice
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// u1.
    pub fn u1(&mut self) -> Option<u8> {
        self.array::<1>().map(|b| b[0])
    }

    /// u2.
    pub fn u2(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// u4.
    pub fn u4(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// u8.
    pub fn u8(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// An identifier of the file's width.
    pub fn id(&mut self) -> Option<ObjectId> {
        match self.ids {
            IdSize::Four => self.u4().map(|v| ObjectId(u64::from(v))),
            IdSize::Eight => self.u8().map(ObjectId),
        }
    }
}

/// Reads one identifier from the front of `bytes`; 0 if they are too few.
#[inline]
pub fn read_id(bytes: &[u8], ids: IdSize) -> ObjectId {
    match ids {
        IdSize::Four => ObjectId(
            bytes
                .first_chunk::<4>()
                .map_or(0, |b| u64::from(u32::from_be_bytes(*b))),
        ),
        IdSize::Eight => ObjectId(
            bytes
                .first_chunk::<8>()
                .map_or(0, |b| u64::from_be_bytes(*b)),
        ),
    }
}
