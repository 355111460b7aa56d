//! The socket through which an agent on this machine connects to this process. It is in the file system, so that agents
//! in other network namespaces reach it, in a folder that only the user of the JVM can enter. The system reports which
//! process connects.

use anyhow::{Context, Result};
use jvm_observe::files::{JvmFiles, PrivateFolder};
use jvm_observe::jvm::{self, Jvm};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

const SOCKET: &str = "agent";

/// The processes that may connect.
enum Guests {
    /// This JVM.
    Jvm(JvmFiles),
    /// JVMs of this user, and those that this process has started.
    Family,
}

/// A listening socket, which is removed when this is dropped.
pub(crate) struct Door {
    listener: UnixListener,
    guests: Guests,
    folder: PrivateFolder,
}

impl Door {
    /// For one running JVM.
    pub(crate) fn to(jvm: &Jvm) -> Result<Door> {
        let inside = JvmFiles::of(jvm)?;
        let mut folder = inside.private_folder()?;
        let listener = folder.listen(&inside, SOCKET)?;
        Door::new(listener, Guests::Jvm(inside), folder)
    }

    /// For JVMs that this process is about to start.
    pub(crate) fn to_family() -> Result<Door> {
        let inside = JvmFiles::of_this_process()?;
        let mut folder = inside.private_folder()?;
        let listener = folder.listen(&inside, SOCKET)?;
        if geteuid().is_root() {
            // What it starts may take another user.
            let open = |path: &str, mode| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            };
            open(&folder.path, 0o711)?;
            open(&format!("{}/{SOCKET}", folder.path), 0o666)?;
        }
        Door::new(listener, Guests::Family, folder)
    }

    fn new(listener: UnixListener, guests: Guests, folder: PrivateFolder) -> Result<Door> {
        listener.set_nonblocking(true)?;
        Ok(Door {
            listener,
            guests,
            folder,
        })
    }

    /// The value for `net=` of the agent.
    pub(crate) fn address(&self) -> String {
        format!("unix:{}/{SOCKET}", self.folder.path)
    }

    /// The next connection of a process that may connect. It is a Unix socket, although its type is `TcpStream`: the
    /// calls that are used here work with any kind of socket.
    pub(crate) fn next(&self) -> Result<Option<TcpStream>> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error).context("no connection"),
            };
            if self.may_come_in(&stream) {
                stream.set_nonblocking(false)?;
                return Ok(Some(TcpStream::from(OwnedFd::from(stream))));
            }
        }
    }

    fn may_come_in(&self, stream: &UnixStream) -> bool {
        match &self.guests {
            Guests::Jvm(inside) => inside.check(stream).is_ok(),
            Guests::Family => socket_peercred(stream).is_ok_and(|other| {
                let pid = other.pid.as_raw_nonzero().get().unsigned_abs();
                other.uid == geteuid() || jvm::descends(pid, std::process::id())
            }),
        }
    }
}
