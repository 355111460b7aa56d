//! Files in a JVM's file system, which may be that of a container and contain files of an attacker. No link in it can
//! lead to files of this machine, no existing file is overwritten, and new files belong to the user of the JVM.

use crate::error::{Context, Result, refuse};
use crate::jvm::Jvm;
use crate::process;
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The file system of a JVM.
pub struct JvmFiles {
    root: OwnedFd,
    /// Whether it is the file system of this process.
    is_ours: bool,
    pid: u32,
    owner: (Uid, Gid),
}

/// A folder that only this user can access, in the JVM's temporary folder. It is removed with its content on drop, or,
/// if this process is killed before, when another one makes such a folder there.
pub struct PrivateFolder {
    parent: OwnedFd,
    name: String,
    /// It is locked until this process closes it or ends.
    folder: OwnedFd,
    /// Its path in the JVM's file system.
    pub path: String,
    /// Files in it whose names were requested.
    files: Vec<String>,
}

/// Opens a folder or another file without following a link in the last part of the path.
fn handle(folder: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(folder, name, flags, Mode::empty())
}

/// A path to the file of a descriptor.
fn name_of(descriptor: impl AsFd) -> PathBuf {
    PathBuf::from(format!(
        "/proc/thread-self/fd/{}",
        descriptor.as_fd().as_raw_fd()
    ))
}

/// Bytes of a random name.
const RANDOM: usize = 12;

fn random() -> Result<String> {
    let mut bytes = [0; RANDOM];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What the names of private folders begin with; [`random`] follows.
const PRIVATE: &str = ".tenure-";
/// A private folder that is older is locked, or was left.
const UNLOCKED: Duration = Duration::from_secs(60);

/// Opens a folder, not through a link, and locks it; `None` if another process has locked it.
fn locked(parent: &OwnedFd, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = fs::openat(parent, name, flags, Mode::empty()).ok()?;
    let locked = fs::flock(&folder, FlockOperation::NonBlockingLockExclusive);
    locked.is_ok().then_some(folder)
}

impl JvmFiles {
    /// The files of a JVM.
    ///
    /// # Errors
    /// This process may not access them.
    pub fn of(jvm: &Jvm) -> Result<JvmFiles> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::open(process::folder(jvm.pid).join("root"), flags, Mode::empty());
        let root = root.with_context(|| format!("the files of process {}", jvm.pid))?;
        Ok(JvmFiles {
            root,
            is_ours: !jvm.has_own_root(),
            pid: jvm.pid,
            owner: (Uid::from_raw(jvm.user.0), Gid::from_raw(jvm.user.1)),
        })
    }

    /// The files of this process, for JVMs that it starts.
    ///
    /// # Errors
    /// The root cannot be opened.
    pub fn of_this_process() -> Result<JvmFiles> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(JvmFiles {
            root: fs::open("/", flags, Mode::empty())?,
            is_ours: true,
            pid: std::process::id(),
            owner: (geteuid(), getegid()),
        })
    }

    /// Opens a path of the JVM. Links in it lead only to files of the JVM.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        loop {
            match fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
                // A file was renamed at the same time; the call must be repeated.
                Err(Errno::AGAIN) => {}
                // A kernel before 5.6, or a filter that does not allow the call.
                Err(Errno::NOSYS | Errno::PERM) if self.is_ours => {
                    return fs::open(path, flags, Mode::empty());
                }
                found => return found,
            }
        }
    }

    /// The counters file of the JVM with this process id in its own namespace.
    pub fn counters(&self, inner_pid: u32) -> Option<File> {
        self.counters_below("/tmp", inner_pid)
    }

    /// The counters file in one of the folders that the JVMs of each user have in this one.
    fn counters_below(&self, temporary: &str, inner_pid: u32) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = self.open(temporary, flags).ok()?;
        for entry in fs::Dir::read_from(&folder).ok()?.flatten() {
            let name = entry.file_name().to_str();
            let Some(name) = name.ok().filter(|name| name.starts_with("hsperfdata_")) else {
                continue;
            };
            let path = format!("{temporary}/{name}/{inner_pid}");
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            // A killed JVM of another user may have had the same number.
            if let Ok(file) = self.open(&path, flags)
                && let file = File::from(file)
                && let Ok(found) = file.metadata()
                && found.is_file()
                && found.uid() == self.owner.0.as_raw()
            {
                return Some(file);
            }
        }
        None
    }

    fn temporary(&self) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let found = self.open("/tmp", flags);
        found.with_context(|| format!("the temporary folder of process {}", self.pid))
    }

    /// Runs `body` as the user of the JVM, if this process may: a JVM accepts requests and connections only from its
    /// own user and group, and JDK 8 none from root. Another thread runs it, because the change applies to one thread.
    ///
    /// # Errors
    /// Those of `body`, or this process may not become that user.
    pub fn as_owner<T: Send>(&self, body: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let (uid, gid) = self.owner;
        if (geteuid(), getegid()) == (uid, gid) {
            return body();
        }
        let run = || {
            if geteuid().is_root() {
                set_thread_res_gid(None, gid, None).context("cannot take the group of the JVM")?;
                set_thread_res_uid(None, uid, None).context("cannot take the user of the JVM")?;
            }
            body()
        };
        std::thread::scope(|scope| match scope.spawn(run).join() {
            Ok(result) => result,
            Err(_) => refuse!("an internal fault"),
        })
    }

    /// Creates an empty file in the JVM's working folder or temporary folder, and removes it after `body`.
    ///
    /// # Errors
    /// Those of `body`, or neither folder is writable.
    pub fn with_trigger<T>(&self, name: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let working = fs::open(process::folder(self.pid).join("cwd"), flags, Mode::empty());
        let folders = [working.ok(), self.temporary().ok()];
        let create = |folder: &OwnedFd| {
            let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY;
            let create =
                || fs::openat(folder, name, new | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
            match create() {
                // It was left by a process that was killed, or by another user; this removes only the name.
                Err(Errno::EXIST) if fs::unlinkat(folder, name, AtFlags::empty()).is_ok() => {
                    create()
                }
                made => made,
            }
        };
        let mut folders = folders.into_iter().flatten();
        let Some(folder) = folders.find(|folder| create(folder).is_ok()) else {
            refuse!("cannot write where process {} looks for requests", self.pid);
        };
        let done = body();
        let _ = fs::unlinkat(&folder, name, AtFlags::empty());
        done
    }

    /// Connects to a socket in the temporary folder that the JVM itself has created and listens at; `None` if there is
    /// none.
    ///
    /// # Errors
    /// Another process or user created the socket.
    pub fn connect(&self, name: &str) -> Result<Option<UnixStream>> {
        let Ok(socket) = handle(self.temporary()?, name) else {
            return Ok(None);
        };
        let stat = fs::fstat(&socket)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket
            || stat.st_uid != self.owner.0.as_raw()
        {
            refuse!("/tmp/{name} was not made by process {}", self.pid);
        }
        let stream = match UnixStream::connect(name_of(&socket)) {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Ok(None),
            stream => {
                stream.with_context(|| format!("process {} does not take commands", self.pid))?
            }
        };
        self.check(&stream)?;
        Ok(Some(stream))
    }

    /// Checks that the JVM is at the other end.
    ///
    /// # Errors
    /// Another process is at the other end.
    pub fn check(&self, stream: &UnixStream) -> Result<()> {
        let other = socket_peercred(stream)?.pid.as_raw_nonzero().get();
        if u32::try_from(other) != Ok(self.pid) {
            refuse!("process {other} and not {} is at the socket", self.pid);
        }
        Ok(())
    }

    /// A new folder for this process and the JVM.
    ///
    /// # Errors
    /// The temporary folder is not writable.
    pub fn private_folder(&self) -> Result<PrivateFolder> {
        let parent = self.temporary()?;
        self.remove_left(&parent);
        let name = format!("{PRIVATE}{}", random()?);
        let cannot = || format!("cannot write to /tmp of process {}", self.pid);
        fs::mkdirat(&parent, &name, Mode::RWXU).with_context(cannot)?;
        let Some(folder) = locked(&parent, &name) else {
            refuse!("/tmp/{name} cannot be locked");
        };
        self.give(&folder)?;
        Ok(PrivateFolder {
            path: format!("/tmp/{name}"),
            files: Vec::new(),
            parent,
            name,
            folder,
        })
    }

    /// Removes private folders that killed processes have left, with the files in them.
    fn remove_left(&self, parent: &OwnedFd) {
        let names = |folder: &OwnedFd| {
            let found = std::fs::read_dir(name_of(folder)).into_iter().flatten();
            found.flatten().map(|entry| entry.file_name())
        };
        for name in names(parent) {
            let Some(name) = name.to_str().filter(|name| is_private(name)) else {
                continue;
            };
            let is_left = |folder: &OwnedFd| {
                fs::fstat(folder).is_ok_and(|stat| self.is_owned(&stat) && is_old(&stat))
            };
            let Some(folder) = locked(parent, name).filter(is_left) else {
                continue;
            };
            for file in names(&folder) {
                let _ = fs::unlinkat(&folder, file, AtFlags::empty());
            }
            let _ = fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }

    /// Makes the user of the JVM the owner of a file.
    fn give(&self, thing: &OwnedFd) -> Result<()> {
        let (uid, gid) = self.owner;
        if geteuid().is_root() {
            fs::chownat(thing, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)
                .context("cannot give a file to the user of the JVM")?;
        }
        Ok(())
    }

    /// Whether a file belongs to the user of the JVM and only that user can write it.
    fn is_owned(&self, stat: &Stat) -> bool {
        stat.st_uid == self.owner.0.as_raw() && stat.st_mode & 0o022 == 0
    }

    /// Copies a library into a folder named by its content; returns its path in the JVM. The copy is not removed,
    /// because the JVM maps it.
    ///
    /// # Errors
    /// It cannot be copied, or another file has the name.
    pub fn library(&self, file: &Path, name: &str) -> Result<String> {
        let content = std::fs::read(file).with_context(|| file.display().to_string())?;
        let folder = format!(
            ".tenure-agent-{}-{:016x}",
            self.owner.0.as_raw(),
            checksum(&content)
        );
        self.keep(&self.temporary()?, "/tmp", &folder, &[(name, &content)])?;
        Ok(format!("/tmp/{folder}/{name}"))
    }

    /// Stores files in a folder that belongs only to the owner: existing ones must have the same content, missing ones
    /// are written. `path` is the name of `parent` in messages.
    ///
    /// # Errors
    /// A file differs or cannot be written, or the folder does not belong to the owner.
    pub fn keep(
        &self,
        parent: &OwnedFd,
        path: &str,
        folder: &str,
        files: &[(&str, &[u8])],
    ) -> Result<()> {
        let cannot = || format!("cannot copy the agent to {path}/{folder}");
        match fs::mkdirat(parent, folder, Mode::RWXU) {
            Ok(()) => self.give(&handle(parent, folder)?)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error).with_context(cannot),
        }
        let handle = handle(parent, folder)?;
        let stat = fs::fstat(&handle)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory || !self.is_owned(&stat) {
            refuse!("{path}/{folder} belongs to another user");
        }
        for (name, content) in files {
            self.keep_file(&handle, name, content)
                .with_context(cannot)?;
        }
        Ok(())
    }

    fn keep_file(&self, folder: &OwnedFd, name: &str, content: &[u8]) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(there) = fs::openat(folder, name, flags, Mode::empty()) {
            use std::io::Read;
            let mut old = Vec::new();
            let limit = content.len() as u64 + 1;
            File::from(there).take(limit).read_to_end(&mut old)?;
            if old == content {
                return Ok(());
            }
            refuse!("{name} is another library; remove it");
        }
        // It is written under another name until it is complete, because another process may attach at the same time.
        let part = format!("{name}.{}", random()?);
        let new =
            OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        let made = fs::openat(folder, &part, new, Mode::RWXU)?;
        self.give(&made)?;
        {
            use std::io::Write;
            File::from(made).write_all(content)?;
        }
        fs::renameat(folder, &part, folder, name)?;
        Ok(())
    }
}

fn is_private(name: &str) -> bool {
    let number = name.strip_prefix(PRIVATE).unwrap_or_default();
    number.len() == 2 * RANDOM && number.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a folder has not been changed for a while.
fn is_old(stat: &Stat) -> bool {
    let changed = UNIX_EPOCH + Duration::from_secs(stat.st_mtime.unsigned_abs());
    let age = SystemTime::now().duration_since(changed);
    age.is_ok_and(|age| age > UNLOCKED)
}

/// Distinguishes versions of a library. It is not for protection, because the content itself is compared.
pub fn checksum(content: &[u8]) -> u64 {
    const PRIME: u64 = 0x100_0000_01b3;
    let start = 0xcbf2_9ce4_8422_2325;
    content.iter().fold(start, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

impl PrivateFolder {
    /// The path of a file in this folder, as the JVM sees it.
    pub fn file(&mut self, name: &str) -> String {
        self.files.push(name.to_owned());
        format!("{}/{name}", self.path)
    }

    /// Listens at a socket in it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn listen(&mut self, inside: &JvmFiles, name: &str) -> Result<UnixListener> {
        let listener = UnixListener::bind(name_of(&self.folder).join(name))
            .with_context(|| format!("no socket in {}", self.path))?;
        self.files.push(name.to_owned());
        inside.give(&handle(&self.folder, name)?)?;
        Ok(listener)
    }

    /// Opens a file that the JVM has written in it.
    ///
    /// # Errors
    /// The file does not exist, or it is not an ordinary file.
    pub fn open(&self, name: &str) -> Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::openat(&self.folder, name, flags, Mode::empty());
        let file = File::from(file.with_context(|| format!("{}/{name}", self.path))?);
        if !file.metadata()?.is_file() {
            refuse!("{}/{name} is no file", self.path);
        }
        Ok(file)
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::unlinkat(&self.folder, file, AtFlags::empty());
        }
        let _ = fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Timespec, Timestamps};

    /// Makes the last change of a folder one of yesterday.
    fn age(folder: &OwnedFd) {
        let yesterday = SystemTime::now() - Duration::from_secs(86_400);
        let since = yesterday.duration_since(UNIX_EPOCH).expect("a time");
        let time = Timespec {
            tv_sec: since.as_secs() as i64,
            tv_nsec: 0,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        fs::futimens(folder, &times).expect("changed");
    }

    /// A folder with a file, as a killed process leaves it.
    fn left(parent: &OwnedFd) -> (String, OwnedFd) {
        let name = format!("{PRIVATE}{}", random().expect("a number"));
        fs::mkdirat(parent, &name, Mode::RWXU).expect("made");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = fs::openat(parent, &name, flags, Mode::empty()).expect("opened");
        let flags = OFlags::CREATE | OFlags::WRONLY;
        fs::openat(&folder, "heap.hprof", flags, Mode::RUSR).expect("made");
        (format!("/tmp/{name}"), folder)
    }

    #[test]
    fn counters_are_found_beside_any_files() {
        use std::os::unix::ffi::OsStrExt;
        let temporary = tempfile::tempdir().expect("a folder");
        // Some of these names, which are no UTF-8, come before that of the folder.
        for number in 1..20 {
            let name = [0xff, b'a' + number];
            let name = std::ffi::OsStr::from_bytes(&name);
            std::fs::write(temporary.path().join(name), "").expect("written");
        }
        let folder = temporary.path().join("hsperfdata_me");
        std::fs::create_dir(&folder).expect("made");
        std::fs::write(folder.join("7"), "counters").expect("written");
        let path = temporary.path().to_str().expect("text");
        let mut files = JvmFiles::of_this_process().expect("files");
        assert!(files.counters_below(path, 7).is_some());
        assert!(files.counters_below(path, 8).is_none());
        files.owner.0 = Uid::from_raw(files.owner.0.as_raw() + 1);
        assert!(files.counters_below(path, 7).is_none(), "of another user");
    }

    #[test]
    fn folders_that_were_left_are_removed() {
        let files = JvmFiles::of_this_process().expect("files");
        let parent = files.temporary().expect("a folder");
        let (old, folder) = left(&parent);
        age(&folder);
        let (new, _) = left(&parent);
        let used = files.private_folder().expect("a folder");
        age(&used.folder);
        let next = files.private_folder().expect("a folder");
        let is_there = |path: &str| Path::new(path).exists();
        assert!(!is_there(&old));
        assert!(is_there(&new), "it may not be locked yet");
        assert!(is_there(&used.path) && is_there(&next.path));
        drop((used, next));
        std::fs::remove_dir_all(new).expect("removed");
    }
}
