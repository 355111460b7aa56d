//! Converts events to bytes: the host's side of a stream.

use std::collections::BTreeMap;

use super::batch::{Batch, BatchWriter};
use super::command::Answer;
use super::frame::{self, FrameType, MAGIC};
use super::hello::Hello;
use super::item::Item;
use crate::kind::EventKind;
use crate::vm_event::{Body, EnvId, VmEvent};

/// A batch is closed at about this many bytes.
const BATCH_BYTES: usize = 32 << 10;

/// Encodes a stream. It performs no input or output: the host calls [`take`](Encoder::take) and writes the bytes
/// itself, so a socket, a pipe and a file get the same bytes.
///
/// Each thread has its own open batch. An item whose position among other threads' events matters (everything except
/// calls, monitors and allocations) closes their batches first, so the order in the stream is one in which the VM could
/// have sent the events.
///
/// A host that must not wait for a slow reader sets a limit: while more bytes than that wait, only definitions, arenas
/// and the brackets of collections are kept in batches, and the dropped items are counted exactly by kind. The counts
/// are sent as [`Item::Lost`] when the bytes are below the limit again, or at the end.
///
/// ```
/// use vmpi::wire::{Decoder, Encoder, Frame, Hello, Item};
/// use vmpi::{ArenaId, Body, EnvId, VmEvent};
///
/// let mut encoder = Encoder::new(&Hello::default());
/// let body = Body::ArenaNew { arena: ArenaId(1), name: "heap".into() };
/// encoder.event(&VmEvent::new(EnvId(0), body.clone()));
/// let bytes = encoder.finish();
///
/// let mut decoder = Decoder::new();
/// decoder.push(&bytes);
/// assert!(matches!(decoder.next_frame(), Ok(Some(Frame::Hello(_)))));
/// let Ok(Some(Frame::Batch(mut batch))) = decoder.next_frame() else { panic!() };
/// assert_eq!(batch.next(), Some(Ok(Item::event(body))));
/// ```
#[derive(Debug)]
pub struct Encoder {
    batches: Vec<BatchWriter>,
    /// The index of the batch used last; most events come in runs of one thread.
    last: usize,
    /// An open batch with an ordered item: it must be closed before an item of another thread is added.
    ordered: Option<usize>,
    now: u64,
    reported: Vec<u64>,
    out: Vec<u8>,
    limit: usize,
    lost: BTreeMap<Option<EventKind>, u64>,
    total_lost: u64,
}

impl Encoder {
    /// A stream that begins with this `Hello` and never drops anything.
    #[must_use]
    pub fn new(hello: &Hello) -> Self {
        Self::with_limit(hello, usize::MAX)
    }

    /// A stream that drops events while more than `limit` bytes wait to be taken.
    #[must_use]
    pub fn with_limit(hello: &Hello, limit: usize) -> Self {
        let mut out = MAGIC.to_vec();
        frame::put(&mut out, FrameType::Hello, &hello.encode());
        Self {
            batches: Vec::new(),
            last: 0,
            ordered: None,
            now: 0,
            reported: Vec::new(),
            out,
            limit,
            lost: BTreeMap::new(),
            total_lost: 0,
        }
    }

    /// Sets the time, in nanoseconds since the stream began. It is written before the next item of each thread.
    pub fn clock(&mut self, ns: u64) {
        self.now = ns;
    }

    /// Adds one event.
    pub fn event(&mut self, event: &VmEvent) {
        // The item borrows nothing, so a frequent event costs only a small copy.
        self.item(
            event.env,
            &Item::Event {
                requested: event.requested,
                body: event.body.clone(),
            },
        );
    }

    /// Adds one item of a thread.
    pub fn item(&mut self, env: EnvId, item: &Item) {
        let at = self.batch_of(env);
        if item.is_dump() {
            // A dump has a separate batch, so that no batch with a dump must be decoded to drop items.
            self.close(at);
        }
        if item.is_ordered() {
            // If this thread already has an ordered item, the others are closed.
            if self.ordered != Some(at) {
                for other in (0..self.batches.len()).filter(|other| *other != at) {
                    self.close(other);
                }
            }
            self.ordered = Some(at);
        } else if let Some(ordered) = self.ordered.filter(|ordered| *ordered != at) {
            self.close(ordered);
        }
        if self.reported[at] != self.now {
            self.reported[at] = self.now;
            self.batches[at].push(&Item::Clock { ns: self.now });
        }
        self.batches[at].push(item);
        if self.batches[at].size() >= BATCH_BYTES {
            self.close(at);
        }
        if matches!(
            item,
            Item::Event {
                body: Body::ThreadEnd,
                ..
            }
        ) {
            self.forget(at);
        }
    }

    /// Adds many items of one thread.
    pub fn items<'i>(&mut self, env: EnvId, items: impl IntoIterator<Item = &'i Item>) {
        for item in items {
            self.item(env, item);
        }
    }

    /// Answers a command; its results must be added before.
    pub fn answer(&mut self, answer: Answer) {
        self.flush();
        frame::put(&mut self.out, FrameType::Answer, &answer.encode());
    }

    /// Closes all open batches.
    pub fn flush(&mut self) {
        for at in 0..self.batches.len() {
            self.close(at);
        }
    }

    /// Bytes that wait to be taken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.out.len()
    }

    /// Events dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.total_lost
    }

    /// Takes the bytes that are ready; call [`flush`](Self::flush) before if the reader should get all events so far.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Ends the stream and takes the remaining bytes. A stream without this end can be read, too, and is known to be
    /// truncated.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.flush();
        self.emit_losses();
        frame::put(&mut self.out, FrameType::End, &[]);
        self.out
    }

    fn batch_of(&mut self, env: EnvId) -> usize {
        if self
            .batches
            .get(self.last)
            .is_some_and(|batch| batch.env() == env)
        {
            return self.last;
        }
        let found = self.batches.iter().position(|batch| batch.env() == env);
        self.last = found.unwrap_or_else(|| {
            self.batches.push(BatchWriter::new(env));
            self.reported.push(0);
            self.batches.len() - 1
        });
        self.last
    }

    fn close(&mut self, at: usize) {
        if self.ordered == Some(at) {
            self.ordered = None;
        }
        if self.batches[at].is_empty() {
            return;
        }
        let may_be_thinned = self.batches[at].may_be_thinned;
        let payload = self.batches[at].finish();
        if self.out.len().saturating_add(payload.len()) > self.limit && may_be_thinned {
            self.thin(&payload);
        } else {
            self.emit_losses();
            frame::put(&mut self.out, FrameType::Batch, &payload);
        }
    }

    /// Keeps the items of a batch that a reader needs and counts the others as dropped.
    fn thin(&mut self, payload: &[u8]) {
        let batch = Batch::decode(payload, 0).expect("a batch this crate wrote");
        let mut kept = BatchWriter::new(batch.env());
        for item in batch {
            let item = item.expect("an item this crate wrote");
            if item.may_be_dropped() {
                let kind = match &item {
                    Item::Event { body, .. } => Some(body.kind()),
                    _ => None,
                };
                *self.lost.entry(kind).or_default() += 1;
                self.total_lost += 1;
            } else if !matches!(item, Item::Clock { .. }) {
                kept.push(&item);
            }
        }
        if !kept.is_empty() {
            frame::put(&mut self.out, FrameType::Batch, &kept.finish());
        }
    }

    fn emit_losses(&mut self) {
        if self.lost.is_empty() {
            return;
        }
        let mut batch = BatchWriter::new(EnvId(0));
        for (kind, count) in std::mem::take(&mut self.lost) {
            batch.push(&Item::Lost { kind, count });
        }
        frame::put(&mut self.out, FrameType::Batch, &batch.finish());
    }

    /// A thread has ended: closes its batch and frees its entry.
    fn forget(&mut self, at: usize) {
        self.close(at);
        self.batches.swap_remove(at);
        self.reported.swap_remove(at);
        self.ordered = None;
        self.last = 0;
    }
}
