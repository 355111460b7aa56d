//! CPU and wall-clock profiling.
//!
//! 1. With `cpu=times`, inserted code counts calls and time by calling context; [`calls`] sums the contexts up.
//! 2. With `cpu=samples`, each thread gets a timer on its own CPU clock ([`timers`], [`clocks`]), or an event of the kernel that
//!    brings the kernel's frames ([`kernel_events`]). Which threads count is a [`choice`].
//!    Threads that run no Java code are found in the system's list and counted by name ([`other_threads`]).
//! 3. With `wall=`, the sampling thread signals some threads at each tick, whether they run or wait ([`wall`]). If a VM
//!    cannot take stacks in a signal handler, and with `safepoint=y`, the sampling thread takes the stacks of all
//!    threads ([`at_safepoints`]).
//! 4. The signal handler takes the stack of the thread ([`sampler`]); a fault of the VM there costs only this sample
//!    ([`fault_guard`]). Native frames are found ([`native_walk`]) by the rules of their libraries ([`unwind_tables`],
//!    [`unwind_rules`]) or by frame pointers, and named later ([`native_frames`]). If the VM does not find the Java
//!    frames below them, its note of the last Java frame is completed ([`anchors`]).
//! 5. Stacks wait in [`slots`] until a thread that may take locks counts them in the state.

mod anchors;
mod at_safepoints;
pub(crate) mod calls;
mod choice;
mod clocks;
mod every;
pub(crate) mod fault_guard;
mod kernel_events;
mod native_frames;
mod native_walk;
pub(crate) mod other_threads;
pub(crate) mod sampler;
pub(crate) mod slots;
pub(crate) mod timers;
mod unwind_rules;
mod unwind_tables;
pub(crate) mod wall;
