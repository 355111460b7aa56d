//! The profile as a whole.

use crate::cpu::{CallPair, CostTable, SampleTable};
use crate::metric::{Metric, WeightedStack};
use crate::monitors::{ContentionTable, MonitorDump, Wait};
use crate::names::{NameId, Names};
use crate::places::Places;
use crate::references::ReferenceTable;
use crate::sites::{SiteTable, Volume};
use crate::stacks::{Frame, Stacks, TraceId};
use crate::weighted::WeightedTable;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A thread that started while the profile ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its serial.
    pub serial: u32,
    /// Its name.
    pub name: NameId,
    /// Name of its group.
    pub group: NameId,
    /// True once it ended.
    pub ended: bool,
}

/// Everything one run recorded. A table that was not recorded is absent, not empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Profile {
    /// When it was begun, in milliseconds since 1970; 0 when not known (`cpu=old` has no
    /// header). The text form gives local time without its zone, which is read as UTC.
    pub created_ms: u64,
    /// Names of everything.
    pub names: Names,
    /// Methods, frames and traces.
    pub stacks: Stacks,
    /// Threads in order of their start.
    pub threads: Vec<Thread>,
    /// Allocation sites.
    pub sites: Option<SiteTable>,
    /// Blocks that native code allocated; the class is the library. Sampled blocks are scaled to
    /// what they stand for already.
    pub native: Option<SiteTable>,
    /// Mean bytes between two recorded blocks of [`Profile::native`]; 0 and 1 for every block.
    pub native_interval: u64,
    /// CPU samples.
    pub samples: Option<SampleTable>,
    /// Timed calls.
    pub costs: Option<CostTable>,
    /// Caller and callee pairs.
    pub pairs: Option<Vec<CallPair>>,
    /// Monitor contention.
    pub contention: Option<ContentionTable>,
    /// Global references of native code.
    pub references: Option<ReferenceTable>,
    /// Numbers of metrics of which only stacks and sums are known: of recordings and heap dumps.
    pub weighted: Vec<WeightedTable>,
    /// What else a reader of the numbers must know, each a sentence.
    pub notes: Vec<String>,
    /// Notes of the agent in its files: what was dropped, and what could not be measured as requested.
    #[serde(skip)]
    pub agent_notes: Vec<String>,
    /// Where classes come from, as far as the agent says it.
    #[serde(skip)]
    pub places: Places,
    /// Finished waits.
    pub waits: Vec<Wait>,
    /// Monitor dumps, in order.
    pub monitor_dumps: Vec<MonitorDump>,
}

impl Profile {
    /// `class.method` of a frame; only the class for a frame without a method, only the function for one of native
    /// code.
    pub fn frame_name(&self, frame: Frame) -> String {
        let method = self.stacks.method(frame.method);
        match [method.class, method.name].map(|name| self.names.get(name)) {
            [class, ""] => class.to_owned(),
            ["", function] => function.to_owned(),
            [class, method] => format!("{class}.{method}"),
        }
    }

    /// Adds to the number of a stack in [`Profile::weighted`].
    pub fn add_weight(&mut self, metric: Metric, stack: WeightedStack) {
        self.table_of(metric).add(stack);
    }

    /// Clears the sampled stacks of allocations, because each table includes all earlier ones.
    pub(crate) fn begin_allocation_stacks(&mut self) {
        for metric in [
            Metric::SampledAllocatedBytes,
            Metric::SampledAllocatedObjects,
        ] {
            *self.table_of(metric) = WeightedTable::new(metric);
        }
    }

    /// Adds the estimated allocations of a class by a sampled stack.
    pub(crate) fn add_allocation_stack(&mut self, class: NameId, trace: TraceId, made: Volume) {
        let of_bytes = (Metric::SampledAllocatedBytes, made.bytes);
        let of_objects = (Metric::SampledAllocatedObjects, made.objects);
        self.add_weights(class, trace, [of_bytes, of_objects]);
    }

    /// Adds threads that were parked at locks of a class.
    pub(crate) fn add_parks(&mut self, class: NameId, trace: TraceId, count: u64, parked_ns: u64) {
        let of_time = (Metric::Parked, parked_ns);
        self.add_weights(class, trace, [of_time, (Metric::Parks, count)]);
    }

    /// Adds two values of one stack and class.
    fn add_weights(&mut self, class: NameId, trace: TraceId, values: [(Metric, u64); 2]) {
        for (metric, value) in values {
            let class = Some(class);
            let stack = WeightedStack {
                trace,
                class,
                value,
            };
            self.add_weight(metric, stack);
        }
    }

    /// Adds an empty table of this metric to [`Profile::weighted`] if there is none, which shows that the metric was
    /// measured.
    pub fn begin_weights(&mut self, metric: Metric) {
        self.table_of(metric);
    }

    fn table_of(&mut self, metric: Metric) -> &mut WeightedTable {
        let tables = &mut self.weighted;
        let at = tables
            .iter()
            .position(|one| one.metric == metric)
            .unwrap_or_else(|| {
                tables.push(WeightedTable::new(metric));
                tables.len() - 1
            });
        &mut tables[at]
    }

    /// `class.method` of each frame of a trace, innermost first.
    pub fn trace_names(&self, trace: TraceId) -> Vec<String> {
        let frames = self.stacks.frames(trace).iter();
        frames
            .map(|frame| self.frame_name(self.stacks.frame(*frame)))
            .collect()
    }

    /// The threads by serial, for many of them.
    pub fn threads_by_serial(&self) -> FxHashMap<u32, Thread> {
        let threads = self.threads.iter().rev();
        threads.map(|thread| (thread.serial, *thread)).collect()
    }

    /// The thread with a serial.
    pub fn thread(&self, serial: u32) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.serial == serial)
    }
}
