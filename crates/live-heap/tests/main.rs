//! The integration tests of `live-heap` as one program, so that it is linked once.

mod replay;
mod trail;
