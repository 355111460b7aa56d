//! Collections: which classes are collections ([`table`], from `collections.toml`), how full they are ([`stats`]), the
//! contents of one of them ([`held`]) and how answers show it ([`contents`]).

pub mod contents;
pub mod held;
pub mod stats;
pub mod table;
