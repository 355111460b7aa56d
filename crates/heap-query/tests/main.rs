//! The integration tests of `heap-query` as one program, so that it is linked once.

mod budget;
mod common;
mod jhat;
mod jhat_help;
mod joins;
mod languages;
mod limits;
mod mat;
mod oql;
mod sql;
