//! Decodes the bytes of a stream into a heap; they may be passed in pieces of any size.

use vmpi::wire::{Damage, Decoder, Frame};

use crate::heap::LiveHeap;
use crate::trail::Watch;

/// A stream that is being replayed. It performs no input: the code that reads a socket, a pipe or a file pushes the
/// bytes.
#[derive(Debug, Default)]
pub struct Replay {
    decoder: Decoder,
    heap: Option<LiveHeap>,
    damage: Option<Damage>,
    watch: Option<Watch>,
}

impl Replay {
    /// A replay without any bytes yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Replay::new`], and watches some objects.
    #[must_use]
    pub fn watching(watch: Watch) -> Self {
        Self {
            watch: Some(watch),
            ..Self::default()
        }
    }

    /// Adds bytes. After damage they are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.damage.is_none() {
            self.decoder.push(bytes);
            self.damage = self.frames().err();
        }
    }

    fn frames(&mut self) -> Result<(), Damage> {
        while let Some(frame) = self.decoder.next_frame()? {
            match (frame, &mut self.heap) {
                (Frame::Hello(hello), heap) => {
                    let mut fresh = LiveHeap::new(&hello);
                    fresh.watch = self.watch.take().map(Box::new);
                    *heap = Some(fresh);
                }
                (Frame::Batch(batch), Some(heap)) => {
                    for item in batch {
                        heap.apply(&item?);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The heap so far, after the `Hello` was received.
    #[must_use]
    pub fn heap(&self) -> Option<&LiveHeap> {
        self.heap.as_ref()
    }

    /// Ends the stream: returns the heap, and the damage of the stream if there is any.
    ///
    /// # Errors
    /// Not even the `Hello` could be read.
    pub fn finish(self) -> Result<(LiveHeap, Option<Damage>), Damage> {
        let damage = self.damage.or_else(|| self.decoder.missing());
        match (self.heap, damage) {
            (Some(mut heap), damage) => {
                heap.finish();
                Ok((heap, damage))
            }
            (None, Some(damage)) => Err(damage),
            (None, None) => unreachable!("a stream that is whole has a greeting"),
        }
    }
}
