//! Mutator scripts: the actions of threads, one short line each.
//!
//! ```text
//! class Node 2 8          # two references and eight bytes of data
//! thread main             # what follows belongs to this thread
//! $list = null            # $ marks a variable that all threads share
//! repeat 100 i            # up to its end; i counts from 0
//!   call Main.build       # a method on the stack, up to its end
//!     n = new Node
//!     n[0] = $list
//!     $list = n
//!   end
//!   a = new Node[8]       # an array of references; new byte[100] of bytes
//!   a[i] = n              # a counter as an index is taken modulo the length
//! end
//! n = null
//! gc                      # collect everything; gc young only the young
//! thread other            # runs in turns with main, one line each
//! b = $list
//! c = b[1]
//! ```
//!
//! A thread ends after its last line. Lines before the first `thread` belong to
//! `main`.

mod parse;
mod run;

use vmpi::{BasicType, GcKind};

pub use run::{RunEnd, run, run_between};

/// A class that a script declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassDecl {
    pub(crate) name: String,
    pub(crate) slots: u32,
    pub(crate) data: u32,
    pub(crate) methods: Vec<String>,
}

/// A variable by its number among those of the thread or the shared ones.
pub(crate) use crate::vm::Variable;

/// An index into an object's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    Number(u32),
    Counter(u32),
}

/// The kind of an allocated object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Instance(usize),
    Array(usize, u32),
    Primitive(BasicType, u32),
}

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    New(Variable, What),
    Set(Variable, Option<Variable>),
    Load(Variable, Variable, Index),
    Store(Variable, Index, Option<Variable>),
    Gc(GcKind),
    /// Repeats the lines before the matching end this many times, with a counter variable.
    Repeat {
        times: u64,
        counter: u32,
        end: usize,
    },
    EndRepeat {
        start: usize,
    },
    /// A method by class and its index among the methods of that class.
    Call(usize, usize),
    EndCall,
}

/// A step and its line number, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) line: i32,
    pub(crate) op: Op,
}

/// The steps of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadDecl {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) counters: u32,
}

/// A valid script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub(crate) classes: Vec<ClassDecl>,
    pub(crate) threads: Vec<ThreadDecl>,
}

/// A line that is invalid, or that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: i32,
    /// What is wrong with it.
    pub what: String,
}

impl std::str::FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        parse::parse(text)
    }
}

/// The default script, which shows the collectors side by side: a list that stays, a cache whose entries live for some
/// time, short-lived objects, and cycles.
pub const DEFAULT: &str = include_str!("default.heap");
