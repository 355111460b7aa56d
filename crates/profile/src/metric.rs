//! A common view of all tables: stacks with a number.

use crate::names::NameId;
use crate::profile::Profile;
use crate::stacks::TraceId;
use serde::{Deserialize, Serialize};

/// What the number of a stack counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// CPU samples.
    Samples,
    /// Nanoseconds in the method itself.
    CpuTime,
    /// Completed calls.
    Calls,
    /// Elapsed nanoseconds of threads that ran or could have run.
    WallRunning,
    /// Elapsed nanoseconds of threads that waited.
    WallWaiting,
    /// Bytes ever allocated.
    AllocatedBytes,
    /// Objects ever allocated.
    AllocatedObjects,
    /// Bytes ever allocated, by sampled stacks.
    SampledAllocatedBytes,
    /// Objects ever allocated, by sampled stacks.
    SampledAllocatedObjects,
    /// Bytes not known to be collected.
    LiveBytes,
    /// Objects not known to be collected.
    LiveObjects,
    /// Bytes ever allocated by native code.
    NativeAllocatedBytes,
    /// Blocks ever allocated by native code.
    NativeAllocations,
    /// Bytes that native code has not freed.
    NativeLiveBytes,
    /// Blocks that native code has not freed.
    NativeLiveBlocks,
    /// Nanoseconds blocked at monitors.
    Blocked,
    /// Number of times a monitor was found taken.
    Contentions,
    /// Global references of native code that exist, weak ones included.
    References,
    /// Nanoseconds parked (`LockSupport.park`) at locks of `java.util.concurrent`; in a recording of JFR also where threads wait for work.
    Parked,
    /// Number of times a thread was parked.
    Parks,
    /// Bytes of objects, by the classes of their dominators: with all that is below it, a stack is what it retains.
    RetainedBytes,
    /// Bytes of objects, by package and class.
    ShallowBytes,
}

impl Metric {
    /// Every metric, in the order a report shows them.
    pub const ALL: [Metric; 22] = [
        Metric::Samples,
        Metric::CpuTime,
        Metric::Calls,
        Metric::WallRunning,
        Metric::WallWaiting,
        Metric::AllocatedBytes,
        Metric::AllocatedObjects,
        Metric::SampledAllocatedBytes,
        Metric::SampledAllocatedObjects,
        Metric::LiveBytes,
        Metric::LiveObjects,
        Metric::NativeAllocatedBytes,
        Metric::NativeAllocations,
        Metric::NativeLiveBytes,
        Metric::NativeLiveBlocks,
        Metric::Blocked,
        Metric::Contentions,
        Metric::References,
        Metric::Parked,
        Metric::Parks,
        Metric::RetainedBytes,
        Metric::ShallowBytes,
    ];

    /// A short name, which the command line accepts.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Samples => "samples",
            Metric::CpuTime => "cpu",
            Metric::Calls => "calls",
            Metric::WallRunning => "wall_running",
            Metric::WallWaiting => "wall_waiting",
            Metric::AllocatedBytes => "alloc_space",
            Metric::AllocatedObjects => "alloc_objects",
            Metric::SampledAllocatedBytes => "sampled_alloc_space",
            Metric::SampledAllocatedObjects => "sampled_alloc_objects",
            Metric::LiveBytes => "inuse_space",
            Metric::LiveObjects => "inuse_objects",
            Metric::NativeAllocatedBytes => "native_alloc_space",
            Metric::NativeAllocations => "native_alloc_blocks",
            Metric::NativeLiveBytes => "native_inuse_space",
            Metric::NativeLiveBlocks => "native_inuse_blocks",
            Metric::Blocked => "delay",
            Metric::Contentions => "contentions",
            Metric::References => "jni_references",
            Metric::Parked => "parked",
            Metric::Parks => "parks",
            Metric::RetainedBytes => "retained_space",
            Metric::ShallowBytes => "shallow_space",
        }
    }

    /// Whether it counts blocks of native code.
    pub fn is_native(self) -> bool {
        matches!(
            self,
            Metric::NativeAllocatedBytes
                | Metric::NativeAllocations
                | Metric::NativeLiveBytes
                | Metric::NativeLiveBlocks
        )
    }

    /// The unit, with pprof's name.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::CpuTime
            | Metric::WallRunning
            | Metric::WallWaiting
            | Metric::Blocked
            | Metric::Parked => "nanoseconds",
            Metric::AllocatedBytes
            | Metric::SampledAllocatedBytes
            | Metric::LiveBytes
            | Metric::NativeAllocatedBytes
            | Metric::NativeLiveBytes
            | Metric::RetainedBytes
            | Metric::ShallowBytes => "bytes",
            _ => "count",
        }
    }
}

/// A stack and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedStack {
    /// The stack.
    pub trace: TraceId,
    /// The class allocated or the class of the monitor, if the metric has one.
    pub class: Option<NameId>,
    /// The number, never negative.
    pub value: u64,
}

impl Profile {
    /// The metrics this profile has, in the order of [`Metric::ALL`].
    pub fn metrics(&self) -> Vec<Metric> {
        let has = |metric: &Metric| match metric {
            Metric::Samples => self.samples.is_some(),
            // Call pairs have calls, but not the time in the method itself.
            Metric::CpuTime => self.costs.as_ref().is_some_and(|table| {
                let mut rows = table.rows().iter();
                table.rows().is_empty() || rows.any(|(_, cost)| cost.self_ns != 0)
            }),
            Metric::Calls => self.costs.is_some(),
            Metric::Blocked | Metric::Contentions => self.contention.is_some(),
            _ if metric.is_native() => self.native.is_some(),
            Metric::References => self.references.is_some(),
            Metric::WallRunning
            | Metric::WallWaiting
            | Metric::SampledAllocatedBytes
            | Metric::SampledAllocatedObjects
            | Metric::Parked
            | Metric::Parks
            | Metric::RetainedBytes
            | Metric::ShallowBytes => false,
            _ => self.sites.is_some(),
        };
        let is_weighted = |metric: &Metric| self.weighted.iter().any(|one| one.metric == *metric);
        let all = Metric::ALL.into_iter();
        all.filter(|metric| has(metric) || is_weighted(metric))
            .collect()
    }

    /// All stacks with a number other than 0. Sampled allocations are scaled to the number that they represent.
    pub fn stacks(&self, metric: Metric) -> impl Iterator<Item = WeightedStack> + '_ {
        let weighted = self.weighted.iter().filter(move |one| one.metric == metric);
        self.rows(metric)
            .into_iter()
            .chain(weighted.flat_map(|one| one.rows()).copied())
            .filter(|stack| stack.value > 0)
    }

    /// The part of a metric that the stacks do not have, because the file does not list those below its cutoff.
    pub fn unlisted(&self, metric: Metric) -> u64 {
        let found = match metric {
            Metric::Samples => self.samples.as_ref().map(|table| table.unlisted),
            Metric::CpuTime => {
                let time = self.costs.as_ref().map(|table| table.unlisted_ns);
                time.map(|time| time.max(0).cast_unsigned())
            }
            Metric::Blocked => self.contention.as_ref().map(|table| table.unlisted_ns),
            _ => None,
        };
        found.unwrap_or(0)
    }

    /// Names of the frames of a stack, outermost first, followed by the class in brackets.
    pub fn path(&self, stack: &WeightedStack) -> Vec<String> {
        let mut path = self.trace_names(stack.trace);
        path.reverse();
        if let Some(class) = stack.class {
            path.push(format!("[{}]", self.names.get(class)));
        }
        path
    }

    fn rows(&self, metric: Metric) -> Vec<WeightedStack> {
        let plain = |trace, value| WeightedStack {
            trace,
            class: None,
            value,
        };
        let classed = |class, trace, value| WeightedStack {
            trace,
            class: Some(class),
            value,
        };
        match metric {
            Metric::Samples => {
                let rows = self.samples.iter().flat_map(|table| table.rows());
                rows.map(|(trace, samples)| plain(*trace, *samples))
                    .collect()
            }
            Metric::CpuTime | Metric::Calls => {
                let rows = self.costs.iter().flat_map(|table| table.rows());
                rows.map(|(trace, cost)| {
                    let time = cost.self_ns.max(0) as u64;
                    plain(
                        *trace,
                        if metric == Metric::Calls {
                            cost.calls
                        } else {
                            time
                        },
                    )
                })
                .collect()
            }
            Metric::Blocked | Metric::Contentions => {
                let rows = self.contention.iter().flat_map(|table| table.rows());
                rows.map(|row| {
                    let value = if metric == Metric::Blocked {
                        row.blocked_ns
                    } else {
                        row.count
                    };
                    classed(row.class, row.trace, value)
                })
                .collect()
            }
            Metric::WallRunning
            | Metric::WallWaiting
            | Metric::SampledAllocatedBytes
            | Metric::SampledAllocatedObjects
            | Metric::Parked
            | Metric::Parks
            | Metric::RetainedBytes
            | Metric::ShallowBytes => Vec::new(),
            Metric::References => {
                let rows = self.references.iter().flat_map(|table| &table.rows);
                rows.map(|row| classed(row.class, row.trace, row.remaining()))
                    .collect()
            }
            _ => {
                let table = match metric.is_native() {
                    true => &self.native,
                    false => &self.sites,
                };
                let Some(table) = table else {
                    return Vec::new();
                };
                let sites = table.sites().iter().enumerate();
                sites
                    .map(|(row, site)| {
                        let all = table.estimate(row);
                        let one = match metric {
                            Metric::AllocatedBytes | Metric::NativeAllocatedBytes => {
                                all.allocated_bytes
                            }
                            Metric::AllocatedObjects | Metric::NativeAllocations => {
                                all.allocated_objects
                            }
                            Metric::LiveBytes | Metric::NativeLiveBytes => all.live_bytes,
                            _ => all.live_objects,
                        };
                        classed(site.class, site.trace, one.value.round() as u64)
                    })
                    .collect()
            }
        }
    }
}
