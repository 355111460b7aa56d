//! Analyses of a running program: pure functions from recordings (`profile`), heap dumps (`heap-graph`) and
//! observations (`jvm-observe`) to plain data. This crate does not depend on sessions, addresses or terminals.
//!
//! ```
//! use live_analysis::history::History;
//! use live_analysis::range::Range;
//!
//! let mut history = History::default();
//! history.push(1_000, &profile::SiteTable::default());
//! assert!(history.range(Range::ALL.from, Range::ALL.to).is_empty());
//! ```
//!
//! In reading order: [`range`]; [`columns`] and [`table`] (how a table is defined); the timeline: [`metrics`],
//! [`sampler`] (from observations to rows), [`timeline`]; the recording: [`names`], [`history`] (every site at any
//! time), [`class_filters`], [`allocations`], [`allocation_times`], [`samples`], [`growth`], [`references`]; classes
//! and their objects: [`contents`] and [`sizes`] (how large and how full; [`origin`] states the source), [`classes`],
//! [`comparison`], [`instances`] (of a dump) and [`listed`] (live ones); [`savings`].

pub mod allocation_times;
pub mod allocations;
pub mod class_filters;
pub mod classes;
pub mod columns;
pub mod comparison;
pub mod contents;
pub mod growth;
pub mod history;
pub mod instances;
pub mod listed;
pub mod metrics;
pub mod names;
pub mod origin;
pub mod range;
pub mod references;
pub mod sampler;
pub mod samples;
pub mod savings;
pub mod sizes;
pub mod table;
pub mod timeline;
