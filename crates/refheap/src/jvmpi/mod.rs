//! The C interface of the reference VM: an agent written to `jvmpi.h` watches it.
//!
//! The VM has one machine thread, on which it calls the agent and is asked: between
//! two steps of a script nothing happens. What the agent wants done (a collection, a
//! thread stopped) is done before the next step. There is no JNI, so a thread's
//! `JNIEnv *` is a number and JNI references are null; there are no compiled methods,
//! monitors or class files, so their events are not available ([`EMITTED`]).
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

/// Why an agent does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The library cannot be loaded; what the system says.
    #[error("the agent cannot be loaded: {0}")]
    Load(String),
    /// It has no `JVM_OnLoad`.
    #[error("the library has no JVM_OnLoad: it is no agent of this interface")]
    NoEntry,
    /// Its `JVM_OnLoad` did not return 0.
    #[error("the agent refused to start ({0})")]
    Refused(i32),
    /// A process has one agent: its library keeps what it knows in statics.
    #[error("an agent is loaded already")]
    Second,
}

/// The agent of this process, which has said which events it wants.
#[derive(Debug)]
pub struct Agent(());

/// Events this VM has; all others are not available.
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
/// There is no such library, it is no agent, it refuses, or it is the second.
pub fn load(library: &Path, options: &str) -> Result<Agent, AgentError> {
    raw::load(library, options)?;
    Ok(Agent(()))
}

impl Agent {
    /// Notifies the agent of an event if it wants it.
    pub(crate) fn notify(&self, vm: &Core<'_>, env: EnvId, body: &Body) {
        if raw::is_on(body.kind()) {
            raw::send(vm, env, body, false);
        }
    }

    /// What the agent gave to `ProfilerExit`: the VM is to end with this code.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        raw::exit_code()
    }
}
