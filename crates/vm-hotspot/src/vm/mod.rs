//! The centre: one recording in a running VM.
//!
//! 1. [`hotspot`] is loaded with a [`config`], takes its JVMTI environment and starts a recording ([`beginning`]).
//! 2. [`events`] come in from JVMTI and are handed to it; it emits the notifications of [`vmpi`].
//! 3. The things that events refer to are numbered in the [`registry`] ([`numbered`], [`loaders`], [`places`],
//!    [`libraries`], [`unloading`]), behind the lock of the [`state`].
//! 4. The counts of threads are collected for a report ([`harvest`]), within a memory budget ([`costs`], [`shortage`]);
//!    what walks of the heap need is copied ([`walk`]).
//! 5. Facts about HotSpot's structures are read from the tables that it exports ([`vm_structs`], [`collector`]).
//! 6. The profiler calls [`queries`]; [`ending`] removes everything from the program.

pub(crate) mod beginning;
pub(crate) mod collector;
pub(crate) mod config;
pub(crate) mod costs;
pub(crate) mod ending;
pub(crate) mod events;
pub(crate) mod harvest;
pub(crate) mod hotspot;
pub(crate) mod libraries;
pub(crate) mod loaders;
pub(crate) mod numbered;
pub(crate) mod places;
pub(crate) mod queries;
pub(crate) mod registry;
pub(crate) mod shortage;
pub(crate) mod spares;
pub(crate) mod state;
pub(crate) mod unloading;
pub(crate) mod vm_structs;
pub(crate) mod walk;
