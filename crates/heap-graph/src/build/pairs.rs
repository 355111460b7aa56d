//! Cross and back edges of the depth-first search, kept by target until the reverse pass reads them: a byte stream for
//! each bucket of 65,536 targets. A pair takes two bytes for the target and two or three for the source, because
//! sources are in visiting order. They are not read before the search has ended, so those of a large heap go to an
//! unlinked temporary file.

use super::cell::Cell;
use super::varint::{put, take, unzigzag, zigzag};
use crate::raw::Budget;
use hprof::source::{read_exact_at, write_all_at};
use std::fs::File;
use std::io;

const BUCKET_BITS: u32 = 16;
/// Length of a chunk. A stream grows by chunks, without copying or doubling.
const CHUNK: usize = 1 << 13;
/// Longest encoded pair.
const PAIR: usize = 12;

/// A full chunk, which no further pair fits into.
#[derive(Debug)]
enum Full {
    Memory(Box<[u8]>),
    /// Number of the chunk in the file.
    File(u64),
}

#[derive(Debug, Default)]
struct Bucket {
    /// The full chunks with their used bytes.
    full: Vec<(Full, u16)>,
    /// The chunk that is being filled; empty before the first pair.
    last: Box<[u8]>,
    used: usize,
    previous: u64,
    len: u64,
}

/// The edges by bucket of target.
#[derive(Debug)]
pub(crate) struct Pairs {
    buckets: Vec<Bucket>,
    pub(crate) len: u64,
    /// The file of a large heap, and how many chunks it has.
    file: Option<(File, u64)>,
    /// The first failure to write a chunk.
    failed: io::Result<()>,
}

impl Pairs {
    /// For targets below `n`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub(crate) fn new(n: u64, budget: &Budget) -> io::Result<Pairs> {
        let count = (n >> BUCKET_BITS) as usize + 1;
        let file = match n < budget.tuning().in_file {
            true => None,
            false => Some((tempfile::tempfile_in(budget.dir())?, 0)),
        };
        Ok(Pairs {
            buckets: (0..count).map(|_| Bucket::default()).collect(),
            len: 0,
            file,
            failed: Ok(()),
        })
    }

    /// Adds an edge from pre-order number `source` to `target`.
    #[inline]
    pub(crate) fn push(&mut self, target: u64, source: u64) {
        let bucket = (target >> BUCKET_BITS) as usize;
        if self.buckets[bucket].used + PAIR > self.buckets[bucket].last.len() {
            self.next_chunk(bucket);
        }
        let bucket = &mut self.buckets[bucket];
        let (chunk, low) = (&mut bucket.last, target as u16);
        chunk[bucket.used] = low as u8;
        chunk[bucket.used + 1] = (low >> 8) as u8;
        let delta = source.wrapping_sub(bucket.previous) as i64;
        bucket.used = put(chunk, bucket.used + 2, zigzag(delta));
        bucket.previous = source;
        bucket.len += 1;
        self.len += 1;
    }

    /// Stores the present chunk of a bucket, if it has one, and begins another.
    #[cold]
    #[inline(never)]
    fn next_chunk(&mut self, bucket: usize) {
        let bucket = &mut self.buckets[bucket];
        let used = std::mem::take(&mut bucket.used);
        if bucket.last.is_empty() {
            bucket.last = vec![0; CHUNK].into();
            return;
        }
        let full = match &mut self.file {
            None => Full::Memory(std::mem::replace(&mut bucket.last, vec![0; CHUNK].into())),
            Some((file, chunks)) => {
                let number = *chunks;
                *chunks += 1;
                let done = write_all_at(file, &bucket.last, number * CHUNK as u64);
                if self.failed.is_ok() {
                    self.failed = done;
                }
                Full::File(number)
            }
        };
        bucket.full.push((full, used as u16));
    }

    /// Whether all edges could be kept.
    ///
    /// # Errors
    /// When the file could not be written.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.failed, Ok(()))
    }

    /// Number of buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Removes a bucket and returns its sources grouped by target.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn take<C: Cell>(&mut self, bucket: usize, out: &mut Grouped<C>) -> io::Result<()> {
        let taken = std::mem::take(&mut self.buckets[bucket]);
        let file = self.file.as_ref().map(|(file, _)| file);
        let Grouped { starts, sources } = out;
        starts.clear();
        starts.resize((1 << BUCKET_BITS) + 2, 0);
        taken.each(file, |target, _| starts[target as usize + 2] += 1)?;
        for t in 2..starts.len() {
            starts[t] += starts[t - 1];
        }
        // Reserves only what is needed: most buckets are small, and one may be as large as half of the heap.
        sources.clear();
        sources.reserve_exact(taken.len as usize);
        sources.resize(taken.len as usize, C::default());
        taken.each(file, |target, source| {
            let at = &mut starts[target as usize + 1];
            sources[*at as usize] = C::new(source);
            *at += 1;
        })
    }
}

impl Bucket {
    /// All pairs in order of arrival.
    fn each(&self, file: Option<&File>, mut call: impl FnMut(u16, u64)) -> io::Result<()> {
        let mut source = 0u64;
        let mut decode = |chunk: &[u8]| {
            let mut at = 0;
            while at < chunk.len() {
                let target = u16::from_le_bytes([chunk[at], chunk[at + 1]]);
                let (delta, next) = take(chunk, at + 2);
                source = source.wrapping_add(unzigzag(delta) as u64);
                call(target, source);
                at = next;
            }
        };
        let mut read = [0; CHUNK];
        for (chunk, used) in &self.full {
            let used = usize::from(*used);
            match (chunk, file) {
                (Full::Memory(chunk), _) => decode(&chunk[..used]),
                (Full::File(number), Some(file)) => {
                    read_exact_at(file, &mut read[..used], number * CHUNK as u64)?;
                    decode(&read[..used]);
                }
                (Full::File(_), None) => {}
            }
        }
        decode(&self.last[..self.used]);
        Ok(())
    }
}

/// The edges of one bucket, by target: `starts[t]..starts[t + 1]` are the sources of the target with the low bits `t`.
#[derive(Debug, Default)]
pub(crate) struct Grouped<C> {
    starts: Vec<u64>,
    sources: Vec<C>,
}

impl<C: Cell> Grouped<C> {
    /// Sources of a target of this bucket.
    #[inline]
    pub(crate) fn of(&self, target: u64) -> &[C] {
        &self.sources[self.range(target)]
    }

    /// The sources of all targets, in the order of targets.
    #[inline]
    pub(crate) fn sources(&self) -> &[C] {
        &self.sources
    }

    /// Where in them the sources of a target are.
    #[inline]
    pub(crate) fn range(&self, target: u64) -> std::ops::Range<usize> {
        let t = (target & ((1 << BUCKET_BITS) - 1)) as usize;
        self.starts[t] as usize..self.starts[t + 1] as usize
    }
}

/// The first target of a bucket.
pub(crate) fn first_of(bucket: usize) -> u64 {
    (bucket as u64) << BUCKET_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_come_back_by_target_in_order_of_arrival() {
        let dir = std::env::temp_dir();
        for in_file in [200_001, 200_000] {
            let budget = Budget::for_test(&dir, in_file);
            let mut pairs = Pairs::new(200_000, &budget).unwrap();
            let edges: Vec<(u64, u64)> = (0..100_000u64)
                .map(|i| (i * 7919 % 199_999, i * 31 % 150_000))
                .collect();
            edges.iter().for_each(|(t, s)| pairs.push(*t, *s));
            assert_eq!(pairs.len, 100_000);
            let is_in_file = pairs.file.as_ref().is_some_and(|f| f.1 > 3);
            assert_eq!(is_in_file, in_file == 200_000);
            pairs.check().unwrap();
            let mut checked = 0;
            let mut grouped = Grouped::<u64>::default();
            for bucket in (0..pairs.buckets()).rev() {
                pairs.take(bucket, &mut grouped).unwrap();
                for target in first_of(bucket)..first_of(bucket + 1) {
                    if target % 997 != 0 {
                        continue;
                    }
                    let all = edges.iter().filter(|edge| edge.0 == target);
                    let want: Vec<u64> = all.map(|edge| edge.1).collect();
                    assert_eq!(grouped.of(target), want);
                    checked += want.len();
                }
            }
            assert!(checked > 50, "{checked}");
        }
    }
}
