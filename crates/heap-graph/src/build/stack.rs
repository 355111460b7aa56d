//! A stack that may grow to the number of objects. Its lower part goes to an unlinked temporary file, so that a list of
//! millions of objects takes little memory.

use crate::raw::{Budget, Plain, bytes_of, bytes_of_mut};
use hprof::source::{read_exact_at, write_all_at};
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Values per block. At most two blocks are in memory.
const BLOCK: usize = 1 << 13;

/// A stack of plain values.
pub(crate) struct Stack<T> {
    /// The top of the stack; empty only if the stack is.
    top: Vec<T>,
    file: Option<File>,
    dir: PathBuf,
    /// Blocks in the file.
    blocks: u64,
    /// The first failure of the file. The stack is empty from then on.
    failed: io::Result<()>,
}

impl<T: Plain + Default> Stack<T> {
    /// An empty stack.
    pub(crate) fn new(budget: &Budget) -> Stack<T> {
        Stack {
            top: Vec::new(),
            file: None,
            dir: budget.dir().to_owned(),
            blocks: 0,
            failed: Ok(()),
        }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        if self.top.len() == 2 * BLOCK {
            self.spill();
        }
        self.top.push(value);
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let value = self.top.pop();
        if self.top.is_empty() && self.blocks > 0 {
            self.reload();
        }
        value
    }

    /// The value that was pushed last.
    #[inline(always)]
    pub(crate) fn last(&self) -> Option<&T> {
        self.top.last()
    }

    /// The value that comes after `count` others, if it is in memory.
    #[inline(always)]
    pub(crate) fn after(&self, count: usize) -> Option<&T> {
        self.top.iter().nth_back(count)
    }

    /// Whether everything that was pushed could be kept.
    ///
    /// # Errors
    /// When the file could not be written or read.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.failed, Ok(()))
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self) {
        let done = self.write();
        self.note(done);
        self.top.drain(..BLOCK.min(self.top.len()));
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.dir)?),
        };
        let at = self.blocks * (BLOCK * size_of::<T>()) as u64;
        write_all_at(file, bytes_of(&self.top[..BLOCK]), at)?;
        self.blocks += 1;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn reload(&mut self) {
        self.blocks -= 1;
        let at = self.blocks * (BLOCK * size_of::<T>()) as u64;
        self.top.resize(BLOCK, T::default());
        let done = match &self.file {
            Some(file) => read_exact_at(file, bytes_of_mut(&mut self.top), at),
            None => Ok(()),
        };
        self.note(done);
    }

    fn note(&mut self, done: io::Result<()>) {
        if done.is_err() {
            self.failed = done;
            self.blocks = 0;
            self.top.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deep_comes_back_and_takes_no_memory() {
        let dir = std::env::temp_dir();
        let mut stack = Stack::new(&Budget::new(None, &dir, crate::Phases::default()));
        let mut model = Vec::new();
        // Up and down around the limits of blocks, then through all values.
        for (pushed, popped) in [
            (5 * BLOCK, BLOCK + 1),
            (BLOCK, 2 * BLOCK),
            (3 * BLOCK, 9 * BLOCK),
        ] {
            for n in 0..pushed {
                stack.push([model.len() as u64, n as u64]);
                model.push([model.len() as u64, n as u64]);
                assert!(stack.top.capacity() <= 2 * BLOCK);
            }
            for _ in 0..popped {
                assert_eq!(stack.last(), model.last());
                assert_eq!(stack.pop(), model.pop());
            }
        }
        assert!(model.is_empty() && stack.pop().is_none());
        stack.check().expect("no failure");
    }

    #[test]
    fn a_stack_without_a_place_for_its_file_says_so() {
        let mut stack = Stack::new(&Budget::new(
            None,
            std::path::Path::new("/no/such/folder"),
            crate::Phases::default(),
        ));
        (0..3 * BLOCK as u64).for_each(|n| stack.push(n));
        assert!(stack.check().is_err());
    }
}
