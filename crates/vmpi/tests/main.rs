//! The integration tests of `vmpi` as one program, so that it is linked once.

mod any;
mod dump;
mod wire;
