//! The status of a watched program, which is sent to its pages.

use super::program::Recording;
use crate::dumps::list::DumpInfo;
use crate::persist::saved_tables::Saved;
use live_analysis::metrics::Row;
use serde::Serialize;

/// The state that pages follow: `tenure.live.state/1`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// Name of the schema.
    pub schema: &'static str,
    /// Process id.
    pub pid: u32,
    /// Main class or jar.
    pub name: String,
    /// True once the program has ended.
    pub ended: bool,
    /// Milliseconds between two rows.
    pub interval_ms: u64,
    /// The last rows of the timeline, each `[time, values...]` as `metrics` of the timeline says.
    pub rows: Vec<Row>,
    /// Number of the last event of the timeline.
    pub last_event: Option<u64>,
    /// The recording, if an agent is there.
    pub recording: Option<RecordingState>,
    /// True while CPU samples are taken.
    pub cpu: bool,
    /// Heap dumps.
    pub dumps: Vec<DumpInfo>,
    /// Saved tables of classes.
    pub saved: Vec<Saved>,
    /// Minutes between two tables that are saved periodically, 0 for none.
    pub save_every_minutes: u64,
    /// True if code of the program may be run for requests about its objects.
    pub own_code: bool,
    /// True when there are sources to show.
    pub sources: bool,
    /// What is being done at the moment.
    pub busy: Option<String>,
    /// Profiles of some seconds that are being measured now.
    pub measuring: usize,
    /// Why the last command failed.
    pub error: Option<String>,
    /// What cannot be measured here, and why.
    pub notes: Vec<String>,
}

/// A recording of allocations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordingState {
    /// What is counted.
    #[serde(flatten)]
    pub recording: Recording,
    /// True while new allocations are counted.
    pub on: bool,
    /// True while the agent is connected.
    pub connected: bool,
    /// True once something has been counted: an agent that comes into a running program first
    /// changes its classes.
    pub counting: bool,
    /// Snapshots of the allocation sites so far.
    pub snapshots: usize,
    /// When the first and the last of them were taken, in milliseconds since 1970.
    pub range: Option<(u64, u64)>,
}
