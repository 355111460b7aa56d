//! Cross and back edges of the depth-first search, kept by target until the reverse pass wants
//! them: buckets of 65,536 targets, each a byte stream. A pair takes two bytes for the target
//! and, because sources come in visiting order, two or three for the source.

use super::cell::Cell;
use super::varint::{put, take, unzigzag, zigzag};

const BUCKET_BITS: u32 = 16;
/// Chunks are this long, so that growing never copies and never doubles.
const CHUNK: usize = 1 << 14;
/// Longest encoded pair.
const PAIR: usize = 12;

#[derive(Debug, Default)]
struct Bucket {
    chunks: Vec<Box<[u8]>>,
    /// Used bytes of each full chunk, and of the last one.
    ends: Vec<u16>,
    used: usize,
    previous: u64,
    len: u64,
}

/// The edges by bucket of target.
#[derive(Debug)]
pub(crate) struct Pairs {
    buckets: Vec<Bucket>,
    pub(crate) len: u64,
}

impl Pairs {
    /// For targets below `n`.
    pub(crate) fn new(n: u64) -> Pairs {
        let count = (n >> BUCKET_BITS) as usize + 1;
        Pairs {
            buckets: (0..count).map(|_| Bucket::default()).collect(),
            len: 0,
        }
    }

    /// Adds an edge from pre-order number `source` to `target`.
    #[inline]
    pub(crate) fn push(&mut self, target: u64, source: u64) {
        let bucket = &mut self.buckets[(target >> BUCKET_BITS) as usize];
        if bucket.chunks.is_empty() || bucket.used + PAIR > CHUNK {
            if !bucket.chunks.is_empty() {
                bucket.ends.push(bucket.used as u16);
            }
            // The first chunk of a bucket is small: a small heap has one bucket only.
            bucket.chunks.push(vec![0u8; CHUNK].into_boxed_slice());
            bucket.used = 0;
        }
        if let Some(chunk) = bucket.chunks.last_mut() {
            let low = target as u16;
            chunk[bucket.used] = low as u8;
            chunk[bucket.used + 1] = (low >> 8) as u8;
            let delta = source.wrapping_sub(bucket.previous) as i64;
            bucket.used = put(chunk, bucket.used + 2, zigzag(delta));
            bucket.previous = source;
            bucket.len += 1;
            self.len += 1;
        }
    }

    /// Takes all buckets out, from the last to the first, each grouped when its turn comes.
    pub(crate) fn into_grouped<C: Cell>(
        mut self,
    ) -> impl Iterator<Item = (usize, Grouped<C>)> + Send {
        (0..self.buckets.len()).rev().map(move |bucket| {
            let mut out = Grouped::default();
            self.take(bucket, &mut out);
            (bucket, out)
        })
    }

    /// Takes a bucket out as sources grouped by target: `starts[t]..starts[t + 1]` are those of
    /// target `bucket << 16 | t`.
    pub(crate) fn take<C: Cell>(&mut self, bucket: usize, out: &mut Grouped<C>) {
        let taken = std::mem::take(&mut self.buckets[bucket]);
        out.starts.clear();
        out.starts.resize((1 << BUCKET_BITS) + 2, 0);
        taken.each(|target, _| out.starts[target as usize + 2] += 1);
        for t in 2..out.starts.len() {
            out.starts[t] += out.starts[t - 1];
        }
        out.sources.clear();
        out.sources.resize(taken.len as usize, C::default());
        taken.each(|target, source| {
            let at = &mut out.starts[target as usize + 1];
            out.sources[*at as usize] = C::new(source);
            *at += 1;
        });
    }
}

impl Bucket {
    fn each(&self, mut call: impl FnMut(u16, u64)) {
        let mut source = 0u64;
        for (i, chunk) in self.chunks.iter().enumerate() {
            let end = self.ends.get(i).map_or(self.used, |e| usize::from(*e));
            let mut at = 0;
            while at < end {
                let target = u16::from_le_bytes([chunk[at], chunk[at + 1]]);
                let (delta, next) = take(chunk, at + 2);
                source = source.wrapping_add(unzigzag(delta) as u64);
                call(target, source);
                at = next;
            }
        }
    }
}

/// The edges of one bucket, by target.
#[derive(Debug, Default)]
pub(crate) struct Grouped<C> {
    starts: Vec<u64>,
    sources: Vec<C>,
}

impl<C: Cell> Grouped<C> {
    /// Sources of a target of this bucket.
    #[inline]
    pub(crate) fn of(&self, target: u64) -> &[C] {
        let t = (target & ((1 << BUCKET_BITS) - 1)) as usize;
        &self.sources[self.starts[t] as usize..self.starts[t + 1] as usize]
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
        let mut pairs = Pairs::new(200_000);
        let edges: Vec<(u64, u64)> = (0..100_000u64)
            .map(|i| (i * 7919 % 199_999, i * 31 % 150_000))
            .collect();
        edges.iter().for_each(|(t, s)| pairs.push(*t, *s));
        assert_eq!(pairs.len, 100_000);
        let mut grouped = Grouped::<u64>::default();
        for bucket in 0..pairs.buckets.len() {
            pairs.take(bucket, &mut grouped);
            for target in (bucket as u64) << 16..((bucket as u64) << 16) + 65_536 {
                let want: Vec<u64> = edges
                    .iter()
                    .filter(|e| e.0 == target)
                    .map(|e| e.1)
                    .take(9)
                    .collect();
                if target % 997 == 0 {
                    assert_eq!(grouped.of(target), want);
                }
            }
        }
    }
}
