//! Threads: the agent's own, and what the program's threads wait for.
//!
//! 1. [`worker`] is a thread of the agent that does one job after the other.
//! 2. [`background`] has the jobs of such threads: retransforming classes, watching collections, the clock.
//! 3. [`last_words`] is the work at the end of the process, or when the heap is full.
//! 4. [`monitors`] reports which thread blocks or waits at which monitor.
//! 5. [`parks`] measures how long threads are parked at locks of `java.util.concurrent`.
//! 6. [`envs`] finds the `JNIEnv` of a thread, by which JVMPI names it.

pub(crate) mod background;
pub(crate) mod envs;
pub(crate) mod last_words;
pub(crate) mod monitors;
pub(crate) mod parks;
pub(crate) mod worker;
