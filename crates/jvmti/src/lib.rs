//! The C interfaces of a Java VM: layouts of JNI and JVMTI written by hand, and a
//! thin wrapper over the part that Tenure uses.
//!
//! * [`sys`] holds the layouts: tables are called by ordinal, and a test compares
//!   every ordinal, event number and capability bit with the headers of the JDKs
//!   installed on the machine.
//! * [`Env`] is a JVMTI environment. Its type parameter is the phase ([`OnLoad`],
//!   [`Start`], [`Live`]): what is only legal in the live phase does not exist on
//!   the others. One struct for all JDKs from 8 on: calls added later are guarded
//!   by capability.
//! * [`Jni`] is a thread's JNI environment.
//! * [`Agent`] receives events. Every callback runs behind a panic fence: a fault
//!   of the agent is reported to [`Agent::panicked`] and never unwinds into the VM.
//!
//! References ([`Object`]) are plain handles, as in JNI: a local one is valid
//! until its callback returns or its [`Jni::local_frame`] closes. Making one from
//! a raw pointer is `unsafe`; keeping one too long is the caller's error.

pub mod agent;
pub mod allocations;
pub mod capabilities;
pub mod env;
pub mod env_control;
pub mod env_live;
pub mod error;
pub mod heap;
pub mod jni;
mod locals;
pub mod park;
pub mod references;
pub mod sys;
pub mod text;

pub use agent::{Agent, end_at_panics, fence, install, replace};
pub use capabilities::{Capabilities, Capability};
pub use env::{Env, EventKind, Live, OnLoad, Start};
pub use env_live::{FrameRow, MonitorUsage, StackRow, ThreadRow};
pub use error::{Error, Result};
pub use heap::{HeapWalk, Primitive, Reference, Walk};
pub use jni::{JavaVm, Jni, Object};
pub use references::ReferenceFunctions;
