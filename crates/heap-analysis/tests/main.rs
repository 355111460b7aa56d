//! The integration tests of `heap-analysis` as one program, so that it is linked once.

mod cancelled;
mod groups;
mod naive;
mod readable;
mod redact;
mod sets;
mod waste;
