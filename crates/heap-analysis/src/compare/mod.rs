//! More than one dump: what identifies an object from one dump to the next ([`identity`]), what changed ([`diff`], by the
//! groups of `groups` and the walk of `places`), and the rules ([`check`]) and the baseline ([`baseline`]) of a build.

pub mod baseline;
pub mod check;
pub mod diff;
mod groups;
pub mod identity;
mod places;
