//! Live objects, for the pages of a running program.
//!
//! 1. [`listing`] reads the tracked objects of one class, on a thread of the agent's own.
//! 2. [`fills`] reads how big and how full all tracked objects are, in pieces, and sums them up by site.
//! 3. Both read [`fields`] through JNI without waiting for an initializer of a class.
//! 4. What objects say of themselves (`toString`, `equals`) is asked in [`own_answers`].
//! 5. Such code of the program runs on a thread that may be abandoned ([`own_code`]).

pub(crate) mod fields;
pub(crate) mod fills;
pub(crate) mod listing;
pub(crate) mod own_answers;
pub(crate) mod own_code;
