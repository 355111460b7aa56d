//! More than one dump: what identifies an object from one dump to the next ([`identity`]), what changed ([`diff`], by the
//! groups of `groups` and the walk of `places`), and the rules and the baseline of a build ([`check`]).

pub mod check;
pub mod diff;
mod groups;
pub mod identity;
mod places;
