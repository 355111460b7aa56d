//! Counting by inserted bytecode.
//!
//! 1. [`rewrite`] decides which code a class gets (`site_code`: where stacks are sampled; `leaf`: which calls need less of it; `numbers`: of its methods and call sites; [`new_object_calls`]: allocations before JDK 11).
//! 2. `inserted` puts it into the program's classes and takes it out; `changed_classes` are those that have it.
//! 3. The code counts in arrays of the thread that runs: the `tracker`, whose class is `tracker_class`.
//! 4. Virtual threads count in the arrays of their carrier (`guests`).
//! 5. The code calls the agent at a stack's first allocation ([`natives`]); `counters` are what one thread has counted.

pub(crate) mod changed_classes;
pub(crate) mod counters;
pub(crate) mod guests;
pub(crate) mod inserted;
pub(crate) mod leaf;
pub mod natives;
pub mod new_object_calls;
pub mod numbers;
pub mod rewrite;
pub(crate) mod site_code;
pub(crate) mod tracker;
pub(crate) mod tracker_class;
