//! Converts bytes to events: the reader's side of a stream.

use super::batch::Batch;
use super::command::Answer;
use super::damage::Damage;
use super::frame::{FrameType, MAGIC, Pieces, Splitter};
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
/// most the frame that is being received with its pieces; without batches, frames have no pieces.
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
        Self::of(Pieces::Join)
    }

    /// A decoder for a new stream that leaves out all batches: it stores a few mebibytes at most, whatever is sent.
    #[must_use]
    pub fn without_batches() -> Self {
        Self::of(Pieces::Skip)
    }

    fn of(pieces: Pieces) -> Self {
        Self {
            splitter: Splitter::new(pieces),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Encoder, Item};
    use crate::{Body, EnvId, HeapDump, Outcome};

    #[test]
    fn without_batches_no_pieces_are_stored() {
        const PORTION: usize = 1 << 16;
        let dump = HeapDump {
            data: vec![7; 5 << 20],
            ..HeapDump::default()
        };
        let answer = Answer {
            serial: 3,
            outcome: Outcome::Success,
        };
        let mut encoder = Encoder::new(&Hello::default());
        encoder.item(EnvId(1), &Item::event(Body::HeapDump(Box::new(dump))));
        encoder.answer(answer);
        let mut decoder = Decoder::without_batches();
        let mut frames = Vec::new();
        for portion in encoder.finish().chunks(PORTION) {
            decoder.push(portion);
            while let Some(frame) = decoder.next_frame().expect("no damage") {
                frames.push(match frame {
                    Frame::Hello(_) => "hello",
                    Frame::Batch(_) => "batch",
                    Frame::Answer(got) if got == answer => "answer",
                    Frame::Answer(_) => "another answer",
                    Frame::End => "end",
                });
            }
            let waiting = decoder.splitter.waiting();
            assert!(waiting <= super::super::frame::PIECE + PORTION, "{waiting}");
        }
        assert_eq!(frames, ["hello", "answer", "end"]);
        assert_eq!(decoder.missing(), None);
    }
}
