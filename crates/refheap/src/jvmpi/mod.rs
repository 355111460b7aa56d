//! The C interface of the reference VM, for agents that are written for `jvmpi.h`.
//!
//! The VM has one machine thread, on which it calls the agent and the agent calls it: between two steps of a script
//! nothing happens. Actions that the agent requests (a collection, stopping a thread) are carried out before the next
//! step. There is no JNI, so a thread's `JNIEnv *` is a number and JNI references are null; there are no compiled
//! methods, monitors or class files, so their events are not available ([`EMITTED`]).
//!
//! ```no_run
//! use refheap::{Config, Gc, RefVm, jvmpi};
//! use vmpi::Switches;
//!
//! let agent = jvmpi::load("./libagent.so".as_ref(), "file=out.txt")?;
//! let config = Config::new(Gc::MarkSweep);
//! let vm = RefVm::watched(config, Switches::NONE, Box::new(|_, _| {}), Some(agent));
//! # Ok::<(), jvmpi::AgentError>(())
//! ```

mod payload;
mod raw;

use std::path::Path;

use vmpi::{Body, EnvId, EventKind};

use crate::core::Core;

/// Why an agent was not loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The library cannot be loaded; this is the system's message.
    #[error("the agent cannot be loaded: {0}")]
    Load(String),
    /// It has no `JVM_OnLoad`.
    #[error("the library has no JVM_OnLoad: it is no agent of this interface")]
    NoEntry,
    /// Its `JVM_OnLoad` did not return 0.
    #[error("the agent refused to start ({0})")]
    Refused(i32),
    /// A process can have only one agent, because its library keeps its state in statics.
    #[error("an agent is loaded already")]
    Second,
}

/// The agent of this process, which has enabled the events that it needs.
#[derive(Debug)]
pub struct Agent(());

/// Events of this VM; all others are not available.
pub const EMITTED: [EventKind; 14] = [
    EventKind::MethodEntry,
    EventKind::MethodExit,
    EventKind::ObjectAlloc,
    EventKind::ObjectFree,
    EventKind::ObjectMove,
    EventKind::ThreadStart,
    EventKind::ThreadEnd,
    EventKind::ClassLoad,
    EventKind::JvmInitDone,
    EventKind::JvmShutDown,
    EventKind::ArenaNew,
    EventKind::ArenaDelete,
    EventKind::GcStart,
    EventKind::GcFinish,
];

/// Loads an agent and calls its `JVM_OnLoad` with `options`.
///
/// # Errors
/// There is no such library, it is not an agent, it refuses, or it is the second one.
pub fn load(library: &Path, options: &str) -> Result<Agent, AgentError> {
    raw::load(library, options)?;
    Ok(Agent(()))
}

impl Agent {
    /// Notifies the agent of an event if the agent has enabled it.
    pub(crate) fn notify(&self, vm: &Core<'_>, env: EnvId, body: &Body) {
        if raw::is_on(body.kind()) {
            raw::send(vm, env, body, false);
        }
    }

    /// The exit code that the agent passed to `ProfilerExit`, after which the VM must end.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        raw::exit_code()
    }
}
