//! Writes sections as bytes, in the text or the binary form. All names are resolved before.

pub(crate) mod binary;
mod binary_heap;
mod native_heap;
mod segments;
pub(crate) mod sink;
pub(crate) mod stacks;
pub(crate) mod text;
mod text_heap;

use crate::catalog::{Catalog, Class, ResolvedTrace};
use profile::{
    ContentionTable, CostTable, Ranked, SampleTable, SiteOrder, SiteTable, StackShare, Volume,
};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;
use vmpi::{ClassId, HeapSummary, MonitorInfo, ThreadId, ThreadInfo, ThreadStack, ThreadState, Vm};

/// A thread as START records show it.
pub(crate) struct ThreadRecord<'a> {
    pub(crate) thread: vmpi::ThreadId,
    pub(crate) info: &'a ThreadInfo,
    pub(crate) trace: vmpi::TraceId,
}

/// An allocation table and how to print it.
pub(crate) struct SitesSection<'a> {
    pub(crate) table: &'a SiteTable,
    pub(crate) rows: &'a [Ranked],
    pub(crate) order: SiteOrder,
    pub(crate) cutoff: f64,
    /// The command's flags: 1 incremental, 2 sorted by allocation, 4 collected before.
    pub(crate) flags: u16,
}

/// A wait as it happens.
pub(crate) struct WaitRecord<'a> {
    pub(crate) done: bool,
    pub(crate) signature: &'a str,
    pub(crate) class: ClassId,
    pub(crate) time_ms: i64,
    pub(crate) thread: vmpi::ThreadId,
}

/// What a section needs besides its table.
pub(crate) struct Context<'a> {
    pub(crate) vm: &'a dyn Vm,
    pub(crate) catalog: &'a mut Catalog,
    /// `ctime` of now.
    pub(crate) date: String,
}

/// The two forms. A method without a counterpart in a form writes nothing there.
pub(crate) trait Emit: Send {
    /// The VM is ready: write the header and, in the binary form, the settings.
    fn begin(&mut self, context: &mut Context<'_>, unix_ms: u64);
    /// A class was loaded.
    fn class_loaded(&mut self, context: &mut Context<'_>, id: ClassId, class: &Class);
    /// A class was unloaded; `is_named`: a stack or a row refers to it, now or later.
    fn class_unloaded(&mut self, context: &mut Context<'_>, id: ClassId, is_named: bool);
    /// A thread started.
    fn thread_started(&mut self, context: &mut Context<'_>, thread: &ThreadRecord<'_>);
    /// A thread ended.
    fn thread_ended(&mut self, context: &mut Context<'_>, thread: vmpi::ThreadId);
    /// A trace that was not written before.
    fn trace(&mut self, context: &mut Context<'_>, trace: &ResolvedTrace);
    /// SITES.
    fn sites(&mut self, context: &mut Context<'_>, section: &SitesSection<'_>);
    /// CLASS ESTIMATES of a sampled allocation table.
    fn estimates(&mut self, context: &mut Context<'_>, table: &SiteTable, interval: u64);
    /// ALLOCATION STACKS: the sampled stacks of sites, from this many samples.
    fn allocation_stacks(&mut self, context: &mut Context<'_>, samples: u64, rows: &[StackShare]);
    /// NATIVE: these rows of a table of blocks, whose class is the library.
    fn native(
        &mut self,
        context: &mut Context<'_>,
        table: &SiteTable,
        rows: &[Ranked],
        interval: u64,
    );
    /// CPU SAMPLES.
    fn samples(&mut self, context: &mut Context<'_>, table: &SampleTable, cutoff: f64);
    /// WALL RUNNING or WALL WAITING: samples as calls, and the time that they stand for.
    fn wall(&mut self, context: &mut Context<'_>, is_waiting: bool, table: &CostTable, cutoff: f64);
    /// CPU TIME.
    fn times(&mut self, context: &mut Context<'_>, table: &CostTable, cutoff: f64);
    /// The table of `cpu=old`.
    fn call_pairs(&mut self, context: &mut Context<'_>, table: &CostTable);
    /// MONITOR TIME.
    fn contention(&mut self, context: &mut Context<'_>, table: &ContentionTable, cutoff: f64);
    /// LOCK TIME: as MONITOR TIME, for locks that are not monitors.
    fn locks(&mut self, context: &mut Context<'_>, table: &ContentionTable, cutoff: f64);
    /// WAIT and WAITED.
    fn wait(&mut self, context: &mut Context<'_>, wait: &WaitRecord<'_>);
    /// JNI REFERENCES; `with_handles`: also the references that exist now.
    fn references(&mut self, context: &mut Context<'_>, all: &vmpi::References, with_handles: bool);
    /// CLASS OPTIONS; has no text form.
    fn class_options(&mut self, context: &mut Context<'_>, answers: &[vmpi::ClassAnswer]) {
        let _ = (context, answers);
    }
    /// INSTANCES; has no text form.
    fn instances(&mut self, context: &mut Context<'_>, listing: &vmpi::Listing) {
        let _ = (context, listing);
    }
    /// FILLS; has no text form.
    fn fills(&mut self, context: &mut Context<'_>, fills: &vmpi::Fills) {
        let _ = (context, fills);
    }
    /// MONITOR DUMP.
    fn monitors(
        &mut self,
        context: &mut Context<'_>,
        threads: &[ThreadStack],
        monitors: &[MonitorInfo],
    );
    /// HEAP DUMP: converted from a dump that the VM writes to `scratch`, or made by a walk of its heap.
    ///
    /// # Errors
    /// The VM cannot walk its heap. What was written before remains in the output.
    fn heap(
        &mut self,
        context: &mut Context<'_>,
        summary: HeapSummary,
        scratch: Option<&Path>,
    ) -> Result<(), vmpi::VmError>;
    /// HEAP SUMMARY.
    fn heap_summary(&mut self, context: &mut Context<'_>, summary: HeapSummary);
    /// A remark about the profile itself: dropped data, or a step that failed.
    fn note(&mut self, context: &mut Context<'_>, text: &str);
    /// Hands everything to the output.
    fn flush(&mut self);
    /// The first failure of the output, once.
    fn take_failure(&mut self) -> Option<String>;
}

/// The threads of MONITOR DUMP, in the order of their numbers: status word and stack. A thread that the VM does not
/// list is about to end.
pub(crate) fn monitor_threads(
    catalog: &Catalog,
    now: &[ThreadStack],
) -> Vec<(ThreadId, u32, vmpi::TraceId)> {
    let now: FxHashMap<_, _> = now.iter().map(|now| (now.thread, now)).collect();
    let row = |id: ThreadId| {
        let now = now.get(&id);
        let (state, trace) = now.map(|now| (now.state, now.trace)).unwrap_or_default();
        (id, status(state), trace)
    };
    catalog.threads.keys().copied().map(row).collect()
}

/// A state as a status word for [`private_records::thread_status`].
fn status(state: ThreadState) -> u32 {
    let number = match state {
        ThreadState { alive: false, .. } => 0,
        ThreadState { sleeping: true, .. } => 1,
        ThreadState {
            blocked_on_monitor: true,
            ..
        } => 2,
        ThreadState { waiting: true, .. } | ThreadState { parked: true, .. } => 3,
        ThreadState { runnable: true, .. } => 4,
        _ => 5,
    };
    let bits = [state.suspended, state.interrupted, state.in_native];
    let bits = bits.iter().zip(8..).map(|(on, at)| u32::from(*on) << at);
    number | bits.sum::<u32>()
}

/// The table's class numbers are those of the VM.
pub(crate) fn class_of(id: profile::NameId) -> ClassId {
    ClassId(id.0)
}

/// The table's trace numbers are those of the VM.
pub(crate) fn trace_of(id: profile::TraceId) -> vmpi::TraceId {
    vmpi::TraceId(id.0)
}

/// The serial of a thread, 0 for none.
pub(crate) fn known_thread(thread: vmpi::ThreadId) -> u32 {
    match thread {
        vmpi::ThreadId::NONE => 0,
        thread => crate::ids::thread_serial(thread).0,
    }
}

/// The volumes that a row prints: the counted ones, or the estimates of a sampled table.
pub(crate) fn shown(table: &SiteTable, row: usize) -> (Volume, Volume) {
    let all = table.estimate(row);
    let whole = |estimate: profile::Estimate| estimate.value.round() as u64;
    let volume = |objects, bytes| Volume {
        objects: whole(objects),
        bytes: whole(bytes),
    };
    (
        volume(all.live_objects, all.live_bytes),
        volume(all.allocated_objects, all.allocated_bytes),
    )
}

/// The rows of a table in this order that have at least the share `cutoff` of the live or of the allocated volume.
pub(crate) fn rows_by_either(table: &SiteTable, order: SiteOrder, cutoff: f64) -> Vec<Ranked> {
    let other = match order {
        SiteOrder::LiveBytes => SiteOrder::AllocatedBytes,
        SiteOrder::AllocatedBytes => SiteOrder::LiveBytes,
    };
    let mut is_large = vec![false; table.sites().len()];
    for row in table.rank(other, cutoff) {
        is_large[row.row] = true;
    }
    let mut rows = table.rank(order, 0.0);
    rows.retain(|row| row.share >= cutoff || is_large[row.row]);
    for (rank, row) in (1..).zip(&mut rows) {
        row.rank = rank;
    }
    rows
}

/// `class.method` of the innermost frame of a trace.
pub(crate) fn top_name(trace: &ResolvedTrace) -> String {
    match trace.frames.first() {
        Some(frame) => format!("{}.{}", frame.class_name, frame.method),
        None => "<empty trace>".to_owned(),
    }
}

/// The printed name of a source file, or a placeholder if it is unknown.
pub(crate) fn source_name(source: &Option<Arc<str>>) -> &str {
    source.as_deref().unwrap_or("<Unknown Source>")
}
