//! The integration tests of `hprof` as one program, so that it is linked once.

mod compressed;
mod damage;
mod hostile_source;
mod private_records;
mod rewrite;
mod round_trip;
