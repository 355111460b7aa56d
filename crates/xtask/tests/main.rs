//! The integration tests of `xtask` as one program, so that it is linked once.

mod commands;
mod direction;
mod scripts;
mod tidy;
