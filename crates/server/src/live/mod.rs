//! A running program as pages. It is observed from outside (`jvm-observe`); only a recording of allocations loads
//! the agent, when the user requests one.
//!
//! What the agent and the VM send falls through four folders: [`recording`] takes it in and keeps it up to date in one
//! [`Live`] for each program; [`persist`] writes it down, for a server that comes later and as tables for the user;
//! [`dumps`] has the heap dumps; and [`doors`] has the addresses, each of which asks a function of `live-analysis` and gives its
//! answer a form. [`clock`] is the time of day.

pub mod clock;
pub mod doors;
pub mod dumps;
pub mod persist;
pub mod recording;

pub use doors::commands::carry_out;
pub use doors::routes::router;
pub(crate) use doors::views::answer;
pub use recording::state::Live;
