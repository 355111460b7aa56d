//! Patch a class file: copy it through, insert code, keep everything else right.
//!
//! The patcher has no model of a class file that it would write back; it copies.
//! Only three things change: constants are appended to the pool, code is
//! inserted into methods, and what points into that code is moved: branches and
//! switches, exception tables, line and variable tables, stack map frames,
//! type annotations. Attributes it does not know are copied as they are, so a
//! class of a version not yet invented survives.
//!
//! What is inserted and where is reported by an [`Instrument`]; this crate does not
//! know what is measured. Inserted code must not branch; it may use locals added
//! with [`MethodEdit::add_local`], which then appear in every frame.
//!
//! A method that cannot be patched (a branch that would become too long, more
//! than 65,535 bytes) is left as it was; a class that is malformed is an
//! [`Error`] and the caller leaves it alone. No input panics.
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
