//! Walks and dumps of the heap.
//!
//! 1. [`walk`] follows all references through JVMTI and passes complete objects to a sink; `tags` names them.
//! 2. Sinks: [`records`] writes records of [`vmpi::dump`]; `visit` adds the stacks of tracked objects, for text and binary dumps.
//! 3. [`field_layout`], `array_layout` and `used_monitors` have facts that JVMTI does not report: offsets of fields,
//!    sizes of arrays, monitors.
//! 4. `native_dump` lets the VM write the dump and finds tracked objects in it by the `slots` of their references.
//!    `last_dump` makes the Java objects for that when the VM ends.
//! 5. `tracked_lists` gives a reader of a copy of the process the addresses of these references.

pub(crate) mod array_layout;
pub mod field_layout;
pub(crate) mod last_dump;
pub(crate) mod native_dump;
pub mod records;
pub(crate) mod slots;
pub(crate) mod tags;
pub(crate) mod tracked_lists;
pub(crate) mod used_monitors;
pub(crate) mod visit;
pub mod walk;
