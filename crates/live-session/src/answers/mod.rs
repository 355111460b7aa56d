//! Answers to requests about a watched program, by parameters.
//!
//! [`tables`], [`objects`], [`advice`], [`cpu`] and [`references`] parse the parameters, get the data that they need
//! from the recording and the dumps, and call `live-analysis`; [`pprof`] answers other tools. [`source`] finds the
//! source of a frame, [`commands`] carries out requests that change something, and `schedule` saves tables
//! periodically.

pub mod advice;
pub mod commands;
pub mod cpu;
pub mod objects;
pub mod pprof;
pub mod references;
mod schedule;
pub mod source;
pub mod tables;
