//! The integration tests of `xtask` as one program, so that it is linked once.

mod action;
mod answers;
mod circles;
mod commands;
mod direction;
mod figures;
mod packages;
mod scripts;
mod tidy;
