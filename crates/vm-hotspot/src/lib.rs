//! HotSpot, JDK 8 and newer, as a [`vmpi::Vm`].
//!
//! * Allocations and calls are counted by inserted bytecode in arrays of the
//!   thread that runs (`tracker/HprofTracker.java`); native code is called when a
//!   stack is seen for the first time, and reads the arrays when a report is due.
//! * CPU samples come from AsyncGetCallTrace under one timer per thread that runs
//!   on that thread's CPU clock.
//! * Native allocations come from hooks in the slots through which libraries call the
//!   allocator.
//! * Everything else (threads, classes, monitors, heap walks) is JVMTI.
//!
//! The agent's own state never keeps a class alive: classes are known by tags and
//! weak references.
//!
//! [`HotSpot::load`] is called from `Agent_OnLoad`; the rest happens in events.
//!
//! All locks have ranks, in one table that says which may be taken under which ([`locks::rank`]). No Java code runs
//! while the state is locked, because instrumented code may need the state, and nothing is allocated in the
//! program's heap (`spares`).
//!
//! Reading order: [`config`], `instrument`, `registry`, `loaders`, `sites`, `calls`, `costs`, `counters`, [`birth_calls`],
//! `tracker`, `spares`, `guests`, `tracker_class`, `array_layout`, `followed`, `births`, `native_made`, `state`, `harvest`, `shortage`, `hotspot`, `events`, `beginning`, `ending`, `monitors`, `sampler`, `timers`, `malloc`, `vm`,
//! `slots`, `references`, `places`, `choices`, `own_code`, `listing`, `live_fields`, `fills`, `own_answers`, `worker`,
//! `native_dump`, `tracked`, `heap_walk`, [`heap_records`], `used_monitors`, `thread_envs`.

mod array_layout;
mod background;
mod beginning;
pub mod birth_calls;
mod births;
mod calls;
mod changed_classes;
mod choices;
mod clib;
pub mod config;
mod costs;
mod counters;
mod ending;
mod events;
pub mod field_layout;
mod fills;
mod followed;
mod gathered;
mod guests;
mod harvest;
pub mod heap_records;
mod heap_walk;
pub mod host;
mod hotspot;
mod inserted;
pub mod instrument;
mod last_words;
mod leaf;
mod listing;
mod live_fields;
mod loaders;
mod malloc;
mod monitors;
mod native_dump;
mod native_made;
pub mod natives;
mod own_answers;
mod own_code;
mod places;
mod references;
mod registry;
mod sampler;
mod shortage;
mod sites;
mod slots;
mod spares;
mod state;
mod thread_envs;
mod timers;
mod tracked;
mod tracker;
mod tracker_class;
mod used_monitors;
mod vm;
mod worker;

pub use background::retransform_all;
pub use config::{Clock, Config, Follow, WhenExhausted};
pub use hotspot::{HotSpot, Setup};
pub use thread_envs::ThreadEnvs;
pub use tracked::TrackedLists;
pub use used_monitors::{monitor_record, status_of, used_monitors};
