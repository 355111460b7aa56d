//! Why a VM could not be dumped at all.

use thiserror::Error;

/// Why a VM could not be dumped at all. Damage to single structures is no such reason: it is counted in
/// the [`Summary`](crate::Summary).
#[derive(Debug, Error)]
pub enum Fault {
    /// No VM is mapped.
    #[error("{0} maps no libjvm.so: it is no HotSpot JVM, or it is not started yet")]
    NoVm(String),
    /// The library is not what it should be.
    #[error("libjvm.so has no readable {what}: it is no HotSpot VM, or its memory is missing")]
    NoTables {
        /// The symbol.
        what: String,
    },
    /// A structure of the VM that the reader needs is not described.
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
    /// A collector whose heap is not understood.
    #[error(
        "the VM uses {collector}, whose heap this reader does not know; it reads Serial, Parallel, G1 and Shenandoah (use jcmd PID GC.heap_dump)"
    )]
    Collector {
        /// Its name.
        collector: &'static str,
    },
    /// The heap is being collected.
    #[error(
        "the VM was stopped in the middle of a garbage collection, so objects are partly moved"
    )]
    InCollection,
    /// The process is gone.
    #[error("the process has ended while its memory was read")]
    Ended,
    /// A copy of a process has taken more memory than it may.
    #[error(
        "the program has changed {} KiB of its memory since it was copied, more than the limit of {} KiB allows, so the dump was abandoned; the program was not disturbed",
        changed >> 10,
        limit >> 10
    )]
    Changed {
        /// Bytes that the copy has taken.
        changed: u64,
        /// Bytes that it may take.
        limit: u64,
    },
    /// A copy of a process is gone.
    #[error(
        "the copy of the process was ended: the program itself has ended, or the system is short of memory"
    )]
    CopyEnded,
    /// A process or a file cannot be read, or the dump cannot be written.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        #[source]
        cause: std::io::Error,
    },
    /// A file that is no core, or one of another kind of machine.
    #[error("{0}")]
    NoCore(String),
}

impl Fault {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Fault {
        let what = what.into();
        move |cause| Fault::Io { what, cause }
    }
}
