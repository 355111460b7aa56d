//! The marks of the G1 collector: which objects of an old region its last marking has reached. A concurrent marking
//! unloads classes and leaves their objects where they are, so the size of an unreachable object is unknown; the VM itself
//! skips them by these marks.
//!
//! The VM exports neither the bitmap nor the end of the marked part of a region. The bitmap is found by what it states
//! about itself: the bounds of the heap and the number of its bits. The end is the only other word of a region that is
//! an address in that region, for all regions.

use crate::heap::Space;
use crate::memory::Address;
use crate::vm::Vm;

/// The words of the marking's structure in which the bitmaps are.
const WORDS: u64 = 128;
/// The words of a bitmap: its start, its size, its scale, then (JDK 8 has some more words here) its bits and their number.
const WORDS_OF_BITMAP: usize = 10;

/// The completed marks.
#[derive(Debug)]
pub(crate) struct Marks {
    /// The address of the first bit's object.
    start: Address,
    /// The address of the bits.
    bits: Address,
    /// Each bit is for this power of two of bytes.
    scale: u32,
    /// The parts of the heap in which unmarked objects are dead, in the order of addresses.
    pub(crate) parts: Vec<Space>,
}

impl Marks {
    /// Whether only marked objects exist in the part that has an address.
    pub(crate) fn cover(&self, at: Address) -> bool {
        let next = self.parts.partition_point(|part| part.from <= at);
        let part = next.checked_sub(1).map(|last| self.parts[last]);
        part.is_some_and(|part| at < part.to)
    }

    /// The first marked address from `at` on, or `to`. Where the marks cannot be read, every address counts as marked.
    pub(crate) fn next(&self, vm: &Vm<'_>, at: Address, to: Address) -> Address {
        let mut bit = (at - self.start).div_ceil(1 << self.scale);
        let end = (to - self.start) >> self.scale;
        while bit < end {
            let word = vm.memory.u64(self.bits.wrapping_add(bit / 64 * 8));
            match word.map_or(1, |word| word >> (bit % 64)) {
                0 => bit = (bit / 64 + 1) * 64,
                rest => {
                    bit += u64::from(rest.trailing_zeros());
                    return (self.start + (bit << self.scale)).min(to);
                }
            }
        }
        to
    }
}

/// A bitmap of the VM.
struct Bitmap {
    /// The index of its first word in the marking's structure.
    index: usize,
    bits: Address,
    scale: u32,
}

/// Where a VM has its marks.
pub(crate) struct Source {
    marks: Marks,
    /// The offset of the end of the marked part in the structure of a region.
    limit: u64,
}

impl Source {
    /// The marks of a heap with these regions, of which `size` bytes each; `None` if they cannot be found, and if the VM
    /// does not use them because it unloads no classes while the program runs.
    pub(crate) fn find(
        vm: &Vm<'_>,
        heap: Address,
        reserved: Space,
        (regions, size): (&[(Address, Space)], u64),
    ) -> Option<Source> {
        let flag = "ClassUnloadingWithConcurrentMark";
        if vm.has_flag(flag) && !vm.is_set(flag) {
            return None;
        }
        let words = vm.tables.size("G1CollectedHeap").ok()? / 8;
        let mut fields = (0..words).filter_map(|i| vm.memory.pointer(heap.wrapping_add(i * 8)));
        let (bitmap, are_two) = fields.find_map(|at| bitmap(vm, at, heap, reserved))?;
        let limits = words_within(vm, regions, size)?;
        // A VM with two bitmaps has two ends side by side, that of the completed marking first.
        let limit = match limits[..] {
            [.., first, second] if are_two && second == first + 1 => first,
            [.., last] if !are_two => last,
            _ => return None,
        };
        Some(Source {
            marks: Marks {
                start: reserved.from,
                bits: bitmap.bits,
                scale: bitmap.scale,
                parts: Vec::new(),
            },
            limit: limit * 8,
        })
    }

    /// The end of the part of a region in which unmarked objects are dead, if there is such a part.
    pub(crate) fn limit(&self, vm: &Vm<'_>, region: Address, space: Space) -> Option<Address> {
        let limit = vm.memory.u64(region.wrapping_add(self.limit))?;
        (space.from < limit && limit <= space.to && limit.is_multiple_of(8)).then_some(limit)
    }

    pub(crate) fn add(&mut self, part: Space) {
        self.marks.parts.push(part);
    }

    pub(crate) fn finish(mut self) -> Marks {
        self.marks.parts.sort_unstable();
        self.marks
    }
}

/// The bitmap of the completed marking, if this is the structure of the marking, and whether there is another one for
/// the marking in progress (up to JDK 19).
fn bitmap(
    vm: &Vm<'_>,
    structure: Address,
    heap: Address,
    reserved: Space,
) -> Option<(Bitmap, bool)> {
    // The thread that marks, then the heap.
    (vm.memory.u64(structure.checked_add(8)?)? == heap).then_some(())?;
    let words: Vec<u64> = (0..WORDS)
        .map_while(|i| vm.memory.u64(structure.checked_add(i * 8)?))
        .collect();
    let size = (reserved.to - reserved.from) / 8;
    let mut found: Vec<Bitmap> = Vec::new();
    for (index, words) in words.windows(WORDS_OF_BITMAP).enumerate() {
        let shift = words[2] as u32;
        if words[..2] != [reserved.from, size] || shift >= 8 {
            continue;
        }
        let are_bits = |pair: &&[u64]| {
            let is_pointer = pair[0] != 0 && pair[0].is_multiple_of(8);
            is_pointer && pair[1] == size >> shift
        };
        if let Some(pair) = words[3..].windows(2).find(are_bits) {
            found.push(Bitmap {
                index,
                bits: pair[0],
                scale: shift + 3,
            });
        }
    }
    if let [_] = found[..] {
        return Some((found.pop()?, false));
    }
    // The last two words side by side that point to different bitmaps: the completed one is the first. A bitmap may
    // begin with the table of its functions.
    let index_of = |word: u64| {
        let index = word.checked_sub(structure)? / 8;
        let is_it = |bitmap: &Bitmap| [0, 1].contains(&(bitmap.index as u64).wrapping_sub(index));
        found.iter().position(is_it)
    };
    let pairs = words.windows(2).rev();
    let mut pairs = pairs.filter_map(|pair| Some((index_of(pair[0])?, index_of(pair[1])?)));
    let (completed, _) = pairs.find(|(one, other)| one != other)?;
    (found.len() == 2).then(|| (found.swap_remove(completed), true))
}

/// The words in the structure of a region that are addresses in the region, for all regions.
fn words_within(vm: &Vm<'_>, regions: &[(Address, Space)], size: u64) -> Option<Vec<u64>> {
    let words = vm.tables.size("G1HeapRegion");
    let words = words.or_else(|_| vm.tables.size("HeapRegion")).ok()? / 8;
    let is_within = |at: u64| {
        regions.iter().all(|(region, space)| {
            // An object of JDK 8 that is larger than a region belongs to the first one.
            let end = space.from.saturating_add(size).max(space.to);
            let word = vm.memory.u64(region.wrapping_add(at * 8));
            word.is_some_and(|word| space.from <= word && word <= end)
        })
    };
    Some((0..words).filter(|at| is_within(*at)).collect())
}
