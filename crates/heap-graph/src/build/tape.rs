//! Long sequences that are written and read only in order: in memory for small heaps, in an unlinked temporary file for
//! large ones, so that they do not add to the peak of memory.

use super::cell::Cell;
use crate::raw::{BigVec, Budget, bytes_of, bytes_of_mut};
use hprof::source::{read_exact_at, write_all_at};
use std::fs::File;
use std::io;

/// Values per block. Equal to the bucket size of [`super::pairs`], so that one block of parents belongs to one bucket
/// of edges.
pub(crate) const BLOCK: usize = 1 << 16;

#[derive(Debug)]
enum Store<C: Cell> {
    Memory(BigVec<'static, C>),
    File(File),
}

/// A sequence of blocks. Every block but the last has [`BLOCK`] values.
#[derive(Debug)]
pub(crate) struct Tape<C: Cell> {
    store: Store<C>,
    /// Values appended since the last full block.
    tail: Vec<C>,
    blocks: usize,
    pub(crate) len: u64,
}

impl<C: Cell> Tape<C> {
    /// A tape that will hold at most `expect` values.
    pub(crate) fn new(expect: u64, budget: &Budget) -> io::Result<Tape<C>> {
        let store = if expect < budget.tuning().in_file {
            Store::Memory(BigVec::small(expect as usize)?)
        } else {
            Store::File(tempfile::tempfile_in(budget.dir())?)
        };
        Ok(Tape {
            store,
            tail: Vec::with_capacity(BLOCK.min(expect as usize + 1)),
            blocks: 0,
            len: 0,
        })
    }

    /// All values of a slice.
    pub(crate) fn of(values: &[C], budget: &Budget) -> io::Result<Tape<C>> {
        let mut tape = Tape::new(values.len() as u64, budget)?;
        for block in values.chunks(BLOCK) {
            tape.put(tape.blocks, block)?;
        }
        tape.len = values.len() as u64;
        Ok(tape)
    }

    /// Appends a value. Call [`finish`](Self::finish) after the last.
    #[inline]
    pub(crate) fn push(&mut self, value: C) -> io::Result<()> {
        self.tail.push(value);
        self.len += 1;
        if self.tail.len() == BLOCK {
            self.finish()
        } else {
            Ok(())
        }
    }

    /// Writes the last, incomplete block.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let tail = std::mem::take(&mut self.tail);
        if !tail.is_empty() {
            self.put(self.blocks, &tail)?;
        }
        self.tail = tail;
        self.tail.clear();
        Ok(())
    }

    /// Writes a block by its number; blocks may be written in any order.
    pub(crate) fn put(&mut self, block: usize, values: &[C]) -> io::Result<()> {
        self.blocks = self.blocks.max(block + 1);
        match &mut self.store {
            Store::Memory(all) => {
                let part = all.get_mut(block * BLOCK..block * BLOCK + values.len());
                let part = part.ok_or_else(|| io::Error::other("more values than expected"))?;
                part.copy_from_slice(values);
                Ok(())
            }
            Store::File(file) => {
                let at = block * BLOCK * size_of::<C>();
                write_all_at(file, bytes_of(values), at as u64)
            }
        }
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// A block; `buffer` may be used to read it.
    pub(crate) fn get<'t>(&'t self, block: usize, buffer: &'t mut Vec<C>) -> io::Result<&'t [C]> {
        let from = block * BLOCK;
        let len = self.len.saturating_sub(from as u64).min(BLOCK as u64) as usize;
        match &self.store {
            Store::Memory(all) => Ok(all.get(from..from + len).unwrap_or_default()),
            Store::File(file) => {
                buffer.resize(len, C::default());
                read_exact_at(file, bytes_of_mut(buffer), (from * size_of::<C>()) as u64)?;
                Ok(buffer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_from_memory_and_from_a_file() {
        let dir = std::env::temp_dir();
        for in_file in [200_001, 200_000] {
            let budget = Budget::for_test(&dir, in_file);
            let mut tape = Tape::<u32>::new(200_000, &budget).unwrap();
            (0..200_000u32).for_each(|i| tape.push(i * 3).unwrap());
            tape.finish().unwrap();
            assert_eq!((tape.len, tape.blocks()), (200_000, 4));
            let mut buffer = Vec::new();
            let out = tape.get(3, &mut buffer).unwrap();
            assert_eq!(out.len(), 200_000 - 3 * BLOCK);
            assert_eq!(out[7], (3 * BLOCK as u32 + 7) * 3);
        }
    }
}
