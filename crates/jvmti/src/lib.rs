//! The C interfaces of a Java VM: hand-written layouts of JNI and JVMTI, and a thin wrapper over the part that Tenure
//! uses.
//!
//! * [`sys`] has the layouts: tables are called by slot number, and a test compares every slot number, event number and
//!   capability bit with the headers of the JDKs installed on the machine.
//! * [`Env`] is a JVMTI environment. Its type parameter is the phase ([`OnLoad`], [`Start`], [`Live`]): functions that
//!   are only legal in the live phase do not exist for the others. One struct serves all JDKs from 8 on: functions
//!   added later require a capability.
//! * [`Jni`] is a thread's JNI environment.
//! * [`Agent`] receives events. Panics are caught in every callback: a fault of the agent is reported to
//!   [`Agent::panicked`] and never unwinds into the VM.
//!
//! References ([`Object`]) are plain handles, as in JNI: a local one is valid until its callback returns or its
//! [`Jni::local_frame`] ends. Creating one from a raw pointer is `unsafe`; using one after that time is the caller's
//! error.

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

pub use agent::{Agent, fence, install, load, replace};
pub use capabilities::{Capabilities, Capability};
pub use env::{Env, EventKind, Live, OnLoad, Start};
pub use env_live::{FrameRow, MonitorUsage, StackRow, ThreadRow};
pub use error::{Error, Result};
pub use heap::{HeapWalk, Primitive, Reference, Walk};
pub use jni::{JavaVm, Jni, Object};
pub use references::ReferenceHooks;
