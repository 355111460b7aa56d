//! `libjvmpi.so`: the Java Virtual Machine Profiler Interface on JDK 8 and newer.
//!
//! An agent written for `jvmpi.h` (one is in `include/`) gets the interface that it expects: a table of functions,
//! events, dumps. How each function and event is implemented today, and what HotSpot cannot provide any more, is in
//! `docs/reference/jvmpi.md`.
//!
//! ```text
//! java -agentpath:/path/libjvmpi.so=/path/libagent.so:options ...
//! java -agentpath:/path/libjvmpi.so -Xrunagent:options ...
//! ```
//!
//! Three rules apply everywhere. A pointer or id that an agent passes is used only after it was found in a table of the
//! bridge or checked by the VM. No lock of the bridge is held during a call into the VM or the agent, except for the
//! one under which objects get their ids. The bridge's own work raises no events.
//!
//! Reading order: [`entry`] (options, loading), `get_env` (how agents get the interface), `bridge` (the shared state),
//! `switch` (enabling), `interface` (the functions), `events` (JVMTI events to JVMPI events), then one module per
//! subject: `objects`, `new_objects`, `classes`, `threads`, `traces`, `collector`, `jni_refs`, `sleep`, `heap_dump`,
//! `monitor_dump`. C layouts, raw monitors and the bytes of dumps are in [`vmpi::c_interface`] and [`vmpi::dump`].

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
