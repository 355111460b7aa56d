//! The dump builder. It is written from the format text and shares nothing with the `hprof` crate,
//! so a wrong constant there cannot cancel itself out here.
//!
//! [`Dump`] writes top-level records, [`Segment`] heap sub-records, [`Heap`] is the comfortable
//! one: it hands out addresses, strings, serials and field layouts.

mod bytes;
mod heap;
mod pack;
mod records;
mod segment;

pub use bytes::{IdSize, Type, Value};
pub use heap::{ClassSpec, FrameSpec, Heap, Spacing};
pub use pack::{gzip, gzip_members, zip, zip_of};
pub use records::{Dump, Frame, Site, StartThread, Totals, Version};
pub use segment::{ClassDump, Elements, Root, Segment};
