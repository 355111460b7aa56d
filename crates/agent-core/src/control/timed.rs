//! Reads with one deadline for all of them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// A stream whose reads must all be over at a time, however little each of them returns. Its read timeout changes.
#[derive(Debug)]
pub struct Timed<'a> {
    /// The stream.
    pub stream: &'a TcpStream,
    /// The time.
    pub until: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Duration;

    #[test]
    fn all_reads_have_one_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut one = TcpStream::connect(listener.local_addr().expect("it")).expect("connected");
        let (stream, _) = listener.accept().expect("accepted");
        one.write_all(b"ab").expect("sent");
        let mut timed = Timed {
            stream: &stream,
            until: Instant::now() + Duration::from_secs(600),
        };
        assert_eq!(timed.read(&mut [0]).expect("a byte"), 1);
        // The next byte is there, but the time is over.
        timed.until = Instant::now();
        let late = timed.read(&mut [0]).expect_err("too late");
        assert_eq!(late.kind(), ErrorKind::TimedOut);
    }
}
