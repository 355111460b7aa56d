//! One object, looked into: how answers name it ([`describe`]), its value in words ([`readable`]), its fields by
//! name ([`fields`]), everything about it ([`object`]), and the stack that allocated it ([`allocation`]).

pub mod allocation;
pub mod describe;
pub mod fields;
pub mod object;
pub mod readable;
