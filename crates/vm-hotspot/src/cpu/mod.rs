//! Where the time goes.
//!
//! 1. With `cpu=times`, inserted code counts calls and time by calling context; [`calls`] sums the contexts up.
//! 2. With `cpu=samples`, each thread gets a timer on its own CPU clock ([`timers`]).
//! 3. Its signal arrives on that thread, whose handler takes a stack ([`sampler`]).
//! 4. Stacks wait in a ring until a thread that may lock counts them in the state.

pub(crate) mod calls;
pub(crate) mod sampler;
pub(crate) mod timers;
