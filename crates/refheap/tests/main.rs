//! The integration tests of `refheap` as one program, so that it is linked once.

mod host;
mod random;
