//! Answers about one heap: pure functions from a [`Heap`](heap_graph::Heap) to plain data that
//! serializes. One module per question. Nothing here prints, and nothing here knows where an
//! answer is shown.
//!
//! ```no_run
//! use heap_graph::{Control, Heap, Options};
//! # fn main() -> Result<(), heap_graph::HeapError> {
//! let heap = Heap::open("heap.hprof".as_ref(), &Options::default(), &Control::quiet())?;
//! let leaks = heap_analysis::leaks::find(&heap, &Default::default(), &Control::quiet())?;
//! for suspect in &leaks.suspects {
//!     assert!(suspect.share > 0.1);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! In reading order: [`describe`] and [`readable`] (how an object is named), [`fields`] and [`collections`]
//! (looking into objects), [`summary`], [`overview`], [`histogram`], [`dominators`], [`class_paths`], [`top`], [`treemap`],
//! [`leaks`] with [`chain`] (how a suspect is reached) and [`allocation`] (what allocated it), [`paths`] and [`merged_paths`],
//! [`object`] with [`contents`] (collections), [`set`], [`selection`] and [`members`] (sets of objects), [`roots`], [`threads`], [`strings`],
//! [`loaders`], [`properties`], [`bitmaps`], [`unreachable`], [`validate`], [`collection_table`] with [`collection_stats`],
//! [`class_references`], [`waste`], [`identity`] with [`diff`] (several dumps) and [`check`] (rules for builds), [`android`], [`redact`],
//! [`secrets`] and [`extract`] (what may leave the house), [`export`], [`pace`] (loops that can be cancelled), and [`dossier`] (everything a report shows).

pub mod allocation;
pub mod android;
mod below;
pub mod bitmaps;
pub mod chain;
pub mod check;
pub mod class_paths;
pub mod class_references;
pub mod collection_stats;
pub mod collection_table;
pub mod collections;
pub mod contents;
pub mod describe;
pub mod destroyed;
pub mod diff;
pub mod dominators;
pub mod dossier;
pub mod export;
pub mod extract;
pub mod fields;
pub mod group;
pub mod histogram;
mod holders;
pub mod identity;
pub mod leaks;
pub mod loaders;
pub mod members;
pub mod merged_paths;
pub mod object;
mod object_set;
pub mod overview;
pub mod pace;
pub mod paths;
pub mod properties;
mod ranking;
pub mod readable;
pub mod redact;
pub mod roots;
pub mod secrets;
pub mod selection;
pub mod set;
pub mod strings;
pub mod summary;
mod texts;
pub mod threads;
pub mod top;
pub mod treemap;
pub mod unreachable;
pub mod validate;
pub mod waste;
