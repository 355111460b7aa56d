//! The integration tests of `classfile` as one program, so that it is linked once.

mod hostile;
mod java_base;
