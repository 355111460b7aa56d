//! What can be asked of a running program. Who implements this knows how (attach socket, agent
//! socket); the pages do not.

use crate::dumps::opened::OpenDump;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
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
    /// Frames per stack, unless others are requested.
    pub const DEPTH: u32 = 32;
    /// Mean distance of sampled allocations in bytes, unless another one is requested.
    pub const INTERVAL: u64 = 64 << 10;

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
    /// Send the allocation sites, and how many JNI references there are.
    Sites,
    /// Send each JNI reference, too.
    References,
    /// Collect garbage.
    Gc,
    /// Send a heap dump.
    Dump,
    /// Count allocations from now on, or stop doing so.
    Allocations(bool),
    /// Take CPU samples from now on, or end that and send them.
    Samples(bool),
    /// Send the CPU samples since the last that were sent, and continue.
    SamplesSoFar,
    /// Time contention of monitors from now on, or end that and send it.
    Monitors(bool),
    /// Record classes as these lines say from now on.
    Classes(String),
    /// Code of the program may be run to answer what is asked of its objects, or no longer.
    OwnCode(bool),
    /// List the live instances of a class.
    Instances(vmpi::InstanceQuery),
    /// Read how big and how full all live objects are; the answer has this number.
    Fills(u32),
}

/// Sends a command to the agent; an error means that it is gone.
pub type Commands = Box<dyn Fn(Ask) -> Result<(), String> + Send + Sync>;

/// A connected agent.
pub struct Agent {
    /// What it sends: a binary profile without end.
    pub stream: Box<dyn Read + Send>,
    /// The way to it.
    pub commands: Commands,
    /// What it was started with.
    pub recording: Recording,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("recording", &self.recording)
            .finish_non_exhaustive()
    }
}

/// What a snapshot was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// How long the program stood still at most.
    pub stopped: Duration,
    /// Objects of which the stack that allocated them is known.
    pub with_stack: u64,
}

/// A running VM as its views need it. Every call may block for as long as the VM takes.
pub trait Program: Send + Sync {
    /// Process id.
    fn pid(&self) -> u32;

    /// Main class or jar.
    fn name(&self) -> String;

    /// Begins to open a heap dump of it.
    fn open_dump(&self, path: &Path) -> Arc<dyn OpenDump>;

    /// The file of its counters, once there is one.
    fn counters(&self) -> Option<PathBuf>;

    /// Carries out a diagnostic command and gives what the VM says.
    ///
    /// # Errors
    /// In words, when the VM refuses or does not answer.
    fn diagnose(&self, command: &str) -> Result<String, String>;

    /// Lets the VM write a heap dump.
    ///
    /// # Errors
    /// In words.
    fn dump(&self, path: &Path, live_only: bool) -> Result<(), String>;

    /// Writes a heap dump of a copy of the VM, which the agent in it makes.
    ///
    /// # Errors
    /// In words, when there can be no copy, or it cannot be read.
    fn snapshot(&self, file: File) -> Result<Snapshot, String>;

    /// Loads the agent and waits until it is connected.
    ///
    /// # Errors
    /// In words: no library, the VM refuses, an agent is there already.
    fn record(&self, recording: Recording) -> Result<Agent, String>;
}
