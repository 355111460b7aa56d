//! A JFR recording of one chunk (format 2.1), with the JDK's own event names, so that `jfr`, JDK Mission Control and
//! every other reader shows them without a plug-in.
//!
//! | In the profile | In the recording |
//! |---|---|
//! | CPU samples | `jdk.ExecutionSample`, one each |
//! | CPU time | one `jdk.ExecutionSample` for each 10 ms, because JFR has no weighted sample |
//! | wall-clock time | async-profiler's `profiler.WallClockSample`, one for each stack and state: the number of 10 ms as `samples`, the nanoseconds as `weight` |
//! | allocations of a class by a stack | `jdk.ObjectAllocationSample` with their bytes as `weight` |
//! | live objects of a class by a stack | `jdk.OldObjectSample` with the sum of their sizes, and their number as description |
//! | contention, parked threads | `jdk.JavaMonitorEnter`, `jdk.ThreadPark`, one for each wait, with the mean duration |
//! | threads | `jdk.ThreadStart` at the beginning, and `jdk.ThreadEnd` at the end for those that have ended |
//! | blocks of native code | `tenure.NativeAllocation`, because the JDK has no event for them |
//! | the CPU time of a sample | `jdk.ActiveSetting`: `period` of `jdk.ExecutionSample` |
//! | notes, such as the number of lost samples | `tenure.Note` |
//!
//! A stack has at most [`MOST_OF_STACK`] events of a kind. A profile has no times of events, so each event is 10 ms after the
//! one before it; [`write_timed`] is for a profile whose times of allocation are known.

mod buffer;
mod events;
mod metadata;
mod pools;

use crate::{Metric, NameId, Profile, TraceId};
use buffer::Buffer;
use events::Events;
use std::io::{self, Cursor, Seek, SeekFrom, Write};

/// Bytes of the chunk header.
const HEADER: usize = 68;

/// Samples, or waits, of one stack that are written; [`left_out`] counts the others.
pub const MOST_OF_STACK: u64 = events::MOST;

/// Allocations with their times, in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// When the recording began.
    pub begin_ms: u64,
    /// When it ended.
    pub end_ms: u64,
    /// Allocations in order of time.
    pub allocations: Vec<Allocation>,
}

/// Objects of a class that a stack had allocated at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The moment.
    pub time_ms: u64,
    /// Their class.
    pub class: NameId,
    /// The stack.
    pub trace: TraceId,
    /// Their bytes.
    pub bytes: u64,
}

impl Timed {
    /// Nanoseconds from the begin to a moment.
    fn offset_ns(&self, time_ms: u64) -> u64 {
        time_ms
            .saturating_sub(self.begin_ms)
            .saturating_mul(1_000_000)
    }
}

/// Where a recording is written: its first bytes are known last.
pub trait Output: Write + Seek {}

impl<W: Write + Seek> Output for W {}

/// The recording.
pub fn write(profile: &Profile, metrics: &[Metric]) -> Vec<u8> {
    in_memory(profile, metrics, None)
}

/// The recording of a profile whose allocations were made at known times.
pub fn write_timed(profile: &Profile, metrics: &[Metric], timed: &Timed) -> Vec<u8> {
    in_memory(profile, metrics, Some(timed))
}

/// Writes the recording to an empty output. The events, of which there may be many, are never in memory together.
///
/// # Errors
/// Those of the output.
pub fn write_to(profile: &Profile, metrics: &[Metric], out: &mut dyn Output) -> io::Result<()> {
    write_all(profile, metrics, None, out)
}

fn in_memory(profile: &Profile, metrics: &[Metric], timed: Option<&Timed>) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    // Memory takes everything.
    let _ = write_all(profile, metrics, timed, &mut out);
    out.into_inner()
}

/// The samples and waits that a recording of these metrics lacks because their stacks have too many.
pub fn left_out(profile: &Profile, metrics: &[Metric]) -> u64 {
    let mut waits = vec![
        (Metric::Blocked, Metric::Contentions),
        (Metric::Parked, Metric::Parks),
    ];
    waits.retain(|(time, _)| metrics.contains(time));
    events::left_out(profile, cpu_metric(metrics), &waits)
}

/// The metric of the CPU samples.
fn cpu_metric(metrics: &[Metric]) -> Option<Metric> {
    let cpu = [Metric::Samples, Metric::CpuTime];
    cpu.into_iter().find(|metric| metrics.contains(metric))
}

fn write_all(
    profile: &Profile,
    metrics: &[Metric],
    timed: Option<&Timed>,
    out: &mut dyn Output,
) -> io::Result<()> {
    let mut events = Events::new(profile, out, HEADER);
    let has = |metric: &Metric| metrics.contains(metric);
    events.thread_starts();
    if let Some(metric) = cpu_metric(metrics) {
        events.settings(metric);
        events.cpu(metric);
    }
    for metric in [Metric::WallRunning, Metric::WallWaiting] {
        if has(&metric) {
            events.wall(metric);
        }
    }
    if has(&Metric::Blocked) {
        events.contention();
    }
    if has(&Metric::Parked) {
        events.parks();
    }
    let allocated = has(&Metric::AllocatedBytes);
    match timed {
        Some(timed) if allocated => events.timed_allocations(timed),
        _ if allocated => events.allocations(Metric::AllocatedBytes),
        // Live objects, if no other metric is requested: as allocations that were not freed.
        _ if has(&Metric::LiveBytes) => events.allocations(Metric::LiveBytes),
        _ => {}
    }
    if has(&Metric::LiveBytes) {
        events.live();
    }
    if has(&Metric::NativeAllocatedBytes) {
        events.native();
    }
    events.thread_ends();
    events.notes();
    let (metadata, pools, duration_ns) = events.finish()?;
    let mut rest = Buffer::default();
    rest.event(&metadata::body());
    let checkpoint = metadata + rest.0.len() as u64;
    rest.event(&pools.checkpoint());
    let header = Header {
        size: metadata + rest.0.len() as u64,
        checkpoint,
        metadata,
        start_ns: timed
            .map_or(profile.created_ms, |timed| timed.begin_ms)
            .saturating_mul(1_000_000),
        duration_ns,
    };
    out.write_all(&rest.0)?;
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&header.bytes())
}

struct Header {
    size: u64,
    checkpoint: u64,
    metadata: u64,
    start_ns: u64,
    duration_ns: u64,
}

impl Header {
    fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend(b"FLR\0");
        bytes.extend([0, 2, 0, 1]);
        // Ticks are nanoseconds from the start of the chunk.
        for number in [
            self.size,
            self.checkpoint,
            self.metadata,
            self.start_ns,
            self.duration_ns,
            0,
            1_000_000_000,
        ] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(1u32.to_be_bytes()); // Integers are compressed.
        let mut header = [0; HEADER];
        header.copy_from_slice(&bytes);
        header
    }
}
