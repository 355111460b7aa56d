//! HPROF, the heap dump format of HotSpot, the JDK agent and ART: bytes to borrowed records and records to bytes. The
//! crate supports every tag, field and id width of 1.0.1, 1.0.2 and Android 1.0.3; graphs and threads are outside its
//! scope.
//!
//! ```
//! use hprof::{map_file, FileOffset, HeapVisitor, Instance};
//!
//! #[derive(Default)]
//! struct Count(u64);
//! impl HeapVisitor for Count {
//!     fn instance(&mut self, _: FileOffset, _: Instance<'_>) {
//!         self.0 += 1;
//!     }
//! }
//!
//! fn instances(data: &[u8]) -> Result<u64, hprof::HeaderError> {
//!     let map = map_file(data, |_| {})?;
//!     let mut count = Count::default();
//!     map.walk(data, &mut count);
//!     Ok(count.0)
//! }
//! # let empty = b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\0";
//! # assert_eq!(instances(empty), Ok(0));
//! ```
//!
//! In reading order: [`id`](ObjectId) and [`tag`](RecordTag) (the vocabulary), [`cursor`](Cursor), [`header`](Header),
//! [`record`](Record) (top-level records), [`heap_record`](HeapVisitor) (sub-records), [`walk`](walk()) (the hot
//! loop), `scan` and [`segment`](walk_stretch) (damage), [`dump_file`](map_file) (the map of a file),
//! [`names`](readable_class_name), [`visible`](visible()) (names to print), [`write`](Writer) (records to bytes), [`rewrite`](rewrite()) (a dump to another
//! dump), [`measured_sizes`](MeasuredSizes), [`android`] and `source` (where the bytes come from).
//!
//! Without default features the crate has no dependencies and needs no operating system. The features: `source` opens
//! files, including compressed ones and archives; `serde` makes the plain data serializable. The text form of the JDK
//! agent is in the crate `hprof-text`.

#![warn(clippy::missing_errors_doc)]

pub mod android;
mod cursor;
mod diagnostic;
mod dump_file;
mod foreign;
mod header;
mod heap_record;
mod id;
mod measured_sizes;
mod names;
mod record;
mod rewrite;
mod scan;
mod segment;
#[cfg(feature = "source")]
pub mod source;
mod tag;
mod visible;
mod walk;
mod write;

/// A text (UTF8 record) that marks dumps whose ROOT_JAVA_FRAME records are conservative: they refer to the objects
/// that words on stacks point to, not only to those in local variables. HPROF has no field for this; readers that do
/// not know the text ignore it.
pub const CONSERVATIVE_LOCALS: &str = "tenure: local variables are conservative";

pub use cursor::{Cursor, read_id};
pub use diagnostic::{DamageKind, Diagnostic, Diagnostics};
pub use dump_file::{FileMap, Segment, map_file};
pub use header::{Header, HeaderError};
pub use heap_record::{
    ClassDump, HeapVisitor, Instance, ObjectArray, PrimitiveArray, Root, SubRecord, Table, Value,
};
pub use id::{Bytes, FileOffset, IdSize, NoObjectId, ObjectId, Serial};
pub use measured_sizes::MeasuredSizes;
pub use names::{decode_modified_utf8, package_of, readable_class_name};
pub use record::{AllocSite, Frame, RECORD_HEAD, RawRecord, Record};
pub use rewrite::{CUT, Edit, RewriteError, Rewriter, Rewritten, rewrite};
pub use scan::hides_sub_record;
pub use segment::{Stretch, Walked, walk_stretch};
pub use tag::{BasicType, HeapTag, PRIVATE_TAGS, RecordTag};
pub use visible::{is_unsafe, visible};
pub use walk::{Stop, StopReason, read_sub_record, walk};
pub use write::{Writer, encode_record, encode_sub_record};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
