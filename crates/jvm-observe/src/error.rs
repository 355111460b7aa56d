//! Why a JVM could not be observed.

use std::fmt::Display;
use std::io;
use thiserror::Error;

/// Why a JVM could not be observed.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// There is no such JVM; the message lists the running ones.
    #[error("{0}")]
    NotFound(String),
    /// Several JVMs match.
    #[error("{0}")]
    Ambiguous(String),
    /// The JVM refused, or another process or file is in its place.
    #[error("{0}")]
    Refused(String),
    /// The system refused; the message states the step.
    #[error("{during}")]
    During {
        /// The step.
        during: String,
        /// The reason.
        source: Box<ObserveError>,
    },
    /// The system refused.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, ObserveError>;

#[cfg(target_os = "linux")]
impl From<rustix::io::Errno> for ObserveError {
    fn from(errno: rustix::io::Errno) -> ObserveError {
        ObserveError::System(errno.into())
    }
}

#[cfg(target_os = "linux")]
impl From<getrandom::Error> for ObserveError {
    fn from(error: getrandom::Error) -> ObserveError {
        ObserveError::System(io::Error::other(error))
    }
}

/// Adds the failed step to an error.
pub(crate) trait Context<T> {
    /// With an existing message.
    fn context(self, during: impl Display) -> Result<T>;
    /// With a message that is only built for an error.
    fn with_context<D: Display>(self, during: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<ObserveError>> Context<T> for std::result::Result<T, E> {
    fn context(self, during: impl Display) -> Result<T> {
        self.with_context(|| during)
    }

    fn with_context<D: Display>(self, during: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| ObserveError::During {
            during: during().to_string(),
            source: Box::new(error.into()),
        })
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, during: impl Display) -> Result<T> {
        self.with_context(|| during)
    }

    fn with_context<D: Display>(self, during: impl FnOnce() -> D) -> Result<T> {
        self.ok_or_else(|| ObserveError::Refused(during().to_string()))
    }
}

/// Returns a refusal with a formatted message.
macro_rules! refuse {
    ($($message:tt)*) => {
        return Err($crate::error::ObserveError::Refused(format!($($message)*)))
    };
}
pub(crate) use refuse;
