//! Connections that must begin with a request. Every user of this machine can connect without the token, and each
//! connection takes a descriptor of this process, so one that only waits is closed.

use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// How long the first request of a connection may take to arrive, without its body.
const PATIENCE: Duration = Duration::from_secs(10);

/// A listener whose connections must begin with a request.
pub(crate) struct Arrivals(pub(crate) TcpListener);

impl Listener for Arrivals {
    type Io = Arriving<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        (Arriving::new(stream, PATIENCE), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A connection; reading fails if its first request has not arrived in time.
pub(crate) struct Arriving<S> {
    stream: S,
    /// `None` after the first request.
    first: Option<First>,
}

/// The part of the first request that has arrived.
struct First {
    until: Pin<Box<Sleep>>,
    /// Whether there was any line, and whether the present one is empty.
    has_line: bool,
    is_blank: bool,
}

impl First {
    /// Takes the next bytes; true when they end the head of the request, which an empty line does.
    fn ends(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            match byte {
                b'\r' => {}
                b'\n' if self.has_line && self.is_blank => return true,
                b'\n' => self.is_blank = true,
                _ => (self.has_line, self.is_blank) = (true, false),
            }
        }
        false
    }
}

impl<S> Arriving<S> {
    fn new(stream: S, patience: Duration) -> Arriving<S> {
        let first = First {
            until: Box::pin(sleep(patience)),
            has_line: false,
            is_blank: true,
        };
        Arriving {
            stream,
            first: Some(first),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Arriving<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let known = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if let Some(first) = &mut this.first {
            if first.ends(&buffer.filled()[known..]) {
                this.first = None;
            } else if read.is_pending() {
                let over = first.until.as_mut().poll(context);
                return over.map(|()| Err(io::ErrorKind::TimedOut.into()));
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Arriving<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// The first two results of reading a connection on which these bytes are sent, and whether its request is complete.
    async fn reads(sent: &[u8], patience: Duration) -> ([io::Result<usize>; 2], bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let mut other = std::net::TcpStream::connect(address).expect("connected");
        let (stream, _) = listener.accept().await.expect("accepted");
        let mut stream = Arriving::new(stream, patience);
        other.write_all(sent).expect("sent");
        let first = read(&mut stream).await;
        let is_complete = stream.first.is_none();
        let mut other = Some(other);
        if is_complete {
            // Otherwise nothing would end the second read.
            other.take();
        }
        ([first, read(&mut stream).await], is_complete)
    }

    async fn read(stream: &mut Arriving<TcpStream>) -> io::Result<usize> {
        let mut space = [0; 64];
        std::future::poll_fn(|context| {
            let mut buffer = ReadBuf::new(&mut space);
            let read = Pin::new(&mut *stream).poll_read(context, &mut buffer);
            read.map_ok(|()| buffer.filled().len())
        })
        .await
    }

    #[tokio::test]
    async fn a_connection_without_a_request_ends_and_one_with_a_request_waits() {
        let short = Duration::from_millis(1);
        for sent in [&b"GET / HT"[..], b"\r\n\r\n\r\n", b"GET /\r\nhost: x\r\n"] {
            let ([first, second], is_complete) = reads(sent, short).await;
            // The time may be over before the first bytes are there.
            let results = [first, second].map(|read| read.map_err(|error| error.kind()));
            let text = String::from_utf8_lossy(sent);
            assert!(results.contains(&Err(io::ErrorKind::TimedOut)), "{text}");
            assert!(!is_complete, "{text}");
        }
        let long = Duration::from_secs(600);
        let sent = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        let ([first, second], is_complete) = reads(sent, long).await;
        assert!(is_complete);
        assert_eq!(first.expect("the request"), sent.len());
        assert_eq!(second.expect("the end"), 0);
    }
}
