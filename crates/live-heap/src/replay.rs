//! Bytes of a stream into a heap, in whatever portions they come.

use vmpi::wire::{Damage, Decoder, Frame};

use crate::heap::LiveHeap;
use crate::trail::Watch;

/// A stream being replayed. It does no input: the code that reads a socket, a pipe or a
/// file pushes what has come.
#[derive(Debug, Default)]
pub struct Replay {
    decoder: Decoder,
    heap: Option<LiveHeap>,
    damage: Option<Damage>,
    watch: Option<Watch>,
}

impl Replay {
    /// Nothing has come yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Replay::new`], and some objects are looked out for.
    #[must_use]
    pub fn watching(watch: Watch) -> Self {
        Self {
            watch: Some(watch),
            ..Self::default()
        }
    }

    /// Takes bytes. After damage they are no longer examined.
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

    /// The heap so far, once the greeting has come.
    #[must_use]
    pub fn heap(&self) -> Option<&LiveHeap> {
        self.heap.as_ref()
    }

    /// The bytes are all here: the heap, and what is wrong with the stream.
    ///
    /// # Errors
    /// Not even the greeting could be read.
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
