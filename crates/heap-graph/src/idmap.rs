//! Object ids to dense numbers and back: a bitmap over the addresses in use, with rank.
//!
//! A block is one cache line: a word with a count, and seven words of bits for 448 slots. A slot is one possible object
//! address. An id's number is the count of its block plus the number of set bits before it. So a lookup costs one cache
//! line, and numbers are in the order of ids. Only blocks with objects exist: about 5 bits per object in a dense heap,
//! and never more than 64 bytes per object plus the directory, whatever ids a file has.

use crate::ObjIdx;
use crate::raw::{prefetch, with_popcnt};
use hprof::ObjectId;
use rustc_hash::FxHashMap;

/// Slots of a block.
pub(crate) const SLOTS: u64 = 448;
/// A block. In the builder: its number and the bits; in the map: the count of ids before it and the bits.
pub(crate) type Block = [u64; 8];

/// A spot is the index of a block, shifted by this number of bits, plus a slot in the block.
const SPOT_BITS: u32 = 9;
/// The number of an id that the dump does not have.
pub(crate) const NO_NUMBER: u64 = u64::MAX;

#[inline(always)]
fn ranks(blocks: &[Block], spots: &mut [u64]) {
    for spot in spots {
        let bit = *spot & ((1 << SPOT_BITS) - 1);
        let word = (bit >> 6) as usize;
        let mask = 1u64 << (bit & 63);
        *spot = match blocks.get((*spot >> SPOT_BITS) as usize) {
            Some(block) if word < 7 && block[word + 1] & mask != 0 => {
                let mut rank = block[0] + u64::from((block[word + 1] & (mask - 1)).count_ones());
                for k in 0..6 {
                    let before = u64::from(block[k + 1].count_ones());
                    rank += if k < word { before } else { 0 };
                }
                rank
            }
            _ => NO_NUMBER,
        };
    }
}

/// Collects ids in any order.
#[derive(Debug, Default)]
pub(crate) struct IdSetBuilder {
    shift: u32,
    blocks: Vec<Block>,
    by_number: FxHashMap<u64, u32>,
    last: Option<(u64, u32)>,
    misaligned: bool,
    duplicates: u64,
}

impl IdSetBuilder {
    /// Slots are `1 << shift` apart (3 for JVMs; 0 where ids are serial numbers).
    pub(crate) fn new(shift: u32) -> IdSetBuilder {
        IdSetBuilder {
            shift,
            ..IdSetBuilder::default()
        }
    }

    /// Adds an id. False if it was there already.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64) -> bool {
        let slot = id >> self.shift;
        self.misaligned |= slot << self.shift != id;
        let number = slot / SLOTS;
        let bit = slot % SLOTS;
        let index = match self.last {
            Some((last, index)) if last == number => index,
            _ => self.block(number),
        };
        let word = &mut self.blocks[index as usize][(bit >> 6) as usize + 1];
        let mask = 1u64 << (bit & 63);
        let new = *word & mask == 0;
        *word |= mask;
        self.duplicates += u64::from(!new);
        new
    }

    #[cold]
    #[inline(never)]
    fn block(&mut self, number: u64) -> u32 {
        let next = self.blocks.len() as u32;
        let index = *self.by_number.entry(number).or_insert(next);
        if index == next {
            self.blocks.push([number, 0, 0, 0, 0, 0, 0, 0]);
        }
        self.last = Some((number, index));
        index
    }

    /// True if an id is not aligned to a slot; the set must then be built again with shift 0.
    pub(crate) fn misaligned(&self) -> bool {
        self.misaligned
    }

    /// Ids that were added more than once.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Joins the sets of several workers, which have the same shift. Returns the sorted blocks with counts instead of
    /// numbers, the block numbers, and how many ids were in more than one set.
    pub(crate) fn finish(parts: Vec<IdSetBuilder>) -> FinishedIds {
        let shift = parts.first().map_or(3, |p| p.shift);
        let mut duplicates: u64 = parts.iter().map(|p| p.duplicates).sum();
        let mut blocks = Vec::new();
        for mut part in parts {
            part.by_number = FxHashMap::default();
            if blocks.is_empty() {
                blocks = part.blocks;
            } else {
                blocks.append(&mut part.blocks);
            }
        }
        if !blocks.is_sorted_by_key(|b| b[0]) {
            // A stable sort, because workers produce long ascending runs, which it merges.
            blocks.sort_by_key(|b| b[0]);
        }
        blocks.dedup_by(|later, kept| {
            let same = later[0] == kept[0];
            if same {
                for k in 1..8 {
                    duplicates += u64::from((later[k] & kept[k]).count_ones());
                    kept[k] |= later[k];
                }
            }
            same
        });
        let numbers: Vec<u64> = blocks.iter().map(|b| b[0]).collect();
        let mut count = 0u64;
        for block in &mut blocks {
            block[0] = count;
            count += block[1..]
                .iter()
                .map(|w| u64::from(w.count_ones()))
                .sum::<u64>();
        }
        FinishedIds {
            shift,
            blocks,
            numbers,
            len: count,
            duplicates,
        }
    }
}

/// The joined set, to be written to the index or viewed at once.
#[derive(Debug, Default)]
pub(crate) struct FinishedIds {
    /// See [`IdSetBuilder::new`].
    pub(crate) shift: u32,
    /// Blocks with the count before them.
    pub(crate) blocks: Vec<Block>,
    /// Their numbers, ascending.
    pub(crate) numbers: Vec<u64>,
    /// Number of ids.
    pub(crate) len: u64,
    /// Ids that occurred more than once.
    pub(crate) duplicates: u64,
}

impl FinishedIds {
    /// Bytes of the blocks and their numbers.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(&*self.blocks) + size_of_val(&*self.numbers)) as u64
    }
}

/// From block number to block index.
#[derive(Debug)]
pub(crate) struct Directory(Kind);

#[derive(Debug)]
enum Kind {
    /// One entry per block number of the range: the index of the block plus 1, or 0 for no block.
    Flat { first: u64, index: Vec<u32> },
    /// A hash map, for ids that are scattered over a huge range.
    Hash(FxHashMap<u64, u32>),
}

impl Directory {
    /// The directory of these ascending block numbers. Takes four bytes per block of a dense range; parts of the range
    /// without blocks take no memory.
    pub(crate) fn new(numbers: &[u64]) -> Directory {
        let first = numbers.first().copied().unwrap_or(0);
        let span = numbers
            .last()
            .map_or(0, |last| last.saturating_sub(first) + 1);
        if span > (numbers.len() as u64 + (1 << 12)) * 64 {
            return Directory(Kind::Hash(
                numbers
                    .iter()
                    .enumerate()
                    .map(|(i, n)| (*n, i as u32))
                    .collect(),
            ));
        }
        let mut index = vec![0u32; span as usize];
        for (i, number) in numbers.iter().enumerate() {
            if let Some(entry) = index.get_mut(number.wrapping_sub(first) as usize) {
                *entry = i as u32 + 1;
            }
        }
        Directory(Kind::Flat { first, index })
    }
}

/// The finished map: a view over blocks, their numbers and the directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdMap<'a> {
    shift: u32,
    len: u64,
    blocks: &'a [Block],
    numbers: &'a [u64],
    directory: &'a Directory,
}

/// The previously looked up id, for [`IdMap::rank_after`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    /// The index of its block, and the slot of the first id that this block can have.
    index: usize,
    first: u64,
    bit: u64,
    rank: u64,
}

impl Default for Cursor {
    /// Before all ids.
    fn default() -> Cursor {
        Cursor {
            index: 0,
            first: u64::MAX,
            bit: SLOTS,
            rank: 0,
        }
    }
}

impl<'a> IdMap<'a> {
    /// Views blocks and numbers as made by [`IdSetBuilder::finish`].
    pub(crate) fn new(
        shift: u32,
        len: u64,
        blocks: &'a [Block],
        numbers: &'a [u64],
        directory: &'a Directory,
    ) -> IdMap<'a> {
        let count = blocks.len().min(numbers.len());
        IdMap {
            shift,
            len,
            blocks: &blocks[..count],
            numbers: &numbers[..count],
            directory,
        }
    }

    /// Number of ids.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn locate(&self, id: u64) -> Option<(usize, u64)> {
        let slot = id >> self.shift;
        let (number, bit) = (slot / SLOTS, slot % SLOTS);
        let index = match &self.directory.0 {
            Kind::Flat { first, index } => {
                let entry = *index.get(number.wrapping_sub(*first) as usize)?;
                entry.checked_sub(1)? as usize
            }
            Kind::Hash(map) => *map.get(&number)? as usize,
        };
        Some((index, bit))
    }

    /// The spot of an id, for [`ranks`](Self::ranks); starts to fetch its cache line.
    #[inline(always)]
    pub(crate) fn spot(&self, id: u64) -> u64 {
        match self.locate(id) {
            Some((index, bit)) if (id >> self.shift) << self.shift == id => {
                prefetch(self.blocks, index);
                (index as u64) << SPOT_BITS | bit
            }
            _ => NO_NUMBER,
        }
    }

    /// Replaces each spot by the dense number of its id, or by [`NO_NUMBER`] if the dump has no such id.
    pub(crate) fn ranks(&self, spots: &mut [u64]) {
        with_popcnt(self.blocks, spots, ranks);
    }

    /// The dense number of an id, if the dump has it.
    #[inline]
    pub(crate) fn rank(&self, id: u64) -> Option<u64> {
        let mut number = [self.spot(id)];
        self.ranks(&mut number);
        (number[0] != NO_NUMBER).then_some(number[0])
    }

    /// The object of an id, if the dump has it; none for a null reference.
    #[inline]
    pub(crate) fn find(&self, id: ObjectId) -> Option<ObjIdx> {
        let number = (!id.is_null()).then(|| self.rank(id.0));
        number.flatten().map(ObjIdx)
    }

    /// Like [`rank`](Self::rank), for ids that mostly ascend: if the previous id is in the same block, only the bits
    /// between the two are counted.
    #[inline]
    pub(crate) fn rank_after(&self, cursor: &mut Cursor, id: u64) -> Option<u64> {
        let slot = id >> self.shift;
        let bit = slot.wrapping_sub(cursor.first);
        if bit >= SLOTS || bit <= cursor.bit || slot << self.shift != id {
            let rank = self.rank(id)?;
            let (index, bit) = self.locate(id)?;
            *cursor = Cursor {
                index,
                first: slot - bit,
                bit,
                rank,
            };
            return Some(rank);
        }
        let block = self.blocks.get(cursor.index)?;
        let mask = 1u64 << (bit & 63);
        let (from, to) = ((cursor.bit >> 6) as usize + 1, (bit >> 6) as usize + 1);
        if block[to] & mask == 0 {
            return None;
        }
        // The bits after that of the previous id, up to that of this id.
        let behind = !((2u64 << (cursor.bit & 63)).wrapping_sub(1));
        let upto = mask | (mask - 1);
        let ones = |word: u64| u64::from(word.count_ones());
        let between = match from == to {
            true if block[to] & behind & upto == mask => 1,
            true => ones(block[to] & behind & upto),
            false => {
                let whole: u64 = block[from + 1..to].iter().map(|word| ones(*word)).sum();
                ones(block[from] & behind) + whole + ones(block[to] & upto)
            }
        };
        cursor.bit = bit;
        cursor.rank += between;
        Some(cursor.rank)
    }

    /// The id of a dense number; 0 if there is no such number.
    pub(crate) fn select(&self, n: u64) -> u64 {
        if n >= self.len {
            0
        } else {
            select(self.shift, self.blocks, self.numbers, n)
        }
    }
}

/// The ids of a map from number `first` on, in order.
pub(crate) fn iter_from<'a>(
    shift: u32,
    blocks: &'a [Block],
    numbers: &'a [u64],
    first: u64,
) -> impl Iterator<Item = u64> + 'a {
    let index = blocks.partition_point(|b| b[0] <= first).saturating_sub(1);
    let before = blocks
        .get(index)
        .map_or(0, |block| first.saturating_sub(block[0]));
    let (blocks, numbers) = (blocks.iter().skip(index), numbers.iter().skip(index));
    let ids = blocks.zip(numbers).flat_map(move |(block, number)| {
        (1..8).flat_map(move |k| {
            let mut bits = block[k];
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let bit = u64::from(bits.trailing_zeros());
                    bits &= bits - 1;
                    (number * SLOTS + (k as u64 - 1) * 64 + bit) << shift
                })
            })
        })
    });
    ids.skip(before as usize)
}

/// The id of number `n` without a directory; 0 if there is no such number.
pub(crate) fn select(shift: u32, blocks: &[Block], numbers: &[u64], n: u64) -> u64 {
    let Some(index) = blocks.partition_point(|b| b[0] <= n).checked_sub(1) else {
        return 0;
    };
    let mut left = n - blocks[index][0];
    for (word, bits) in blocks[index][1..].iter().enumerate() {
        let ones = u64::from(bits.count_ones());
        if left < ones {
            let mut bits = *bits;
            for _ in 0..left {
                bits &= bits - 1;
            }
            let bit = word as u64 * 64 + u64::from(bits.trailing_zeros());
            return (numbers[index] * SLOTS + bit) << shift;
        }
        left -= ones;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shift: u32, ids: &[u64]) {
        let mut parts = vec![IdSetBuilder::new(shift), IdSetBuilder::new(shift)];
        for (i, id) in ids.iter().enumerate() {
            parts[i % 2].insert(*id);
        }
        let done = IdSetBuilder::finish(parts);
        let directory = Directory::new(&done.numbers);
        let map = IdMap::new(
            done.shift,
            done.len,
            &done.blocks,
            &done.numbers,
            &directory,
        );
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(map.len(), sorted.len() as u64);
        assert_eq!(done.duplicates, (ids.len() - sorted.len()) as u64);
        for first in (0..=sorted.len()).step_by(101) {
            let ids = iter_from(shift, &done.blocks, &done.numbers, first as u64);
            assert_eq!(ids.collect::<Vec<_>>(), sorted[first..]);
        }
        // Ascending ids, with missing ids among them, and ids in any order.
        let mut cursor = Cursor::default();
        let near = sorted
            .iter()
            .flat_map(|id| [*id, id.wrapping_add(1), id.wrapping_add(1 << shift)]);
        for id in near.chain(ids.iter().copied()) {
            assert_eq!(map.rank_after(&mut cursor, id), map.rank(id), "{id:#x}");
        }
        for (n, id) in sorted.iter().enumerate() {
            assert_eq!(map.rank(*id), Some(n as u64), "rank of {id:#x}");
            assert_eq!(map.select(n as u64), *id);
            assert_eq!(
                map.rank(id + 1).is_some(),
                sorted.binary_search(&(id + 1)).is_ok()
            );
        }
        assert_eq!(map.select(sorted.len() as u64), 0);
    }

    #[test]
    fn numbers_follow_the_order_of_ids_in_dense_sparse_and_odd_ranges() {
        check(
            3,
            &[
                0xc000_0000,
                0xc000_0010,
                0xc000_0008,
                0xc010_0000,
                0xffff_fff8,
            ],
        );
        check(0, &[1, 2, 3, 500, 448, 447, 449, 7, 7, 2]);
        check(3, &[0, !7, 1 << 40, 1 << 50, 1 << 60]);
        check(
            3,
            &(0..5000u64)
                .map(|i| 0x7_0000_0000 + i * 24 % 99_984)
                .collect::<Vec<_>>(),
        );
        check(3, &[]);
    }
}
