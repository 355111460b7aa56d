//! Where the time goes.
//!
//! 1. With `cpu=times`, inserted code counts calls and time by calling context; [`calls`] sums the contexts up.
//! 2. With `cpu=samples`, each thread gets a timer on its own CPU clock ([`timers`]).
//!    Threads that run no Java code are found in the system's list and counted by name ([`other_threads`]).
//! 3. With `wall=`, the sampling thread signals some threads at each tick, whether they run or wait ([`wall`]).
//! 4. The signal arrives on the thread, whose handler takes a stack ([`sampler`]); a fault of the VM in it
//!    costs this sample only ([`fault_guard`]).
//! 5. Stacks wait in [`slots`] until a thread that may lock counts them in the state.

pub(crate) mod calls;
mod every;
pub(crate) mod fault_guard;
pub(crate) mod other_threads;
pub(crate) mod sampler;
pub(crate) mod slots;
pub(crate) mod timers;
pub(crate) mod wall;
