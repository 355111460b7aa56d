//! The edit of one method: which bytes are inserted at which position.

use crate::class::{Code, Method};
use crate::instruction::{Instruction, Instructions};
use crate::pool::PoolBuilder;

/// The position of inserted code relative to jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// At the entry of the method; a jump to offset 0 does not run it again.
    Entry,
    /// After the preceding instruction: runs when execution falls through from it, not after a jump to the given
    /// offset.
    AfterPrevious,
    /// Before the instruction: runs however the instruction is reached, also by jumps and exceptions.
    Before,
}

/// The type of an added local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalType {
    /// An `int`, one slot.
    Int,
    /// A `long`, two slots.
    Long,
    /// A reference to the class with this constant pool index, one slot.
    Object(u16),
}

impl LocalType {
    /// Slots it takes.
    #[must_use]
    pub fn slots(self) -> u16 {
        if self == Self::Long { 2 } else { 1 }
    }
}

/// One piece of inserted code.
#[derive(Clone, Debug)]
pub(crate) struct Insertion {
    pub(crate) pc: usize,
    pub(crate) place: Place,
    pub(crate) bytes: Vec<u8>,
}

/// What an [`Instrument`](crate::Instrument) does to a method that has code.
#[derive(Debug)]
pub struct MethodEdit<'a> {
    /// The method.
    pub method: &'a Method<'a>,
    /// Its code.
    pub code: &'a Code<'a>,
    /// Constants to append.
    pub pool: &'a mut PoolBuilder,
    pub(crate) instructions: Vec<Instruction<'a>>,
    pub(crate) insertions: Vec<Insertion>,
    pub(crate) locals: Vec<LocalType>,
    pub(crate) extra_stack: u16,
    pub(crate) least_len: usize,
}

impl<'a> MethodEdit<'a> {
    /// Prepares the edit; `None` if the code is malformed.
    pub(crate) fn new(
        method: &'a Method<'a>,
        code: &'a Code<'a>,
        pool: &'a mut PoolBuilder,
    ) -> Option<Self> {
        let instructions = Instructions::new(code.bytes)
            .collect::<Result<Vec<_>, _>>()
            .ok()?;
        Some(Self {
            method,
            code,
            pool,
            instructions,
            insertions: Vec::new(),
            locals: Vec::new(),
            extra_stack: 0,
            least_len: 0,
        })
    }

    /// The instructions, in order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction<'a>] {
        &self.instructions
    }

    /// Inserts branch-free code at the instruction that begins at `pc`. Pieces at the same position stay in the order
    /// of insertion. [`Place::Entry`] ignores `pc`.
    pub fn insert(&mut self, pc: usize, place: Place, bytes: &[u8]) {
        let pc = if place == Place::Entry { 0 } else { pc };
        self.insertions.push(Insertion {
            pc,
            place,
            bytes: bytes.to_vec(),
        });
    }

    /// Adds a local variable and returns its slot. The code inserted at entry must initialize it, because every stack
    /// map frame of the method then declares it as initialized.
    pub fn add_local(&mut self, local: LocalType) -> u16 {
        let before: u16 = self.locals.iter().map(|local| local.slots()).sum();
        self.locals.push(local);
        self.code.max_locals.saturating_add(before)
    }

    /// Reserves `slots` more values on the operand stack than the method itself uses at most.
    pub fn need_stack(&mut self, slots: u16) {
        self.extra_stack = self.extra_stack.max(slots);
    }

    /// Makes the code at least `bytes` long, with unreachable instructions at its end, if anything is inserted. A
    /// method has at most 65,535 bytes; if it would exceed that, it stays unchanged.
    pub fn lengthen(&mut self, bytes: usize) {
        self.least_len = bytes;
        self.need_stack(1);
    }

    /// How many bytes the insertions so far add.
    #[must_use]
    pub fn growth(&self) -> usize {
        self.insertions
            .iter()
            .map(|insertion| insertion.bytes.len())
            .sum()
    }

    /// Removes all insertions: the method stays unchanged.
    pub fn cancel(&mut self) {
        self.insertions.clear();
        self.locals.clear();
    }

    /// Whether nothing is inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.insertions.is_empty()
    }
}
