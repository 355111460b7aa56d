//! Connects to the collector that receives the recording, and checks that it is the right one.
//!
//! A collector on this machine listens at a socket in the file system, which can be reached from other network
//! namespaces, too; the system returns its user. A collector on another machine must know a secret.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use agent_core::control::secret::{Nonce, Secret, Side};

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

/// A stream that is read until a time and not longer, however few bytes come at a time.
struct Hurried<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl Read for Hurried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Performs the handshake in which both sides prove that they know the secret, within `patience`.
pub(crate) fn meet(stream: &TcpStream, secret: &Secret, patience: Duration) -> io::Result<()> {
    let mut own = Nonce::default();
    File::open("/dev/urandom")?.read_exact(&mut own)?;
    let end = Instant::now() + patience;
    let met = secret.meet(Side::Agent, &own, Hurried { stream, end });
    stream.set_read_timeout(None)?;
    met.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::UnexpectedEof => io::Error::new(
            ErrorKind::PermissionDenied,
            "the collector was started without --secret-file",
        ),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::control::secret::MAGIC;
    use std::net::TcpListener;

    #[test]
    fn a_collector_that_answers_byte_by_byte_is_refused_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let answer = [&MAGIC[..], &[0; 64]].concat();
        let sent = std::thread::spawn(move || {
            let mut agent = listener.accept().expect("the agent").0;
            let mut sent = 0;
            for byte in &answer {
                if agent.write_all(&[*byte]).is_err() {
                    break;
                }
                sent += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            sent == answer.len()
        });
        let secret = Secret::of(&[7; 32]).expect("long enough");
        let met = meet(&stream, &secret, Duration::from_millis(100));
        drop(stream);
        assert!(met.is_err());
        assert!(
            !sent.join().expect("sent"),
            "it has waited for the whole answer"
        );
    }
}
