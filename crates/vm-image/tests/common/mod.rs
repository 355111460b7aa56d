//! Programs that rest, and dumps as tables.

mod heap;
mod program;

pub(crate) use heap::Heap;
pub(crate) use program::Program;
