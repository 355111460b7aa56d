//! A watched program. It is observed from outside (`jvm-observe`); only a recording of allocations loads
//! the agent, when the user requests one.
//!
//! What the agent and the VM send falls through four folders: [`recording`] takes it in and keeps it up to date in one
//! [`Live`] for each program; [`persist`] writes it down, for a session that comes later and as tables for the user;
//! [`dumps`] has the heap dumps; and [`answers`] reads the parameters of a question, and asks a function of `live-analysis`
//! with the data that it needs. Pages, terminals and tools give the answer its form. [`clock`] is the time of day.

pub mod answers;
pub mod clock;
pub mod dumps;
pub mod persist;
pub mod recording;

pub use answers::commands::carry_out;
pub use recording::state::Live;
