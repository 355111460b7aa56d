//! Counting by inserted bytecode.
//!
//! 1. [`rewrite`] decides which code a class gets (`site_code`: if stacks are sampled; `leaf`: for methods that call no
//!    other code; `allocation_free`: which need none to count allocations; `numbers`: numbers of methods and call sites;
//!    [`new_object_calls`]: allocations before JDK 11).
//! 2. `inserted` inserts it into the program's classes and removes it; `changed_classes` remembers which classes have
//!    it.
//! 3. The code counts in arrays of the current thread: the `tracker`, whose class file is in `tracker_class`; `key_slots`
//!    finds the entries of these arrays.
//! 4. Virtual threads count in the arrays of their carrier (`guests`).
//! 5. The code calls the agent at the first allocation of a stack ([`natives`]); `counters` has the counts of one
//!    thread.

pub(crate) mod allocation_free;
pub(crate) mod changed_classes;
pub(crate) mod counters;
pub(crate) mod guests;
pub(crate) mod inserted;
pub(crate) mod key_slots;
pub(crate) mod leaf;
pub mod natives;
pub mod new_object_calls;
pub mod numbers;
pub mod rewrite;
pub(crate) mod site_code;
pub(crate) mod tracker;
pub(crate) mod tracker_class;
