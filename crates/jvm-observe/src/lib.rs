//! Reads a running JVM from outside. Nothing here changes the program: the counters are a file that the VM
//! maps, `/proc` is the kernel's, and the attach socket answers diagnostic commands. Only [`attach::order`] loads an
//! agent, which is the caller's.
//!
//! In reading order: [`jvm`] (which JVMs run), [`files`] (the file system of a JVM, which may be a container's),
//! [`attach`] (commands through its socket); [`process`] and [`counters`] (cheap enough for every second); where the
//! memory is: [`ranges`], [`resident`], [`native_memory`]; [`error`].
//!
//! ```
//! let here = jvm_observe::process::read(std::process::id());
//! assert!(here.is_some_and(|process| process.threads > 0));
//! ```

#[cfg(target_os = "linux")]
pub mod attach;
pub mod counters;
pub mod error;
#[cfg(target_os = "linux")]
pub mod files;
#[cfg(target_os = "linux")]
pub mod jvm;
pub mod native_memory;
pub mod process;
pub mod ranges;
pub mod resident;

pub use error::{ObserveError, Result};
