//! What is requested of a view of a heap dump or a running program: its parameters ([`Params`]), why there is no answer
//! ([`Fault`]), and how far a dump is ([`Stage`]). Pages, terminals and tools request the same.

mod fault;
mod params;
mod stage;

pub use fault::{Fault, FaultKind};
pub use params::{MOST_ROWS, Params, ROWS, percent};
pub use stage::Stage;
