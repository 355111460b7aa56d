//! One heap dump as an immutable graph with dense object numbers, dominators and retained sizes,
//! and the mapped index file that makes the second opening instant.
//!
//! ```no_run
//! use heap_graph::{Control, Heap, Options};
//! let heap = Heap::open("heap.hprof".as_ref(), &Options::default(), &Control::quiet())?;
//! for object in heap.dominated(None).take(10) {
//!     let class = &heap.class(heap.class_of(object)).name;
//!     println!("{} {class} {}", heap.id(object), heap.retained(object).0);
//! }
//! # Ok::<(), heap_graph::HeapError>(())
//! ```
//!
//! In reading order: [`model`](Summary) (the plain data), [`options`](Options), `layout` (sizes),
//! `idmap` (ids to numbers), `packed` (columns), `build` (two passes, search, dominators), `index`
//! (the file), `sections` (its checksums), [`bits`](Bits) (sets of numbers), [`heap`](Heap) (the questions), [`columns`](Columns), [`object`](ObjectView), [`contents`](ContentVisitor) (all
//! objects at reading speed), `inbound`, `strings`, [`phases`](Phases) (what a build costs), [`mapping`](Mapping) (names back from R8), and
//! [`quick`](quick_histogram) (answers without a graph).

mod bits;
mod build;
mod columns;
mod contents;
mod heap;
mod idmap;
mod inbound;
mod index;
mod layout;
mod mapping;
mod memory;
mod model;
mod object;
mod options;
mod packed;
mod parallel;
mod phases;
mod quick;
mod raw;
mod sections;
mod strings;

pub use bits::Bits;
pub use columns::Columns;
pub use contents::{ContentSteps, ContentVisitor, Slot};
pub use heap::{Dominator, Heap, ObjectsByClass};
pub use hprof::source::{Control, Progress};
pub use index::{open_own, path_tag};
pub use mapping::Mapping;
pub use model::{
    ClassIdx, ClassInfo, FieldInfo, FrameInfo, GroupSums, LayoutInfo, LayoutModel, ObjIdx,
    ObjectCounts, ObjectKind, RootInfo, SiteSums, StaticInfo, Strength, Summary, Sums, ThreadInfo,
    inherited,
};
pub use object::{FieldValue, ObjectView, RefStrength, Reference, Value, Via};
pub use options::{HeapError, Options, Tuning};
pub use parallel::beside;
pub use phases::{Phase, Phases, Profile};
pub use quick::{QuickHistogram, QuickRow, quick_histogram};
pub use strings::{string_characters, string_text, string_text_length, string_text_prefix};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
