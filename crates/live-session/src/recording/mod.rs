//! What is known of a watched program, and the threads that keep it up to date.
//!
//! From the VM: [`session`] reads counters and `/proc` four times a second, `memory` the memory by category every few seconds; both become
//! rows of the timeline. From the agent: `agent` reads its stream, [`tap`] takes the stream apart, and [`recorded`] turns tables
//! into the history of every site. Questions go the other way: [`program`] is what a program can be asked; `sizes`, [`live_objects`],
//! `cpu` and [`measure`] ask the agent and wait for its answer ([`readings`], [`asking`]).
//! [`state`] holds all of it behind locks, [`class_filters`] says what is recorded of each class, and [`status`] is what pages follow.

mod agent;
pub mod asking;
pub mod class_filters;
mod cpu;
pub mod live_objects;
pub mod measure;
mod memory;
pub mod program;
pub mod readings;
pub mod recorded;
pub mod session;
pub mod sizes;
pub mod state;
pub mod status;
pub mod tap;
