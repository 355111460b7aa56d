//! Finds the address of a library in memory that does not record it: by the layout of the library and by its dynamic
//! section, which the dynamic linker writes into memory, so that a core contains it.

use crate::elf::Segment;
use crate::memory::{Address, Memory};

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PAGE: u64 = 4096;
/// The most bytes of a dynamic section.
const LONGEST_DYNAMIC: u64 = 1 << 14;

/// A part of a file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: Address,
    pub(crate) end: Address,
    /// The offset in the file at which it begins.
    pub(crate) offset: u64,
}

/// Finds the library with these program headers among the addresses at which memory ranges begin; returns its parts by
/// address. `dynamic` is the content of its dynamic section in the file.
pub(crate) fn find(
    memory: &dyn Memory,
    starts: impl Iterator<Item = Address>,
    segments: &[Segment],
    dynamic: &[u8],
) -> Option<Vec<Part>> {
    let first = segments.iter().find(|one| one.kind == PT_LOAD)?;
    let section = segments.iter().find(|one| one.kind == PT_DYNAMIC)?;
    let mut there = vec![0; dynamic.len()];
    for start in starts {
        let bias = start.wrapping_sub(first.address & !(PAGE - 1));
        let len = memory.read(bias.wrapping_add(section.address), &mut there);
        if len == dynamic.len() && is_same(dynamic, &there, bias) {
            let loaded = segments.iter().filter(|one| one.kind == PT_LOAD);
            let mut parts: Vec<Part> = loaded.map(|one| part(one, bias)).collect::<Option<_>>()?;
            // A valid library lists them in this order, a crafted file in any.
            parts.sort_unstable_by_key(|part| part.start);
            return Some(parts);
        }
    }
    None
}

/// The size and the offset of the dynamic section in the file.
pub(crate) fn dynamic(segments: &[Segment]) -> Option<(u64, u64)> {
    let section = segments.iter().find(|one| one.kind == PT_DYNAMIC)?;
    (16..=LONGEST_DYNAMIC)
        .contains(&section.size_in_file)
        .then_some((section.offset, section.size_in_file))
}

fn part(segment: &Segment, bias: u64) -> Option<Part> {
    let address = bias.wrapping_add(segment.address);
    Some(Part {
        start: address & !(PAGE - 1),
        end: address.checked_add(segment.size_in_file)?,
        offset: segment.offset & !(PAGE - 1),
    })
}

/// The dynamic linker of glibc adds the bias to addresses, that of musl does not; both write the address of one of
/// their tables for debuggers.
fn is_same(of_file: &[u8], of_memory: &[u8], bias: u64) -> bool {
    const DT_DEBUG: u64 = 21;
    let pairs = |bytes: &[u8]| -> Vec<(u64, u64)> {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let pairs = bytes.chunks_exact(16);
        pairs
            .map(|pair| (word(&pair[..8]), word(&pair[8..])))
            .collect()
    };
    let (of_file, of_memory) = (pairs(of_file), pairs(of_memory));
    of_file.iter().zip(&of_memory).all(|(file, memory)| {
        let is_moved = memory.1 == file.1 || memory.1 == file.1.wrapping_add(bias);
        file.0 == memory.0 && (is_moved || file.0 == DT_DEBUG)
    })
}

#[cfg(test)]
mod tests {
    use super::{Part, find, is_same};
    use crate::elf::Segment;
    use crate::memory::{Address, Memory};

    struct At(Address, Vec<u8>);

    impl Memory for At {
        fn read(&self, at: Address, into: &mut [u8]) -> usize {
            let there = at
                .checked_sub(self.0)
                .and_then(|i| self.1.get(i as usize..));
            let there = there.unwrap_or_default();
            let len = there.len().min(into.len());
            into[..len].copy_from_slice(&there[..len]);
            len
        }

        fn next_readable(&self, _: Address) -> Option<Address> {
            None
        }
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn segment(kind: u32, address: u64, offset: u64, size: u64) -> Segment {
        Segment {
            kind,
            flags: 0,
            offset,
            address,
            size,
            size_in_file: size,
        }
    }

    #[test]
    fn addresses_are_compared_with_and_without_the_bias() {
        let file = bytes(&[5, 0x100, 10, 7, 0, 0]);
        assert!(is_same(&file, &bytes(&[5, 0x100, 10, 7, 0, 0]), 0x7000));
        assert!(is_same(&file, &bytes(&[5, 0x7100, 10, 7, 0, 0]), 0x7000));
        assert!(!is_same(&file, &bytes(&[5, 0x7100, 10, 8, 0, 0]), 0x7000));
        assert!(!is_same(&file, &bytes(&[5, 0x7100, 11, 7, 0, 0]), 0x7000));
    }

    #[test]
    fn a_library_is_where_its_dynamic_section_is() {
        let segments = [
            segment(1, 0, 0, 0x1800),
            segment(2, 0x3f80, 0x1f80, 48),
            segment(1, 0x3f00, 0x1f00, 0x200),
            segment(1, 0x2000, 0x1800, 0x100),
        ];
        let dynamic = bytes(&[5, 0x100, 10, 7, 0, 0]);
        let memory = At(0x5000 + 0x3f80, bytes(&[5, 0x5100, 10, 7, 0, 0]));
        let starts = [0x4000, 0x5000, 0x6000];
        let found = find(&memory, starts.into_iter(), &segments, &dynamic);
        let parts = [
            (0x5000, 0x6800, 0),
            (0x7000, 0x7100, 0x1000),
            (0x8000, 0x9100, 0x1000),
        ];
        let parts = parts.map(|(start, end, offset)| Part { start, end, offset });
        assert_eq!(found.as_deref(), Some(&parts[..]));
        let found = find(&memory, [0x4000].into_iter(), &segments, &dynamic);
        assert_eq!(found, None);
    }
}
