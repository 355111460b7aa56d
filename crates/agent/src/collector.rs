//! Connects to the collector that receives the recording, and checks that it is the right one.
//!
//! A collector on this machine listens at a socket in the file system, which can be reached from other network
//! namespaces, too; the system returns its user. A collector on another machine must know a secret.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use agent_core::control::secret::{Nonce, Secret, Side};
use agent_core::control::timed::Timed;

use crate::process;

/// Connects to a collector of this user or of root that listens at `path`. The returned `TcpStream` is a stream of
/// another address family; the methods of `TcpStream` that are used here work for every family.
pub(crate) fn connect(path: &Path) -> io::Result<TcpStream> {
    let stream = UnixStream::connect(path)?;
    let own = process::user();
    let other = user_of(&stream)?;
    if other != own && other != 0 {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!("it belongs to user {other}, and this program to user {own}"),
        ));
    }
    Ok(TcpStream::from(OwnedFd::from(stream)))
}

/// The user of the process that created the socket at the other end.
fn user_of(stream: &UnixStream) -> io::Result<u32> {
    let mut found = MaybeUninit::<libc::ucred>::zeroed();
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and both pointers are to live locals of that size.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            found.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed is valid, and the call has filled it.
    Ok(unsafe { found.assume_init() }.uid)
}

/// Reads the secret from a file.
///
/// # Errors
/// A message of one line: the file cannot be read, or its content is too short.
pub(crate) fn secret(file: &str) -> Result<Secret, String> {
    let content = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    Secret::of(&content).ok_or_else(|| format!("{file} has less than 16 bytes"))
}

/// Performs the handshake in which both sides prove that they know the secret, within `patience`.
pub(crate) fn meet(stream: &TcpStream, secret: &Secret, patience: Duration) -> io::Result<()> {
    let mut own = Nonce::default();
    File::open("/dev/urandom")?.read_exact(&mut own)?;
    let until = Instant::now() + patience;
    let met = secret.meet(Side::Agent, &own, Timed { stream, until });
    stream.set_read_timeout(None)?;
    met.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::UnexpectedEof => io::Error::new(
            ErrorKind::PermissionDenied,
            "the collector was started without --secret-file",
        ),
        _ => error,
    })
}
