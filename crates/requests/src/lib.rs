//! Requests for views of a heap dump or a running program: their parameters ([`Params`]), why there is no answer
//! ([`Fault`]), and the state of opening a dump ([`Stage`]). Pages, terminals and tools share these types.

mod fault;
mod params;
mod stage;

pub use fault::{Fault, FaultKind};
pub use params::{MOST_ROWS, Params, ROWS, percent};
pub use stage::Stage;
