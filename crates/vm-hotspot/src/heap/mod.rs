//! The heap as it is.
//!
//! 1. [`walk`] follows all references through JVMTI and hands whole objects to a sink.
//! 2. Sinks: [`records`] writes records of [`vmpi::dump`]; `visit` adds the stacks of tracked objects, for text and binary dumps.
//! 3. [`field_layout`], `array_layout` and `used_monitors` say what JVMTI does not: places of fields, sizes of arrays, monitors.
//! 4. `native_dump` has the VM write the dump and finds tracked objects in it by the `slots` of their references.
//! 5. `tracked_lists` shows where these references are to a reader of a copy of the process.

pub(crate) mod array_layout;
pub mod field_layout;
pub(crate) mod native_dump;
pub mod records;
pub(crate) mod slots;
pub(crate) mod tracked_lists;
pub(crate) mod used_monitors;
pub(crate) mod visit;
pub mod walk;
