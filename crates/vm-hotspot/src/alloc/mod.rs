//! Allocations: which objects are recorded, counted and tracked.
//!
//! 1. Class filters say how a class is recorded ([`choices`]).
//! 2. Inserted code counts the objects of Java code by stack; those of native code and of the VM are reported by events
//!    ([`native_made`]). Sampled objects wait in lists, so that no thread waits for another ([`sampled`]).
//! 3. What threads have counted is summed up by site ([`sites`]; [`site_stacks`] and [`tallies`] if stacks are sampled), and reported as differences ([`reported`]).
//! 4. Objects are tracked ([`added`]) by weak references until they are freed ([`tracked`]). If a tracked object keeps
//!    garbage alive, their number has a bound ([`bound`]). If there are too many, [`crowded`] tracks fewer.
//! 5. They are kept in allocation order, which gives their allocation times ([`allocation_times`]).

pub(crate) mod added;
pub(crate) mod allocation_times;
pub(crate) mod bound;
pub(crate) mod choices;
pub(crate) mod crowded;
pub(crate) mod native_made;
pub(crate) mod reported;
pub(crate) mod sampled;
pub(crate) mod site_stacks;
pub(crate) mod sites;
pub(crate) mod tallies;
pub(crate) mod thinned;
pub(crate) mod tracked;
