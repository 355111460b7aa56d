//! SQLite's temporary files: unlinked files in the folder for those of the heap, with a limit for their bytes. A query
//! opens no other file.

use crate::shared::Env;
use heap_graph::HeapError;
use rusqlite::ffi::{
    SQLITE_CANTOPEN, SQLITE_FULL, SQLITE_IOERR_FSTAT, SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ,
    SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE, SQLITE_NOTFOUND, SQLITE_OK, sqlite3_file,
    sqlite3_filename, sqlite3_hard_heap_limit64, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register, sqlite3_vfs_unregister,
};
use rusqlite::{Connection, Error, OpenFlags, Result};
use std::ffi::{CString, c_int, c_void};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of memory that SQLite may use for all queries of the process: it has no limit for one of them.
pub(crate) const SQLITE_MEMORY: i64 = 1 << 30;

/// An empty database of its own, and its files.
pub(crate) struct Database {
    /// Dropped before what it refers to.
    connection: Connection,
    _files: Files,
}

impl Deref for Database {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Database {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Database {
    /// A database in memory, whose temporary files are those of a query.
    pub(crate) fn open(env: &Env) -> Result<Database> {
        let files = Files::register(env)?;
        let flags = OpenFlags::default();
        let connection =
            Connection::open_with_flags_and_vfs(":memory:", flags, files.name.as_c_str())?;
        Ok(Database {
            connection,
            _files: files,
        })
    }
}

/// A file system of SQLite for one query.
struct Files {
    name: CString,
    /// From a box; `pAppData` is the query, from a box as well.
    system: *mut sqlite3_vfs,
}

impl Files {
    fn register(env: &Env) -> Result<Files> {
        static REGISTERED: AtomicU64 = AtomicU64::new(0);
        let number = REGISTERED.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("query-{number}"))?;
        // SAFETY: SQLite is initialised by the first call; the default system lives as long as the process. The copy
        // has a name and a position in the list of its own, and both boxes live until it is unregistered.
        unsafe {
            sqlite3_hard_heap_limit64(SQLITE_MEMORY);
            let default = sqlite3_vfs_find(ptr::null());
            if default.is_null() {
                return Err(Error::InvalidQuery);
            }
            let system = Box::into_raw(Box::new(sqlite3_vfs {
                szOsFile: size_of::<TemporaryFile>() as c_int,
                pNext: ptr::null_mut(),
                zName: name.as_ptr(),
                pAppData: Box::into_raw(Box::new(env.clone())).cast(),
                xOpen: Some(open),
                ..*default
            }));
            sqlite3_vfs_register(system, 0);
            Ok(Files { name, system })
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // SAFETY: both are from boxes, see `register`, and the connection that used them is closed.
        unsafe {
            sqlite3_vfs_unregister(self.system);
            let system = Box::from_raw(self.system);
            drop(Box::from_raw(system.pAppData.cast::<Env>()));
        }
    }
}

/// A file as SQLite knows it.
#[repr(C)]
struct TemporaryFile {
    /// SQLite's part. Must be first.
    base: sqlite3_file,
    /// From a box while the file is open.
    opened: *mut Opened,
}

struct Opened {
    file: File,
    bytes: u64,
    env: Env,
}

impl Opened {
    /// Reads what is there; zeros follow it.
    fn read(&self, mut into: &mut [u8], at: u64) -> io::Result<c_int> {
        (&self.file).seek(SeekFrom::Start(at))?;
        while !into.is_empty() {
            match (&self.file).read(into) {
                Ok(0) => {
                    into.fill(0);
                    return Ok(SQLITE_IOERR_SHORT_READ);
                }
                Ok(n) => into = &mut into[n..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(SQLITE_OK)
    }

    fn write(&mut self, from: &[u8], at: u64) -> io::Result<c_int> {
        let end = at + from.len() as u64;
        if end > self.bytes {
            if !self.env.stop.grow_files(end - self.bytes) {
                return Ok(SQLITE_FULL);
            }
            self.bytes = end;
        }
        (&self.file).seek(SeekFrom::Start(at))?;
        (&self.file).write_all(from)?;
        Ok(SQLITE_OK)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<c_int> {
        self.file.set_len(bytes)?;
        self.env.stop.shrink_files(self.bytes.saturating_sub(bytes));
        self.bytes = bytes;
        Ok(SQLITE_OK)
    }
}

/// The error is kept, of which SQLite passes on only a code.
fn or_fault(env: &Env, done: io::Result<c_int>, code: c_int) -> c_int {
    done.unwrap_or_else(|error| {
        let folder = env.heap.temporary_folder();
        env.stop.keep_fault(HeapError::Io {
            what: format!("temporary files of the query in {}", folder.display()),
            error,
        });
        code
    })
}

unsafe extern "C" fn open(
    system: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes the registered system, `szOsFile` bytes for the file, and a place for flags or none.
    unsafe {
        // A file without methods is not closed.
        (*file).pMethods = ptr::null();
        let env = &*(*system).pAppData.cast::<Env>();
        if !name.is_null() {
            return SQLITE_CANTOPEN;
        }
        let made = tempfile::tempfile_in(env.heap.temporary_folder());
        let done = made.map(|made| {
            let opened = Box::new(Opened {
                file: made,
                bytes: 0,
                env: env.clone(),
            });
            (*file.cast::<TemporaryFile>()).opened = Box::into_raw(opened);
            (*file).pMethods = &raw const METHODS;
            if !out_flags.is_null() {
                *out_flags = flags;
            }
            SQLITE_OK
        });
        or_fault(env, done, SQLITE_CANTOPEN)
    }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(lock),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(lock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(none),
    xDeviceCharacteristics: Some(none),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// The open file behind SQLite's.
///
/// # Safety
/// `file` was opened by `open`, is not closed yet, and is used by one thread at a time.
unsafe fn opened<'a>(file: *mut sqlite3_file) -> &'a mut Opened {
    // SAFETY: `open` sets it.
    unsafe { &mut *(*file.cast::<TemporaryFile>()).opened }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes each file that `open` has opened once.
    let opened = unsafe { Box::from_raw((*file.cast::<TemporaryFile>()).opened) };
    opened.env.stop.shrink_files(opened.bytes);
    SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    length: c_int,
    at: i64,
) -> c_int {
    // SAFETY: SQLite passes an open file and memory of this length.
    let (file, into) = unsafe {
        let into = std::slice::from_raw_parts_mut(into.cast::<u8>(), length as usize);
        (opened(file), into)
    };
    // A merge of sorted files is one step of SQLite's machine.
    if file.env.stop.reason().is_some() {
        return SQLITE_IOERR_READ;
    }
    or_fault(&file.env, file.read(into, at as u64), SQLITE_IOERR_READ)
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    length: c_int,
    at: i64,
) -> c_int {
    // SAFETY: SQLite passes an open file and memory of this length.
    let (file, from) = unsafe {
        let from = std::slice::from_raw_parts(from.cast::<u8>(), length as usize);
        (opened(file), from)
    };
    if file.env.stop.reason().is_some() {
        return SQLITE_IOERR_WRITE;
    }
    let done = file.write(from, at as u64);
    or_fault(&file.env, done, SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, bytes: i64) -> c_int {
    // SAFETY: SQLite passes an open file.
    let file = unsafe { opened(file) };
    let done = file.truncate(bytes as u64);
    or_fault(&file.env, done, SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, bytes: *mut i64) -> c_int {
    // SAFETY: SQLite passes an open file and a place for the number.
    unsafe {
        let Ok(known) = i64::try_from(opened(file).bytes) else {
            return SQLITE_IOERR_FSTAT;
        };
        *bytes = known;
    }
    SQLITE_OK
}

/// Also for xSync: no one else knows the file, and it does not outlive the process.
unsafe extern "C" fn lock(_: *mut sqlite3_file, _: c_int) -> c_int {
    SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(_: *mut sqlite3_file, locked: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *locked = 0 };
    SQLITE_OK
}

unsafe extern "C" fn file_control(_: *mut sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    SQLITE_NOTFOUND
}

/// The default sector size, and no characteristics.
unsafe extern "C" fn none(_: *mut sqlite3_file) -> c_int {
    0
}
