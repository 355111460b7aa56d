//! One object: how answers name it ([`describe`]), its readable value ([`readable`]), its fields by
//! name ([`fields`]), everything about it ([`object`]), the stack that allocated it ([`allocation`]),
//! and whether it is a node of a tree or list (`nodes`).

pub mod allocation;
pub mod describe;
pub mod fields;
pub(crate) mod nodes;
pub mod object;
pub mod readable;
