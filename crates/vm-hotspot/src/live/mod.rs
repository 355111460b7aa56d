//! Live objects, for the pages of a running program.
//!
//! 1. [`listing`] reads the tracked objects of one class, on a thread of the agent.
//! 2. [`fills`] reads the sizes and capacities of all tracked objects, in pieces, and sums them up by site.
//! 3. Both read [`fields`] through JNI without waiting for an initializer of a class.
//! 4. [`own_answers`] calls methods of objects (`toString`, `equals`).
//! 5. Such code of the program runs on a thread that may be abandoned ([`own_code`]).

pub(crate) mod fields;
pub(crate) mod fills;
pub(crate) mod listing;
pub(crate) mod own_answers;
pub(crate) mod own_code;
