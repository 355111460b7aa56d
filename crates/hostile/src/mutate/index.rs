//! Damaged index files of a good dump.

use std::path::{Path, PathBuf};

use super::random::Random;
use crate::files;
use heap_graph::{Control, Heap, Options};

/// A good dump on disk with its index, both kept as they were.
#[derive(Debug)]
pub struct Indexed {
    /// The dump.
    pub file: PathBuf,
    cache: PathBuf,
    good: Vec<(PathBuf, Vec<u8>)>,
}

impl Indexed {
    /// Writes the dump into a folder and lets it be indexed.
    ///
    /// # Panics
    /// When that cannot be done.
    pub fn new(folder: &Path, name: &str, data: &[u8]) -> Indexed {
        let file = folder.join(format!("{name}.hprof"));
        std::fs::write(&file, data).expect("writing the dump");
        let cache = folder.join(format!("{name}.cache"));
        let mut one = Indexed {
            file,
            cache,
            good: Vec::new(),
        };
        one.open().expect("a good dump");
        let read = |path: PathBuf| {
            let bytes = std::fs::read(&path).expect("the index");
            (path, bytes)
        };
        one.good = files(&one.cache).into_iter().map(read).collect();
        assert!(!one.good.is_empty(), "no index was written");
        one
    }

    /// Opens the dump with whatever index there is.
    ///
    /// # Errors
    /// What opening it says.
    pub fn open(&self) -> Result<Heap, heap_graph::HeapError> {
        let options = Options {
            cache_dir: Some(self.cache.clone()),
            threads: 1,
            ..Options::default()
        };
        let heap = Heap::open(&self.file, &options, &Control::quiet())?;
        // The file with the referrers is made when they are first requested.
        if self.good.is_empty()
            && let Some((object, _)) = heap.all_ids().next()
        {
            let _ = heap.inbound(object);
        }
        Ok(heap)
    }

    /// Puts the good index back, damaged; says how.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn damage(&self, r: &mut Random) -> &'static str {
        let chosen = r.below(self.good.len());
        let mut printed = "";
        for (n, (path, good)) in self.good.iter().enumerate() {
            let mut bytes = good.clone();
            if n == chosen {
                printed = damaged(&mut bytes, r);
            }
            std::fs::write(path, bytes).expect("writing the index");
        }
        printed
    }
}

fn damaged(bytes: &mut Vec<u8>, r: &mut Random) -> &'static str {
    let length = bytes.len();
    // Most of what can be believed or not is at the beginning.
    let near = if r.one_in(2) { length.min(600) } else { length };
    match r.below(7) {
        0 => {
            bytes.truncate(r.below(length));
            "index cut"
        }
        1 => {
            for _ in 0..1 + r.below(4) {
                let at = r.below(near);
                bytes[at] ^= 1 << r.below(8);
            }
            "index bits"
        }
        2 => {
            let at = r.below(near) / 8 * 8;
            let word = *r.of(&[0, 1, 7, 8, length as u64, u64::MAX / 2, u64::MAX]);
            for (to, byte) in bytes[at..].iter_mut().zip(word.to_le_bytes()) {
                *to = byte;
            }
            "index word"
        }
        3 => {
            let at = r.below(length) / 64 * 64;
            bytes[at..].iter_mut().take(4096).for_each(|b| *b = 0);
            "index page of zeros"
        }
        4 => {
            let (from, to) = (r.below(length), r.below(length));
            let copy: Vec<u8> = bytes[from..].iter().copied().take(64).collect();
            for (to, byte) in bytes[to..].iter_mut().zip(copy) {
                *to = byte;
            }
            "index copied within"
        }
        5 => {
            let more = r.below(9000);
            bytes.extend((0..more).map(|n| n as u8));
            "index longer"
        }
        _ => {
            let at = r.below(near);
            bytes[at..]
                .iter_mut()
                .take(16)
                .for_each(|b| *b = r.word() as u8);
            "index noise"
        }
    }
}
