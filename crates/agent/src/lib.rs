//! `libhprof.so`: what `-agentlib:hprof` and `-agentpath:` load.
//!
//! Only wiring: entry points of the C interface ([`entry`]), from options to what
//! the VM side measures ([`plan`]), the output file or socket ([`output`]), the
//! peer's commands ([`listener`]), the bytes to it ([`sender`]), and the process around it ([`process`]).
//!
//! Faults of the options end the process, as the original's did, before any Java
//! code has run. After that nothing of the agent's ends or blocks the program.

// The VM finds the tracker's native methods by name in this library.
pub use vm_hotspot::natives;

pub mod entry;
mod events;
mod listener;
mod output;
mod plan;
mod process;
mod sender;
