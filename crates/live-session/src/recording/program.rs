//! Requests to a running program. The implementation decides how they are sent (attach socket, agent socket); pages do
//! not depend on it.

use crate::dumps::opened::OpenDump;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What the agent counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum Recording {
    /// Every allocation, and every death: exact counts, and dumps whose objects know their stack.
    Full {
        /// Frames per stack.
        depth: u32,
        /// Blocks of native code are recorded, too: one per so many bytes on average.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<u64>,
    },
    /// One allocation per so many bytes on average.
    Sampled {
        /// Mean distance in bytes.
        interval: u64,
        /// Frames per stack.
        depth: u32,
        /// As of a full recording.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<u64>,
    },
}

impl Recording {
    /// The default number of frames per stack.
    pub const DEPTH: u32 = 32;
    /// The default mean distance of sampled allocations in bytes.
    pub const INTERVAL: u64 = 64 << 10;
    /// The largest distance that the VM's sampler takes; with a larger one each sample would be counted as too many bytes.
    pub const MOST_INTERVAL: u64 = (1 << 31) - 1;

    /// The name of its mode in the API.
    pub fn mode(self) -> &'static str {
        match self {
            Recording::Full { .. } => "full",
            Recording::Sampled { .. } => "sampled",
        }
    }
}

/// Nanoseconds of CPU time of a thread between two samples that [`Ask::Samples`] requests.
pub const SAMPLES_NS: u64 = 10_000_000;

/// A command to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Send the allocation sites, and the number of JNI references.
    Sites,
    /// Send each JNI reference, too.
    References,
    /// Collect garbage.
    Gc,
    /// Send a heap dump.
    Dump,
    /// Start or stop counting allocations.
    Allocations(bool),
    /// Start taking CPU samples, or stop and send them.
    Samples(bool),
    /// Send the CPU samples since the last ones that were sent, and continue.
    SamplesSoFar,
    /// Start timing the contention of monitors, or stop and send it.
    Monitors(bool),
    /// Set the class filters for recording.
    Classes(String),
    /// Allow or forbid running code of the program for requests about its objects.
    OwnCode(bool),
    /// List the live instances of a class.
    Instances(vmpi::InstanceQuery),
    /// Read how large and how full all live objects are; the answer has this number.
    Fills(u32),
}

/// Sends a command to the agent; an error means that the agent is gone.
pub type Commands = Box<dyn Fn(Ask) -> Result<(), String> + Send + Sync>;

/// A connected agent.
pub struct Agent {
    /// The data that it sends: a binary profile without end.
    pub stream: Box<dyn Read + Send>,
    /// Sends commands to it.
    pub commands: Commands,
    /// The recording with which it was started.
    pub recording: Recording,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("recording", &self.recording)
            .finish_non_exhaustive()
    }
}

/// The result of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The longest time for which the program was stopped.
    pub stopped: Duration,
    /// Objects with a known allocation stack.
    pub with_stack: u64,
}

/// A running VM. Every call may block for as long as the VM takes.
pub trait Program: Send + Sync {
    /// Process id.
    fn pid(&self) -> u32;

    /// Main class or jar.
    fn name(&self) -> String;

    /// Starts to open a heap dump of it.
    fn open_dump(&self, path: &Path) -> Arc<dyn OpenDump>;

    /// The file of its counters, if it exists yet.
    fn counters(&self) -> Option<PathBuf>;

    /// Carries out a diagnostic command and returns the VM's output.
    ///
    /// # Errors
    /// A message: the VM refuses or does not answer.
    fn diagnose(&self, command: &str) -> Result<String, String>;

    /// Makes the VM write a heap dump.
    ///
    /// # Errors
    /// A message.
    fn dump(&self, path: &Path, live_only: bool) -> Result<(), String>;

    /// Writes a heap dump to `out` from a copy of the VM, which its agent makes.
    ///
    /// # Errors
    /// A message: no copy can be made, or it cannot be read.
    fn snapshot(&self, out: &mut (dyn Write + Send)) -> Result<Snapshot, String>;

    /// Loads the agent and waits until it is connected.
    ///
    /// # Errors
    /// A message: no library, the VM refuses, or an agent is already recording.
    fn record(&self, recording: Recording) -> Result<Agent, String>;
}
