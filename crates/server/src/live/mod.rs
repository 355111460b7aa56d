//! A running program as pages. Everything is observed from outside (`jvm-observe`); only a recording of allocations loads the agent, when
//! somebody asks for one.
//!
//! In reading order: [`program`] (what can be asked of a VM); from readings to the timeline:
//! [`memory`], [`sampler`], [`metrics`], [`timeline`]; from the agent's stream
//! to the past of every site: [`tap`], [`history`], [`recorded`]; what outlives the server: [`kept`] of the stream, `past`, [`journal`]; heap dumps: [`dumps`], [`contents`],
//! [`instances`], [`moments`], [`references`]; the agent's answers about live objects: [`fills`], [`live_objects`],
//! [`objects`] (from there or from a dump); what is looked at of each class: [`rules`]; tables that were kept: [`shelf`], `schedule`; CPU samples by time: [`cpu`]; CPU and contention for a while: [`measure`]; answers: [`table`], [`classes`], [`advice`], [`source`]; [`status`], [`session`] (all of it for one
//! program), [`ask`] and `routes` (addresses), and the other doors: [`prometheus`], [`pprof`], [`cougaar`],
//! `plain`, `saved`.

pub mod advice;
pub mod ask;
pub mod classes;
pub mod contents;
pub mod cougaar;
pub mod cpu;
pub mod dumps;
pub mod fills;
pub mod history;
pub mod instances;
pub mod journal;
pub mod kept;
pub mod live_objects;
pub mod measure;
pub mod memory;
pub mod metrics;
pub mod moments;
pub mod objects;
mod past;
mod plain;
mod plain_more;
pub mod pprof;
pub mod program;
pub mod prometheus;
pub mod recorded;
pub mod references;
mod routes;
pub mod rules;
pub mod sampler;
mod saved;
mod schedule;
pub mod session;
pub mod shelf;
pub mod source;
pub mod status;
pub mod table;
pub mod tap;
pub mod timeline;

pub use objects::list as instances_of;
pub use routes::{carry_out, router};
pub use session::Live;
