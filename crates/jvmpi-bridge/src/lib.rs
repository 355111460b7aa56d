//! `libjvmpi.so`: the Java Virtual Machine Profiler Interface on JDK 8 and newer.
//!
//! An agent written to `jvmpi.h` (one is in `include/`) is given what it was written
//! for: a table of functions, events, dumps. What a function or event becomes today,
//! and what HotSpot cannot give any more, is in `docs/reference/jvmpi.md`.
//!
//! ```text
//! java -agentpath:/path/libjvmpi.so=/path/libagent.so:options ...
//! java -agentpath:/path/libjvmpi.so -Xrunagent:options ...
//! ```
//!
//! Three rules hold everywhere. Nothing that an agent passes is followed before it
//! was found in a table of the bridge or by the VM. No lock of the bridge is held over a call
//! into the VM or the agent, but for the one under which objects get their names.
//! And what the bridge does itself raises no event.
//!
//! Reading order: [`entry`] (options, loading), `get_env` (how agents find the
//! interface), `bridge` (the centre), `switch` (enabling), `interface` (the
//! functions), `events` (JVMTI in, JVMPI out), then one module per noun: `objects`,
//! `new_objects`, `classes`, `threads`, `traces`, `collector`, `jni_refs`, `sleep`, `heap_dump`,
//! `monitor_dump`. C layouts, raw monitors and the bytes of dumps are those of
//! [`vmpi::c_interface`] and [`vmpi::dump`].

mod bridge;
mod classes;
mod collector;
pub mod entry;
mod events;
mod get_env;
mod heap_dump;
mod interface;
mod jni_refs;
mod monitor_dump;
pub mod new_objects;
mod objects;
mod sleep;
mod switch;
mod threads;
mod traces;
mod words;
