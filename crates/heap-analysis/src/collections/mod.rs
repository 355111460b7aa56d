//! Collections: which classes are some ([`table`], from `collections.toml`), how full they are ([`stats`]), what one
//! of them holds ([`held`]) and how answers show it ([`contents`]).

pub mod contents;
pub mod held;
pub mod stats;
pub mod table;
