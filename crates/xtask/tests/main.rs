//! The integration tests of `xtask` as one program, so that it is linked once.

mod commands;
mod direction;
mod figures;
mod scripts;
mod tidy;
