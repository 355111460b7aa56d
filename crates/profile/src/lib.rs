//! A profile in memory: stacks, and the tables that refer to them.
//!
//! ```
//! use profile::{Metric, Profile};
//!
//! let text = b"TRACE 300001:\n\tCpu.hot(Cpu.java:3)\n\tCpu.main(Cpu.java:14)\n\
//! CPU SAMPLES BEGIN (total = 7) Sat Nov 21 04:57:27 2026\n   \
//! 1 100.00% 100.00%       7 300001 Cpu.hot\nCPU SAMPLES END\n";
//! let (profile, diagnostics) = profile::read(text).unwrap();
//! assert!(diagnostics.is_empty());
//! let stacks = profile.stacks(Metric::Samples).collect::<Vec<_>>();
//! assert_eq!(stacks[0].value, 7);
//! ```
//!
//! Reading order: [`Names`], [`Stacks`], the tables [`SiteTable`], [`SampleTable`], [`CostTable`],
//! [`ContentionTable`], [`ReferenceTable`], [`WeightedTable`], then [`Profile`], [`Estimate`], [`read`] and [`write`].

mod allocation_stacks;
mod cpu;
mod estimate;
mod merge;
mod metric;
mod monitors;
mod names;
mod paths;
mod places;
mod profile;
mod rank;
mod read;
mod references;
mod sites;
mod stacks;
mod weighted;
pub mod write;

pub use allocation_stacks::{AllocationStacks, StackSamples, StackShare};
pub use cpu::{CallPair, Cost, CostTable, SampleTable};
pub use estimate::{Estimate, Sampling, Weight};
pub use metric::{Metric, WeightedStack};
pub use monitors::{Contention, ContentionTable, Monitor, MonitorDump, MonitorThread, Wait};
pub use names::{NameId, Names};
pub use paths::PathWriter;
pub use places::{Place, Places};
pub use profile::{Profile, Thread};
pub use rank::{Cut, Ranked, rank};
pub use read::{AGENT_NAMES, NoProfile, SHARED_NAMES, StreamReader, read, read_binary};
pub use references::{Reference, ReferenceTable};
pub use sites::{ClassEstimate, Site, SiteEstimate, SiteOrder, SiteTable, Volume};
pub use stacks::{Frame, FrameId, Line, Method, MethodId, Stacks, TraceId, TraceKey};
pub use weighted::WeightedTable;
