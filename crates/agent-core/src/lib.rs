//! The HPROF agent without a VM: the meaning of the options, what is recorded, and the bytes that are written. Every
//! recorder is a state machine that receives `vmpi` events, so all of it is tested without a JVM.
//!
//! ```
//! use agent_core::options::{Parsed, parse};
//! use agent_core::{Host, Recorder, WallTime};
//!
//! struct Process;
//! impl Host for Process {
//!     fn now(&self) -> WallTime { WallTime::default() }
//!     fn say(&mut self, _text: &str) {}
//! }
//!
//! let Ok(Parsed::Run(options)) = parse("cpu=samples", None) else { panic!() };
//! let recorder = Recorder::new(*options, Box::new(Vec::new()), Box::new(Process));
//! assert!(recorder.options().cpu.samples);
//! ```
//!
//! Reading order: [`options`], [`Host`], [`Recorder`], [`control`], [`series`].

mod catalog;
pub mod control;
mod host;
mod ids;
mod mutf8;
pub mod options;
mod output;
mod recorder;
pub mod series;

pub use host::{Host, WallTime};
pub use output::stacks::{stack_serial, stacks};
pub use recorder::{Reaction, Recorder};
