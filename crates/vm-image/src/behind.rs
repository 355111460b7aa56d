//! Output that a separate thread writes while the next bytes are computed: writing to a file takes about as long as
//! computing the data.

use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// The most bytes of a block: a MiB, another one of a segment, an array of a MiB whose references become twice as long,
/// and the heads of these.
pub(crate) const BLOCK: usize = (4 << 20) + (1 << 16);
/// The most blocks that wait until they are written.
const WAITING: usize = 4;

/// A block of output. Its whole capacity is allocated and writable from the start.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    used: usize,
}

impl Block {
    pub(crate) fn new() -> Block {
        Block {
            bytes: vec![0; BLOCK],
            used: 0,
        }
    }

    /// A block with capacity 0.
    pub(crate) fn none() -> Block {
        Block {
            bytes: Vec::new(),
            used: 0,
        }
    }

    /// How many more bytes fit.
    pub(crate) fn rest(&self) -> usize {
        self.bytes.len() - self.used
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// The bytes that it has.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.used]
    }

    /// Adds this many bytes with arbitrary contents; `None` if they do not fit.
    pub(crate) fn more(&mut self, count: usize) -> Option<&mut [u8]> {
        let end = self.used.checked_add(count)?;
        let more = self.bytes.get_mut(self.used..end)?;
        self.used = end;
        Some(more)
    }

    /// Appends as many of these bytes as fit; returns how many.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.rest());
        self.bytes[self.used..self.used + count].copy_from_slice(&bytes[..count]);
        self.used += count;
        count
    }
}

/// The destination of blocks.
pub(crate) trait Sink {
    /// Takes a full block, and returns an empty one.
    fn swap(&mut self, full: Block) -> io::Result<Block>;
}

/// An output that writes each block immediately.
pub(crate) struct Direct<W>(pub(crate) W);

impl<W: Write> Sink for Direct<W> {
    fn swap(&mut self, mut full: Block) -> io::Result<Block> {
        self.0.write_all(full.bytes())?;
        full.used = 0;
        Ok(full)
    }
}

/// Passes blocks to the thread that writes them.
struct Behind {
    full: SyncSender<Block>,
    empty: Receiver<Block>,
}

impl Sink for Behind {
    fn swap(&mut self, full: Block) -> io::Result<Block> {
        // If the other end is closed, the thread has ended with an error, which is the one to report.
        let ended = |_| io::Error::from(ErrorKind::BrokenPipe);
        self.full.send(full).map_err(ended)?;
        Ok(self.empty.try_recv().unwrap_or_else(|_| Block::new()))
    }
}

/// Calls `body` with an output that a separate thread writes, or that is written immediately if no thread can be
/// started. Everything is written when this returns.
pub(crate) fn written_behind<T>(
    mut out: impl Write + Send,
    body: impl FnOnce(&mut dyn Sink) -> io::Result<T>,
) -> io::Result<T> {
    let mut body = Some(body);
    let result = thread::scope(|scope| {
        let (full, blocks) = sync_channel::<Block>(WAITING);
        let (used, empty) = channel();
        let mut out = Direct(&mut out);
        let write = move || {
            for block in blocks {
                // Sending fails only if the other end is closed, and then no one needs the block.
                drop(used.send(out.swap(block)?));
            }
            out.0.flush()
        };
        let writing = thread::Builder::new().name("writer of dump".to_owned());
        let writing = writing.spawn_scoped(scope, write).ok()?;
        let body = body.take()?;
        let made = body(&mut Behind { full, empty });
        let written = writing.join();
        let written = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(written.and(made))
    });
    match (result, body) {
        (Some(result), _) => result,
        (None, Some(body)) => {
            let made = body(&mut Direct(&mut out))?;
            out.flush()?;
            Ok(made)
        }
        (None, None) => Err(ErrorKind::OutOfMemory.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Block, written_behind};
    use std::io::{self, ErrorKind, Write};

    /// A block filled with this byte.
    fn block(byte: u8, count: usize) -> Block {
        let mut block = Block::new();
        block.more(count).expect("place").fill(byte);
        block
    }

    #[test]
    fn all_blocks_arrive_in_their_order() {
        let mut found = Vec::new();
        let written = written_behind(&mut found, |out| {
            (0..20).try_for_each(|i| out.swap(block(i, BLOCK - 1)).map(drop))
        });
        written.expect("written");
        assert_eq!(found.len(), 20 * (BLOCK - 1));
        let pieces = found.chunks(BLOCK - 1).zip(0..);
        assert!(
            pieces
                .into_iter()
                .all(|(piece, i)| piece.iter().all(|byte| *byte == i))
        );
    }

    #[test]
    fn a_block_has_no_more_than_its_place() {
        let mut block = Block::new();
        assert!(block.more(BLOCK + 1).is_none());
        assert!(block.more(BLOCK - 2).is_some());
        assert_eq!(block.fill(b"abc"), 2);
        assert!(block.more(1).is_none() && block.bytes().ends_with(b"ab"));
        assert_eq!(block.len(), BLOCK);
    }

    /// A disk with space for this many blocks.
    struct Small(usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let left = self.0.checked_sub(1);
            self.0 = left.ok_or(ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_reason_why_it_cannot_be_written_is_reported() {
        for blocks in [0, 1, 5, 19] {
            let written = written_behind(Small(blocks), |out| {
                (0..20).try_for_each(|_| out.swap(block(0, 1)).map(drop))
            });
            let kind = written.expect_err("a full disk").kind();
            assert_eq!(kind, ErrorKind::StorageFull, "{blocks}");
        }
        let made = written_behind(Vec::new(), |_| Err::<(), _>(ErrorKind::NotFound.into()));
        assert_eq!(made.expect_err("an error").kind(), ErrorKind::NotFound);
    }
}
