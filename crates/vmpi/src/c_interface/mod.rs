//! The C interface of the document (sections 2, 3 and 5): layouts and numbers of `jvmpi.h`, and the other parts that
//! every VM with this interface needs.
//!
//! The bridge on HotSpot and the reference VM both give agents a [`layout::Interface`] and send them
//! [`layout::Event`]s; the layouts and the raw monitors are the same for both.

pub mod layout;
pub mod raw_monitor;
