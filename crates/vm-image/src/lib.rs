//! Reads the memory of a HotSpot VM and writes its heap as a dump in HPROF format, without any help of the VM, which
//! may hang or have ended. All offsets come from the tables that `libjvm.so` exports for the serviceability agent.
//! Every address is checked before it is used; damage is counted.
//!
//! In reading order: [`memory`](Memory) (reading bytes), [`process`](Process), [`freeze`](Frozen) and [`core`](Core)
//! (sources of bytes), [`copied`](Copied) (a copy of a process; [`container`] limits its memory), `elf` (exported
//! symbols), `layout` (the address of a library in a core that does not record it), `structs` (the tables), `machine`
//! (processors), `vm` (flags, packing of references), `klass` and `fields` (classes), `heap` with `g1`, `marks`,
//! `parallel`, `serial` and `shenandoah` (ranges of objects), `walk` (object by object), `threads`, `code`, `methods` and `frames`
//! (stacks), `roots`, `tracked` (an agent's data about objects), [`dump`](dump()) with `objects` and `segments` (the
//! output), and `behind` (the thread that writes it).

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
mod marks;
mod memory;
mod methods;
mod numbers;
mod objects;
mod parallel;
mod process;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(not(target_os = "linux"))]
#[expect(dead_code, reason = "no process is stopped there")]
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
