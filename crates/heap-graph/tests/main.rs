//! The integration tests of `heap-graph` as one program, so that it is linked once.

mod changed;
mod conservative;
mod contents;
mod dominators;
mod index;
mod links;
mod records;
mod sizes;
mod trust;
mod tuning;
mod work;
