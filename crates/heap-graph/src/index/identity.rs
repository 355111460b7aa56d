//! Which dump an index belongs to.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Size, time of the last change, inode, and a hash of samples of the content and of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(pub(crate) [u64; 4]);

/// Bytes at either end of the file that are part of its identity.
const EDGE: u64 = 1 << 16;
/// Samples between the ends, and the bytes of each. They notice a file whose middle was filled
/// later although size and times are the same, as some downloads and restored copies have them.
const SAMPLES: u64 = 32;
const SAMPLE: u64 = 1 << 12;

impl Identity {
    /// Of a file as it is on disk (packed or not), and a number that stands for the options.
    ///
    /// # Errors
    /// If the path is not a regular file (a pipe can be read only once), or cannot be read.
    pub(crate) fn of_file(path: &Path, options: u64) -> io::Result<Identity> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut file = File::open(path)?;
        let about = file.metadata()?;
        let len = about.len();
        let mut words = vec![options];
        let mut sample = |from: u64, count: u64| -> io::Result<()> {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(from))?;
            (&mut file).take(count).read_to_end(&mut bytes)?;
            words.push(hash(&bytes));
            Ok(())
        };
        sample(0, EDGE)?;
        sample(len.saturating_sub(EDGE), EDGE)?;
        if len > 2 * EDGE {
            for n in 1..=SAMPLES {
                let from = u128::from(len) * u128::from(n) / u128::from(SAMPLES + 1);
                sample(from as u64, SAMPLE)?;
            }
        }
        let content = hash(crate::raw::bytes_of(&words));
        Ok(Identity([len, changed(&about), inode(&about), content]))
    }

    /// Of the same file, with one more number that stands for options.
    pub(crate) fn with(self, option: u64) -> Identity {
        let Identity([len, changed, inode, content]) = self;
        let content = hash(crate::raw::bytes_of(&[content, option]));
        Identity([len, changed, inode, content])
    }
}

/// Nanoseconds since 1970 of the last change of the content; 0 where the system does not report it.
fn changed(about: &Metadata) -> u64 {
    let time = about.modified().ok();
    let since = time.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |d| d.as_nanos() as u64)
}

#[cfg(unix)]
fn inode(about: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(about)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

/// A 64-bit hash of bytes, the same on every machine.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    for chunk in bytes.chunks(8) {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hasher.write_u64(u64::from_le_bytes(word));
    }
    hasher.write_u64(bytes.len() as u64);
    hasher.finish()
}
