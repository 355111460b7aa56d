//! A small VM with five garbage collectors, which all issue the same events.
//!
//! It is the conformance host of [`vmpi`]: each collector issues exactly the sequences that the document prescribes.
//! Since the VM is deterministic and can compute which objects are reachable, a replay of its events can be checked
//! against the actual state.
//!
//! ```
//! use refheap::{Config, Gc, RefVm, Script, script};
//! use vmpi::Switches;
//!
//! let script: Script = "class Node 1\na = new Node\na = null\ngc".parse()?;
//! let mut told = Vec::new();
//! let mut vm = RefVm::new(
//!     Config::new(Gc::MarkSweep),
//!     Switches::all(),
//!     Box::new(|_env, item| told.push(item.clone())),
//! );
//! script::run(&script, &mut vm)?;
//! drop(vm);
//! assert!(told.iter().any(|item| matches!(
//!     item,
//!     vmpi::wire::Item::Event { body: vmpi::Body::ObjectFree { .. }, .. }
//! )));
//! # Ok::<(), refheap::ScriptError>(())
//! ```
//!
//! Reading order: [`object`], [`vm`], [`script`], [`collector`]; then the five collectors, each with the same four
//! files (its state, its allocation, its collection, its golden events): `mark_sweep`, `mark_compact`,
//! `two_space_copying`, `generational`, `reference_counting`; and [`jvmpi`], the C interface.

pub mod collector;
mod core;
mod dump;
mod generational;
#[cfg(test)]
mod golden;
mod host;
pub mod jvmpi;
mod mark_compact;
mod mark_sweep;
pub mod object;
mod reference_counting;
pub mod script;
mod space;
mod two_space_copying;
pub mod vm;

pub use collector::{Config, Gc, Order};
pub use core::{Sink, VM_THREAD};
pub use object::{ClassIdx, ObjIdx, ObjectTable, Shape};
pub use script::{Script, ScriptError};
pub use vm::{RefVm, ThreadIdx, Variable, VmFault};
