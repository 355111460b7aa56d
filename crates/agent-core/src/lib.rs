//! The HPROF agent without a VM: what the options mean, what is recorded, and which bytes that
//! becomes. Every recorder is a state machine that eats `vmpi` events, so all of it runs in tests
//! without a JVM.
//!
//! Reading order: [`options`].

pub mod options;
