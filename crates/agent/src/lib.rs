//! `libhprof.so`, which `-agentlib:hprof` and `-agentpath:` load.
//!
//! This crate only connects parts: entry points of the C interface ([`entry`]), conversion of options to what the VM
//! side measures ([`plan`]), the output file or socket ([`output`], [`file`]), the collector's commands ([`listener`]),
//! sending to it ([`sender`]), connecting to it ([`collector`]), commands of attaching programs ([`recording`]), series
//! of files and the end after a time ([`rotation`]), their conversion to forms of other tools ([`conversion`]), a copy
//! of the process for a heap dump ([`snapshot`]), huge pages that make the copy faster ([`huge_pages`]), a snapshot
//! when the heap is full ([`exhausted`]), and the process around the agent ([`process`]).
//!
//! No failure of the agent ends or blocks the program. Only with `compat=y` do faults of the options end it, as in the
//! original, before any Java code has run.

// The VM finds the tracker's native methods by name in this library.
pub use vm_hotspot::natives;

mod collector;
mod conversion;
pub mod entry;
mod events;
mod exhausted;
mod file;
mod huge_pages;
mod listener;
mod output;
mod plan;
mod process;
mod recording;
mod rotation;
mod sender;
mod snapshot;
mod stream;
