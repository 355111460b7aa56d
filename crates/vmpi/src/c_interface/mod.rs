//! The C interface of the document (sections 2, 3 and 5): layouts and numbers of
//! `jvmpi.h`, and what every VM that exports it needs besides.
//!
//! The bridge on HotSpot and the reference VM both give agents a [`layout::Interface`]
//! and send them [`layout::Event`]s; neither the layouts nor the raw monitors know
//! which of the two it is.

pub mod layout;
pub mod raw_monitor;
