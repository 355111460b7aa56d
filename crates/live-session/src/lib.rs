//! A watched program. It is observed from outside (`jvm-observe`); the agent is loaded only for a recording that the
//! user requests.
//!
//! Data of the agent and the VM passes through four modules: [`recording`] receives it and stores it in one [`Live`]
//! per program; [`persist`] writes it to disk, for a later session and as tables for the user; [`dumps`] manages the
//! heap dumps; and [`answers`] parses the parameters of a request and calls a function of `live-analysis` with the data
//! that it needs. Pages, terminals and tools format the answer. [`clock`] returns the time of day.

pub mod answers;
pub mod clock;
pub mod dumps;
pub mod persist;
pub mod recording;

pub use answers::commands::carry_out;
pub use recording::state::Live;
