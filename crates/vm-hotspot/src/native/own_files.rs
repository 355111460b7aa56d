//! The files in which the system shows this process.

use std::path::{Path, PathBuf};

/// A file such as `maps`, in the folder of the current thread: the one in the folder of the process is empty or cannot
/// be opened when the main thread has ended, as that of a launcher may.
#[must_use]
pub fn own_file(name: &str) -> PathBuf {
    // Since Linux 3.17.
    let of_thread = Path::new("/proc/thread-self");
    match of_thread.exists() {
        true => of_thread.join(name),
        false => Path::new("/proc/self").join(name),
    }
}
