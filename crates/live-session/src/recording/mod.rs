//! The state of a watched program, and the threads that update it.
//!
//! From the VM: [`session`] reads counters and `/proc` four times a second, `memory` reads the memory by category every
//! few seconds; both become rows of the timeline. From the agent: `agent` reads its stream, [`tap`] splits the stream
//! into records, of which `prelude` keeps those that heap dumps begin with, and [`recorded`] turns tables into the history of every site. Requests go in the other direction:
//! [`program`] defines the requests to a program; `sizes`, [`live_objects`], `cpu` and [`measure`] send requests to the
//! agent and wait for its answer ([`readings`], [`asking`]). [`state`] holds all data behind locks, [`class_filters`]
//! states what is recorded of each class, and [`status`] is sent to pages when it changes.

mod agent;
pub mod asking;
pub mod class_filters;
mod cpu;
pub mod live_objects;
pub mod measure;
mod memory;
mod prelude;
pub mod program;
pub mod readings;
pub mod recorded;
pub mod session;
pub mod sizes;
pub mod state;
pub mod status;
pub mod tap;
