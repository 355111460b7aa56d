//! A stack that may grow to the number of objects. Its lower part goes to an unlinked temporary file, so that a list of
//! millions of objects takes little memory.

use crate::raw::{Budget, Plain, bytes_of, bytes_of_mut};
use hprof::source::{read_exact_at, write_all_at};
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// A stack of plain values.
pub(crate) struct Stack<T> {
    /// The top of the stack; empty only if the stack is. At most two blocks.
    top: Vec<T>,
    /// Values per block.
    block: usize,
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
            block: budget.tuning().stack_block,
            file: None,
            dir: budget.dir().to_owned(),
            blocks: 0,
            failed: Ok(()),
        }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        if self.top.len() == self.top.capacity() {
            self.make_room();
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

    /// Doubles the part in memory up to two blocks; then writes the lower one to the file.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let (len, most) = (self.top.len(), 2 * self.block);
        if len < most {
            self.top.reserve_exact(len.max(1).min(most - len));
            return;
        }
        let done = self.write();
        self.note(done);
        self.top.drain(..self.block.min(self.top.len()));
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.dir)?),
        };
        let at = self.blocks * (self.block * size_of::<T>()) as u64;
        write_all_at(file, bytes_of(&self.top[..self.block]), at)?;
        self.blocks += 1;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn reload(&mut self) {
        self.blocks -= 1;
        let at = self.blocks * (self.block * size_of::<T>()) as u64;
        self.top.resize(self.block, T::default());
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
        let mut stack = Stack::new(&Budget::for_test(&std::env::temp_dir(), 0));
        let block = stack.block;
        let mut model = Vec::new();
        // Up and down around the limits of blocks, then through all values.
        for (pushed, popped) in [
            (5 * block, block + 1),
            (block, 2 * block),
            (3 * block, 9 * block),
        ] {
            for n in 0..pushed {
                stack.push([model.len() as u64, n as u64]);
                model.push([model.len() as u64, n as u64]);
                assert!(stack.top.capacity() <= 2 * block);
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
        let budget = Budget::for_test(std::path::Path::new("/no/such/folder"), 0);
        let mut stack = Stack::new(&budget);
        (0..3 * stack.block as u64).for_each(|n| stack.push(n));
        assert!(stack.check().is_err());
    }
}
