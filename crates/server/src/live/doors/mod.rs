//! The addresses of a watched program.
//!
//! `routes` maps an address to a question. [`answers`], [`objects`], [`advice`], [`cpu`] and [`references`] read its parameters, take the data that they
//! need from the recording and the dumps, and ask `live-analysis`; `views` finds them by name, and [`describe`] lists them with their parameters; [`commands`] carries out what changes something. The answer
//! becomes JSON, a file (`downloads`), a page without scripts (`plain`, `plain_parts`), or what another tool reads: [`pprof`],
//! [`prometheus`], the servlet of an older profiler ([`servlet`]). [`source`] finds the source of a frame, and `schedule` saves tables by
//! time.

pub mod advice;
pub mod answers;
pub mod commands;
pub mod cpu;
pub mod describe;
mod downloads;
pub mod objects;
mod plain;
mod plain_parts;
pub mod pprof;
pub mod prometheus;
pub mod references;
pub(in crate::live) mod routes;
mod schedule;
pub mod servlet;
pub mod source;
pub(crate) mod views;
