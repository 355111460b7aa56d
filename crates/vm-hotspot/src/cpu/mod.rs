//! Where the time goes.
//!
//! 1. With `cpu=times`, inserted code counts calls and time by calling context; [`calls`] sums the contexts up.
//! 2. With `cpu=samples`, each thread gets a timer on its own CPU clock ([`timers`]).
//! 3. Its signal arrives on that thread, whose handler takes a stack ([`sampler`]); a fault of the VM in it costs the sample
//!    only ([`fault_guard`]).
//! 4. Stacks wait in a ring until a thread that may lock counts them in the state.

pub(crate) mod calls;
pub(crate) mod fault_guard;
pub(crate) mod sampler;
pub(crate) mod timers;
