//! A socket or a pipe whose reader may stop reading.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;

/// Where the bytes go.
pub(crate) enum Stream {
    Socket(TcpStream),
    /// A pipe with a name, which is written without waiting.
    Pipe(File),
}

impl Stream {
    /// A pipe that was opened for writing.
    pub(crate) fn of_pipe(pipe: File) -> io::Result<Stream> {
        let descriptor = pipe.as_raw_fd();
        // SAFETY: changes the flags of an open descriptor.
        let done = unsafe {
            let flags = libc::fcntl(descriptor, libc::F_GETFL);
            libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        match done {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(Stream::Pipe(pipe)),
        }
    }

    /// Who reads at the other end, for messages.
    pub(crate) fn reader(&self) -> &'static str {
        match self {
            Stream::Socket(_) => "collector",
            Stream::Pipe(_) => "reader of the pipe",
        }
    }

    /// Writes some bytes. The error `Interrupted` is no failure: a reader of a pipe takes none at the moment.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        const STEP: i32 = 100;
        match self {
            Stream::Socket(socket) => (&mut &*socket).write(bytes),
            Stream::Pipe(pipe) => match (&*pipe).write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut waited = libc::pollfd {
                        fd: pipe.as_raw_fd(),
                        events: libc::POLLOUT,
                        revents: 0,
                    };
                    // SAFETY: one live structure.
                    unsafe { libc::poll(&raw mut waited, 1, STEP) };
                    Err(ErrorKind::Interrupted.into())
                }
                written => written,
            },
        }
    }

    /// Nothing more is written; a collector may still send commands.
    pub(crate) fn end(&self) {
        if let Stream::Socket(socket) = self {
            let _ = socket.shutdown(Shutdown::Write);
        }
    }

    /// Wakes the threads that use it.
    pub(crate) fn abandon(&self) {
        if let Stream::Socket(socket) = self {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}
