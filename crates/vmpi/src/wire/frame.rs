//! Frames: all bytes of a stream are in frames.
//!
//! A frame is one byte of type, the length of its payload (4 bytes, little-endian), the CRC-32 of type, length and
//! payload (4 bytes), and the payload. A payload over [`PIECE`] bytes is sent as [`FrameType::Piece`] frames followed
//! by a frame of the real type with the rest, so that no frame is large and a reader never has to trust a length.

use super::damage::Damage;

/// First bytes of every stream: a name, and bytes that a copy in text mode would change.
pub const MAGIC: [u8; 8] = *b"VMPI\r\n\x1a\n";

/// The longest payload of one frame.
pub const PIECE: usize = 1 << 20;

/// Bytes before a payload.
pub(crate) const HEAD: usize = 9;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameType {
    /// The sender; first in each direction.
    Hello = 1,
    /// Events of one thread.
    Batch = 2,
    /// A piece of the next frame's payload.
    Piece = 3,
    /// The answer to a command.
    Answer = 4,
    /// The end of a complete stream.
    End = 5,
    /// A command, in the reverse direction.
    Command = 16,
}

impl FrameType {
    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Hello,
            2 => Self::Batch,
            3 => Self::Piece,
            4 => Self::Answer,
            5 => Self::End,
            16 => Self::Command,
            _ => return None,
        })
    }
}

fn checksum(head: &[u8], payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(head);
    crc.update(payload);
    crc.finalize()
}

fn put_one(out: &mut Vec<u8>, kind: FrameType, payload: &[u8]) {
    let mut head = [0; 5];
    head[0] = kind as u8;
    head[1..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(&checksum(&head, payload).to_le_bytes());
    out.extend_from_slice(payload);
}

/// Appends a payload as one frame, or as pieces and a frame.
pub(crate) fn put(out: &mut Vec<u8>, kind: FrameType, mut payload: &[u8]) {
    out.reserve(payload.len() + HEAD * (payload.len() / PIECE + 1));
    while payload.len() > PIECE {
        let (piece, rest) = payload.split_at(PIECE);
        put_one(out, FrameType::Piece, piece);
        payload = rest;
    }
    put_one(out, kind, payload);
}

/// A stream of a `Hello` and one batch with these bytes as its payload: a test or a fuzzer can pass the checksum with
/// it.
#[must_use]
pub fn frame_of_batch(payload: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put(
        &mut out,
        FrameType::Hello,
        &super::Hello::default().encode(),
    );
    put(&mut out, FrameType::Batch, payload);
    out
}

/// A frame in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) kind: FrameType,
    pub(crate) payload: &'a [u8],
    /// Bytes of the whole frame.
    pub(crate) len: usize,
}

/// The frame at the beginning of `bytes`, which is at `offset` of the stream; `None` if it is incomplete.
pub(crate) fn parse(bytes: &[u8], offset: u64) -> Result<Option<Found<'_>>, Damage> {
    let Some((&code, _)) = bytes.split_first() else {
        return Ok(None);
    };
    let Some(kind) = FrameType::from_code(code) else {
        return Err(Damage::new(offset, "frame type", "1 to 5 or 16", code));
    };
    let Some(head) = bytes.get(..HEAD) else {
        return Ok(None);
    };
    let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if len > PIECE {
        let expected = format!("at most {PIECE} bytes");
        return Err(Damage::new(offset + 1, "frame length", expected, len));
    }
    let Some(payload) = bytes.get(HEAD..HEAD + len) else {
        return Ok(None);
    };
    let stored = u32::from_le_bytes([head[5], head[6], head[7], head[8]]);
    let real = checksum(&head[..5], payload);
    if stored != real {
        return Err(Damage::new(
            offset + 5,
            "frame checksum",
            format!("{stored:08x} as stored"),
            format!("{real:08x} over {len} bytes"),
        ));
    }
    Ok(Some(Found {
        kind,
        payload,
        len: HEAD + len,
    }))
}

/// What becomes of payloads that are sent in pieces; the other side decides how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// They are joined.
    Join,
    /// They are damage: every payload of this direction is small, so that no sender fills the memory.
    Refuse,
    /// They and all batches are left out, so that no sender fills the memory.
    Skip,
}

/// Splits a stream that is passed in pieces of any size into frames with complete payloads.
#[derive(Debug)]
pub(crate) struct Splitter {
    buffer: Vec<u8>,
    start: usize,
    offset: u64,
    pieces: Vec<u8>,
    joined: Vec<u8>,
    takes: Pieces,
    /// Whether pieces of the next payload were left out.
    skipped: bool,
    magic: bool,
}

impl Splitter {
    pub(crate) fn new(takes: Pieces) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            pieces: Vec::new(),
            joined: Vec::new(),
            takes,
            skipped: false,
            magic: false,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start > PIECE {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Offset in the stream of the next frame.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Received bytes that are not a complete frame yet.
    pub(crate) fn waiting(&self) -> usize {
        self.buffer.len() - self.start + self.pieces.len()
    }

    /// The next frame and the offset of its payload; copies only payloads that were sent in pieces. An error is
    /// returned again by later calls.
    pub(crate) fn next(&mut self) -> Result<Option<(FrameType, Payload<'_>)>, Damage> {
        if !self.magic {
            let here = &self.buffer[self.start..];
            let known = here.len().min(MAGIC.len());
            if here[..known] != MAGIC[..known] {
                let found = String::from_utf8_lossy(&here[..known]).into_owned();
                return Err(Damage::new(
                    0,
                    "stream",
                    "an event stream (VMPI)",
                    format!("{found:?}"),
                ));
            }
            if known < MAGIC.len() {
                return Ok(None);
            }
            self.advance(MAGIC.len());
            self.magic = true;
        }
        loop {
            let Some(found) = parse(&self.buffer[self.start..], self.offset)? else {
                return Ok(None);
            };
            let (kind, len) = (found.kind, found.len);
            let is_whole = match (kind, self.takes) {
                (FrameType::Piece, Pieces::Join) => {
                    self.pieces.extend_from_slice(found.payload);
                    self.advance(len);
                    continue;
                }
                (FrameType::Piece | FrameType::Batch, Pieces::Skip) => {
                    self.skipped = kind == FrameType::Piece;
                    self.advance(len);
                    continue;
                }
                _ => kind != FrameType::Piece && !self.skipped,
            };
            if !is_whole {
                let found = "a piece of one";
                return Err(Damage::new(self.offset, "frame", "a whole frame", found));
            }
            let at = self.start + HEAD;
            let end = self.start + len;
            let offset = self.offset + HEAD as u64;
            self.advance(len);
            let bytes = if self.pieces.is_empty() {
                &self.buffer[at..end]
            } else {
                self.pieces.extend_from_slice(&self.buffer[at..end]);
                self.joined = std::mem::take(&mut self.pieces);
                &self.joined
            };
            return Ok(Some((kind, Payload { bytes, offset })));
        }
    }

    fn advance(&mut self, len: usize) {
        self.start += len;
        self.offset += len as u64;
    }
}

/// The joined payload of a frame, and the offset of its last piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offset: u64,
}
