//! Patches a class file: copies it, inserts code, and adjusts everything that depends on positions.
//!
//! The patcher does not build a model of the class file that it writes back; it copies. Only three things change:
//! constants are appended to the pool, code is inserted into methods, and everything that refers to positions in that
//! code is adjusted: branches and switches, exception tables, line and variable tables, stack map frames, type
//! annotations. Unknown attributes are copied unchanged, so classes of future versions can be patched, too.
//!
//! An [`Instrument`] decides what is inserted and where; this crate does not know what is measured. Inserted code must
//! not branch; it may use locals added with [`MethodEdit::add_local`], which then appear in every frame.
//!
//! A method that cannot be patched (a branch that would become too long, more than 65,535 bytes) stays unchanged; for a
//! malformed class, the result is an [`Error`] and the caller leaves the class unchanged. No input causes a panic.
//!
//! ```
//! use classfile::{Class, Instrument, MethodEdit, Place, patch};
//!
//! /// Puts a `nop` at the entry of every method.
//! struct Nop;
//! impl Instrument for Nop {
//!     fn method(&mut self, _class: &Class<'_>, edit: &mut MethodEdit<'_>) {
//!         edit.insert(0, Place::Entry, &[0]);
//!     }
//! }
//! assert!(patch(b"no class", &mut Nop).is_err());
//! ```
//!
//! Reading order: [`mod@class`], [`instruction`], [`edit`], `relocate`, `frames`.

mod annotations;
pub mod class;
pub mod edit;
mod error;
mod frames;
pub mod instruction;
mod patch;
pub mod pool;
mod reader;
mod relocate;

pub use class::{Class, Method};
pub use edit::{LocalType, MethodEdit, Place};
pub use error::Error;
pub use instruction::{Instruction, Instructions};
pub use patch::{Instrument, Patched, patch};
pub use pool::PoolBuilder;
