//! The integration tests of `testkit` as one program, so that it is linked once.

mod builder;
mod oracles;
mod surroundings;
