//! Why a VM could not be dumped.

use thiserror::Error;

/// Why a VM could not be dumped. Damage to single structures is not a fault: it is counted in the
/// [`Summary`](crate::Summary).
#[derive(Debug, Error)]
pub enum Fault {
    /// No VM is mapped.
    #[error("{0} maps no libjvm.so: it is no HotSpot JVM, or it is not started yet")]
    NoVm(String),
    /// The library is not a VM's library.
    #[error("libjvm.so has no readable {what}: it is no HotSpot VM, or its memory is missing")]
    NoTables {
        /// The symbol.
        what: String,
    },
    /// The VM does not describe a structure that the reader needs.
    #[error("this VM does not describe {what}, so its memory cannot be read")]
    Missing {
        /// The field or type.
        what: String,
    },
    /// A central pointer or number is wrong.
    #[error(
        "{what} of the VM cannot be read or is invalid: the image is damaged, or the VM is not initialized"
    )]
    Senseless {
        /// What it is.
        what: &'static str,
    },
    /// A collector that is not supported.
    #[error(
        "the VM uses {collector}, whose heap this reader does not know; it reads Serial, Parallel, G1 and Shenandoah (use jcmd PID GC.heap_dump)"
    )]
    Collector {
        /// Its name.
        collector: &'static str,
    },
    /// A garbage collection is in progress.
    #[error(
        "the VM was stopped in the middle of a garbage collection, so objects are partly moved"
    )]
    InCollection,
    /// The process has ended.
    #[error("the process has ended while its memory was read")]
    Ended,
    /// A copy of a process has used more memory than the limit.
    #[error(
        "the program has changed {} KiB of its memory since it was copied, more than the limit of {} KiB allows, so the dump was abandoned; the program was not disturbed",
        changed >> 10,
        limit >> 10
    )]
    Changed {
        /// Bytes that the copy has used.
        changed: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A copy of a process has ended.
    #[error(
        "the copy of the process was ended: the program itself has ended, or the system is short of memory"
    )]
    CopyEnded,
    /// A process or a file cannot be read, or the dump cannot be written.
    #[error("{what}")]
    Io {
        /// The operation.
        what: String,
        /// Why it failed.
        #[source]
        cause: std::io::Error,
    },
    /// A file that is not a core, or one of an unsupported processor.
    #[error("{0}")]
    NoCore(String),
}

impl Fault {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Fault {
        let what = what.into();
        move |cause| Fault::Io { what, cause }
    }
}
