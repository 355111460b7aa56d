//! Reads the memory of a HotSpot VM and writes its heap as a dump in HPROF format, without any help of the
//! VM: it may hang, or be dead. All offsets come from the tables that `libjvm.so` exports for the
//! serviceability agent. Every address is checked before it is followed; what is damaged is counted.
//!
//! In reading order: [`memory`](Memory) (where bytes come from), [`process`](Process), [`freeze`](Frozen)
//! and [`core`](Core) (sources of bytes), [`copied`](Copied) (a copy of a process, and what memory it may take by
//! [`container`]), `elf` (exported symbols), `layout` (where a library was mapped in a core that does not record it),
//! `structs` (the tables), `machine` (processors), `vm` (flags,
//! packing of references), `klass` and `fields` (classes), `heap` with `g1`, `parallel`, `serial` and `shenandoah` (where
//! objects lie), `walk` (object by object), `threads`, `code`, `methods` and `frames` (stacks),
//! `roots`, `tracked` (what an agent knows of objects), [`dump`](dump()) with `objects` and `segments` (what is written), and `behind` (who writes it).

mod behind;
mod code;
pub mod container;
#[cfg(unix)]
mod copied;
mod core;
mod damage;
mod dump;
mod elf;
mod fault;
mod fields;
mod frames;
mod freeze;
mod g1;
mod heap;
mod klass;
mod layout;
mod machine;
mod memory;
mod methods;
mod numbers;
mod objects;
mod parallel;
mod process;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(not(target_os = "linux"))]
mod raw_elsewhere;
mod roots;
mod segments;
mod serial;
mod shenandoah;
mod structs;
mod summary;
mod symbols;
mod threads;
mod tracked;
mod vm;
mod walk;

#[cfg(not(target_os = "linux"))]
use raw_elsewhere as raw;

pub use self::core::Core;
#[cfg(unix)]
pub use copied::{Changed, Copied};
pub use damage::Damage;
pub use dump::{Place, Plan, dump, dump_rewritten};
pub use fault::Fault;
pub use freeze::Frozen;
pub use memory::{Address, Memory};
pub use process::Process;
pub use roots::Registers;
pub use summary::Summary;
pub use tracked::{Layout, Tracked, Words};
