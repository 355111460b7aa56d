//! Reads a running JVM from outside. Nothing here changes the program: the counters are a file that the VM maps,
//! `/proc` belongs to the kernel, and the attach socket answers diagnostic commands. Only [`attach::order`] loads an
//! agent, which the caller provides.
//!
//! In reading order: [`jvm`] (running JVMs), [`files`] (the file system of a JVM, which may be that of a container),
//! [`attach`] (commands through its socket); [`process`] and [`counters`] (cheap enough for every second); memory by
//! category: [`ranges`], [`resident`], [`native_memory`]; [`error`].
//!
//! ```
//! let here = jvm_observe::process::read(std::process::id());
//! assert!(here.is_some_and(|process| process.threads > 0));
//! ```

#[cfg(target_os = "linux")]
pub mod attach;
pub mod counters;
#[cfg_attr(
    not(target_os = "linux"),
    expect(unused, reason = "what refuses and explains is only on Linux")
)]
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
