//! CPU and wall-clock profiling.
//!
//! 1. With `cpu=times`, inserted code counts calls and time by calling context; [`calls`] sums the contexts up.
//! 2. With `cpu=samples`, each thread gets a timer on its own CPU clock ([`timers`], [`clocks`]), or an event of the kernel that
//!    brings the kernel's frames ([`kernel_events`]). Which threads count is a [`choice`].
//!    Threads that run no Java code are found in the system's list and counted by name ([`other_threads`]).
//! 3. With `wall=`, the sampling thread signals some threads at each tick, whether they run or wait ([`wall`]). If a VM
//!    cannot take stacks in a signal handler, and with `safepoint=y`, the sampling thread takes the stacks of all
//!    threads ([`at_safepoints`]).
//! 4. The signal handler takes the stack of the thread ([`sampler`], [`java_frames`]); a fault of the VM there costs only
//!    this sample ([`fault_guard`]). Where the VM does not find the Java frames, it gets other [`registers`] (of the
//!    complete frame or of the caller: [`partial_frames`], by the VM's [`code_cache`]) or a complete note of the last
//!    Java frame ([`anchors`]). Native frames are found ([`native_walk`]) by the rules of their libraries
//!    ([`unwind_tables`], [`unwind_rules`]) or by frame pointers, and named later ([`native_frames`]).
//!    During a collector's pause the VM walks no stacks, so such samples wait for its end ([`pauses`]).
//! 5. Stacks wait in [`slots`] until a thread that may take locks counts them in the state.

mod anchors;
mod at_safepoints;
pub(crate) mod calls;
mod choice;
mod clocks;
mod code_cache;
mod every;
pub(crate) mod fault_guard;
pub(crate) mod java_frames;
mod kernel_events;
mod native_frames;
mod native_walk;
pub(crate) mod other_threads;
mod partial_frames;
pub(crate) mod pauses;
mod previous_handler;
mod registers;
pub(crate) mod sampler;
pub(crate) mod slots;
pub(crate) mod timers;
mod unwind_rules;
mod unwind_tables;
pub(crate) mod wall;
