//! `libhprof.so`: what `-agentlib:hprof` and `-agentpath:` load.
//!
//! Only wiring: entry points of the C interface ([`entry`]), from options to what
//! the VM side measures ([`plan`]), the output file or socket ([`output`], [`file`]), the
//! collector's commands ([`listener`]), the bytes to it ([`sender`]), who it is ([`collector`]), what those
//! who attach order ([`recording`]), the files that follow each other and the end after a time ([`rotation`]),
//! a copy of the process for a heap dump ([`snapshot`]) and what makes it quicker ([`huge_pages`]),
//! one when its heap is full ([`exhausted`]), and the process
//! around it ([`process`]).
//!
//! Nothing of the agent's ends or blocks the program. Only with `compat=y` do faults of the options end
//! it, as the original's did, before any Java code has run.

// The VM finds the tracker's native methods by name in this library.
pub use vm_hotspot::natives;

mod collector;
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
