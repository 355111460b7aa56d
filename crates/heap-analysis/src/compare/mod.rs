//! More than one dump: what identifies an object from one dump to the next ([`identity`]), what changed ([`diff`]), and
//! the rules and the baseline of a build ([`check`]).

pub mod check;
pub mod diff;
pub mod identity;
