//! What is asked of a watched program, by parameters.
//!
//! [`tables`], [`objects`], [`advice`], [`cpu`] and [`references`] read the parameters, take the data that they need from the recording
//! and the dumps, and ask `live-analysis`; [`pprof`] is the answer for another tool. [`source`] finds the source of a frame,
//! [`commands`] carries out what changes something, and `schedule` saves tables by time.

pub mod advice;
pub mod commands;
pub mod cpu;
pub mod objects;
pub mod pprof;
pub mod references;
mod schedule;
pub mod source;
pub mod tables;
