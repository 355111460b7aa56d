//! Converts bytes to events: the reader's side of a stream.

use super::batch::Batch;
use super::command::Answer;
use super::damage::Damage;
use super::frame::{FrameType, MAGIC, Splitter};
use super::hello::Hello;

/// One frame of a stream.
#[derive(Clone, Debug)]
pub enum Frame<'a> {
    /// The host; always first.
    Hello(Hello),
    /// Events of one thread.
    Batch(Batch<'a>),
    /// The answer to a command.
    Answer(Answer),
    /// The end of a complete stream.
    End,
}

/// Reads a stream that is passed in pieces of any size. It performs no input or output, trusts no length, and stores at
/// most the frame that is being received.
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
    /// A decoder for a new stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            splitter: Splitter::new(),
            greeted: false,
            ended: false,
        }
    }

    /// Whether the bytes are the start of an event stream.
    #[must_use]
    pub fn recognises(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// Bytes of the stream that have been decoded to frames.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.splitter.offset()
    }

    /// The next frame, `None` until more bytes are pushed.
    ///
    /// # Errors
    /// Where and how the stream is damaged. Earlier frames are valid; no later frame can be read.
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

    /// What is missing, if no more bytes will follow.
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

/// Reads a whole stream from memory and passes each frame to `each`, to its end or to the damage.
///
/// # Errors
/// Where the stream is damaged or truncated; all frames before were passed on.
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
