//! JVMTI's error numbers as a type.

/// A call to the VM failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A JVMTI function returned an error.
    #[error("{function}: {} ({code})", name(*code))]
    Jvmti {
        /// The function.
        function: &'static str,
        /// Its `jvmtiError`.
        code: i32,
    },
    /// A JNI call threw an exception (which was cleared) or returned null.
    #[error("{0}: the call threw or found nothing")]
    Jni(&'static str),
    /// This VM is not supported by the agent.
    #[error("{0}")]
    OtherVm(&'static str),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The JVMTI code, if it is one.
    #[must_use]
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Jvmti { code, .. } => Some(code),
            Self::Jni(_) | Self::OtherVm(_) => None,
        }
    }
}

/// The name of a JVMTI error without its prefix.
#[must_use]
pub fn name(code: i32) -> &'static str {
    match code {
        0 => "NONE",
        10 => "INVALID_THREAD",
        15 => "THREAD_NOT_ALIVE",
        20 => "INVALID_OBJECT",
        21 => "INVALID_CLASS",
        22 => "CLASS_NOT_PREPARED",
        23 => "INVALID_METHODID",
        31 => "NO_MORE_FRAMES",
        60 => "INVALID_CLASS_FORMAT",
        62 => "FAILS_VERIFICATION",
        64 => "UNSUPPORTED_REDEFINITION_SCHEMA_CHANGED",
        68 => "UNSUPPORTED_VERSION",
        73 => "UNSUPPORTED_OPERATION",
        79 => "UNMODIFIABLE_CLASS",
        98 => "NOT_AVAILABLE",
        99 => "MUST_POSSESS_CAPABILITY",
        100 => "NULL_POINTER",
        101 => "ABSENT_INFORMATION",
        103 => "ILLEGAL_ARGUMENT",
        104 => "NATIVE_METHOD",
        110 => "OUT_OF_MEMORY",
        112 => "WRONG_PHASE",
        113 => "INTERNAL",
        115 => "UNATTACHED_THREAD",
        _ => "error",
    }
}
