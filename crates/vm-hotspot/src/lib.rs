//! HotSpot, JDK 8 and newer, as a [`vmpi::Vm`].
//!
//! * Allocations and calls are counted by inserted bytecode in arrays of the current thread
//!   (`tracker/HprofTracker.java`). Native code is called when a stack is seen for the first time, and reads the arrays
//!   for a report.
//! * CPU samples come from AsyncGetCallTrace, with one timer per thread on that thread's CPU clock.
//! * Native allocations come from hooks in the slots through which libraries call the
//!   allocator.
//! * Everything else (threads, classes, monitors, heap walks) is JVMTI.
//!
//! The agent's own state never keeps a class alive: classes are known by tags and
//! weak references.
//!
//! [`HotSpot::load`] is called from `Agent_OnLoad`; the rest happens in events.
//!
//! All locks have ranks, in one table that says which lock may be taken while another is held ([`locks::rank`]). No
//! Java code runs while the state is locked, because instrumented code may need the state, and nothing is allocated in
//! the program's heap (`spares`).
//!
//! Reading order: `vm` (the centre), [`instrument`] and `alloc` (objects), `cpu`, [`heap`], `live`, `native`,
//! `threads`, and [`host`] (the stream of VM events). The `mod.rs` of each folder describes its flow.

mod alloc;
mod cpu;
pub mod heap;
pub mod host;
pub mod instrument;
mod live;
mod native;
mod threads;
mod vm;

pub use heap::tracked_lists::TrackedLists;
pub use heap::used_monitors::{monitor_record, status_of, used_monitors};
pub use instrument::natives;
pub use native::native_refusal;
pub use native::own_files::own_file;
pub use threads::background::retransform_all;
pub use threads::envs::ThreadEnvs;
pub use vm::config::{Clock, Config, NativeStacks, Track, WhenExhausted};
pub use vm::hotspot::{HotSpot, Setup};
