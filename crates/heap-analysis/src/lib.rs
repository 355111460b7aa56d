//! Answers about one heap: pure functions from a [`Heap`](heap_graph::Heap) to plain data that serializes, one module
//! per question. No function here prints or depends on where its answer is shown.
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
//! A folder per topic:
//!
//! * [`objects`]: one object, its name and contents.
//! * [`tables`]: the whole heap as tables and trees.
//! * [`leaks`]: leak suspects.
//! * [`paths`]: what keeps an object, or many, alive.
//! * [`sets`]: chosen objects, so that one analysis can use the result of another.
//! * [`strings`], [`collections`], [`waste`]: analyses of contents.
//! * [`android`]: heaps of ART, bitmaps, destroyed activities, fragments and services.
//! * [`compare`]: several dumps, and rules for builds.
//! * [`share`]: redaction, secrets, extracts, exports.
//!
//! [`pace`] has the loops that can be cancelled.

pub mod android;
pub mod collections;
pub mod compare;
pub mod leaks;
pub mod objects;
pub mod pace;
pub mod paths;
pub mod sets;
pub mod share;
pub mod strings;
pub mod tables;
mod toml_error;
pub mod waste;
