//! Collections: which classes are some ([`table`], from `collections.toml`), how full they are ([`stats`]), what one
//! of them holds ([`contents`]), and the entries of the maps of `java.util` ([`entries`]).

pub mod contents;
pub mod entries;
pub mod stats;
pub mod table;
