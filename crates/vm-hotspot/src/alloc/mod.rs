//! Allocations: which objects are recorded, and what becomes of them.
//!
//! 1. Class filters say how a class is recorded ([`choices`]).
//! 2. Java code counts its objects by stack; those of native code and of the VM come as events ([`native_made`]).
//!    Sampled ones wait in lists, so that no thread waits for another ([`sampled`]).
//! 3. What threads have counted is summed up by site ([`sites`]; [`site_stacks`] and [`tallies`] if stacks are sampled), and reported as differences ([`reported`]).
//! 4. Objects are tracked ([`added`]) by weak references until they are freed ([`tracked`]).
//!    Where a tracked object keeps garbage, their number has a bound ([`bound`]).
//! 5. Their order keeps when they were allocated ([`allocation_times`]).

pub(crate) mod added;
pub(crate) mod allocation_times;
pub(crate) mod bound;
pub(crate) mod choices;
pub(crate) mod native_made;
pub(crate) mod reported;
pub(crate) mod sampled;
pub(crate) mod site_stacks;
pub(crate) mod sites;
pub(crate) mod tallies;
pub(crate) mod thinned;
pub(crate) mod tracked;
