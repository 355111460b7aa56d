//! Bytes in, events out: the reader's side of a stream.

use super::batch::Batch;
use super::command::Answer;
use super::damage::Damage;
use super::frame::{FrameType, MAGIC, Splitter};
use super::hello::Hello;

/// What a stream says, a frame at a time.
#[derive(Clone, Debug)]
pub enum Frame<'a> {
    /// Who speaks; always first.
    Hello(Hello),
    /// Events of one thread.
    Batch(Batch<'a>),
    /// The answer to a command.
    Answer(Answer),
    /// The stream is whole and over.
    End,
}

/// Reads a stream that arrives in any portions. It does no input or output, trusts
/// no length, and holds at most the frame that is arriving.
#[derive(Debug)]
pub struct Decoder {
    splitter: Splitter,
    greeted: bool,
    ended: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A new stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            splitter: Splitter::new(),
            greeted: false,
            ended: false,
        }
    }

    /// Whether bytes begin as an event stream does.
    #[must_use]
    pub fn recognises(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// Takes bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// Bytes of the stream that have been made into frames.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.splitter.offset()
    }

    /// The next frame, `None` until more bytes are pushed.
    ///
    /// # Errors
    /// Where and how the stream is damaged. What came before stands; there is
    /// no way on from there.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Damage> {
        let before = self.splitter.offset();
        let Some((kind, payload)) = self.splitter.next()? else {
            return Ok(None);
        };
        if self.ended || (kind == FrameType::Hello) == self.greeted {
            let expected = match (self.ended, self.greeted) {
                (true, _) => "nothing after the end",
                (_, false) => "a hello first",
                (_, true) => "one hello only",
            };
            let found = format!("a frame of type {}", kind as u8);
            return Err(Damage::new(before, "frame order", expected, found));
        }
        Ok(Some(match kind {
            FrameType::Hello => {
                self.greeted = true;
                Frame::Hello(Hello::decode(payload.bytes, payload.offset)?)
            }
            FrameType::Batch => Frame::Batch(Batch::decode(payload.bytes, payload.offset)?),
            FrameType::Answer => Frame::Answer(Answer::decode(payload.bytes, payload.offset)?),
            FrameType::End => {
                self.ended = true;
                Frame::End
            }
            FrameType::Piece | FrameType::Command => {
                let found = format!("a frame of type {}", kind as u8);
                return Err(Damage::new(before, "frame order", "a host's frame", found));
            }
        }))
    }

    /// What is missing, if the bytes pushed so far are all there will be.
    #[must_use]
    pub fn missing(&self) -> Option<Damage> {
        if self.ended && self.splitter.waiting() == 0 {
            return None;
        }
        let (expected, found) = if self.ended {
            (
                "nothing after the end",
                format!("{} bytes", self.splitter.waiting()),
            )
        } else {
            match self.splitter.waiting() {
                0 => (
                    "the end of the recording",
                    "the end of the file".to_string(),
                ),
                part => (
                    "a whole frame",
                    format!("{part} bytes of one and the end of the file"),
                ),
            }
        };
        Some(Damage::new(self.offset(), "stream", expected, found))
    }
}

/// Reads a whole stream from memory and hands each frame to `each`, up to its end
/// or to its damage.
///
/// # Errors
/// Where the stream is damaged or cut; everything before was handed over.
pub fn read_all(
    bytes: &[u8],
    mut each: impl FnMut(Frame<'_>) -> Result<(), Damage>,
) -> Result<(), Damage> {
    let mut decoder = Decoder::new();
    for portion in bytes.chunks(1 << 20) {
        decoder.push(portion);
        while let Some(frame) = decoder.next_frame()? {
            each(frame)?;
        }
    }
    decoder.missing().map_or(Ok(()), Err)
}
