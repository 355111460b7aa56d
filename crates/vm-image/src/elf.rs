//! The parts of an ELF file that are in the memory of a process: its build id and the addresses of exported symbols.
//! Both are in the mapped part, so the file itself is not needed; it may have been deleted or be in another container.

use crate::memory::{Address, Structures};

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;
const PF_W: u32 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const NT_GNU_BUILD_ID: u32 = 3;
/// The most program headers that are accepted; no library has as many.
const MOST_HEADERS: u16 = 1024;
/// The most entries of a dynamic section.
const MOST_TAGS: u64 = 1024;
/// The most bytes of a library's variables.
const MOST_VARIABLES: u64 = 1 << 26;
/// The most symbols in one bucket of a hash table.
const LONGEST_CHAIN: u32 = 1 << 16;
/// The most bytes of a library's note section.
const LONGEST_NOTES: u64 = 1 << 16;

/// A program header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    /// The offset in the file at which it begins.
    pub(crate) offset: u64,
    pub(crate) address: u64,
    /// Bytes in memory.
    pub(crate) size: u64,
    pub(crate) size_in_file: u64,
}

/// A mapped ELF file.
pub(crate) struct Library<'s, 'm> {
    memory: &'s Structures<'m>,
    segments: Vec<Segment>,
    /// The difference between addresses in memory and in the file.
    bias: u64,
}

impl<'s, 'm> Library<'s, 'm> {
    /// The file whose first byte is mapped at `base`.
    pub(crate) fn at(memory: &'s Structures<'m>, base: Address) -> Option<Library<'s, 'm>> {
        // The magic bytes, 64 bits, little-endian.
        if memory.bytes(base, 6)? != *b"\x7fELF\x02\x01" {
            return None;
        }
        let table = base.checked_add(memory.u64(base + 32)?)?;
        let (size, count) = (memory.u16(base + 54)?, memory.u16(base + 56)?);
        if size < 56 || count > MOST_HEADERS {
            return None;
        }
        let header = |i: u16| {
            let at = table.checked_add(u64::from(i) * u64::from(size))?;
            Some(Segment {
                kind: memory.u32(at)?,
                flags: memory.u32(at.checked_add(4)?)?,
                offset: memory.u64(at.checked_add(8)?)?,
                address: memory.u64(at.checked_add(16)?)?,
                size: memory.u64(at.checked_add(40)?)?,
                size_in_file: memory.u64(at.checked_add(32)?)?,
            })
        };
        let segments: Vec<Segment> = (0..count).map(header).collect::<Option<_>>()?;
        let first = segments.iter().find(|segment| segment.kind == PT_LOAD)?;
        let bias = base.wrapping_sub(first.address & !0xfff);
        Some(Library {
            memory,
            segments,
            bias,
        })
    }

    /// Its program headers.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn of_kind(&self, kind: u32) -> impl Iterator<Item = &Segment> {
        self.segments
            .iter()
            .filter(move |segment| segment.kind == kind)
    }

    /// The address and size of its variables.
    pub(crate) fn variables(&self) -> Vec<(Address, u64)> {
        let writable = self
            .of_kind(PT_LOAD)
            .filter(|segment| segment.flags & PF_W != 0);
        let ranges = writable.map(|one| (self.bias.wrapping_add(one.address), one.size));
        ranges.filter(|(_, size)| *size <= MOST_VARIABLES).collect()
    }

    /// The GNU build id.
    pub(crate) fn build_id(&self) -> Option<Vec<u8>> {
        self.of_kind(PT_NOTE).find_map(|notes| {
            let size = notes.size.min(LONGEST_NOTES);
            let bytes = self
                .memory
                .bytes(self.bias.wrapping_add(notes.address), size as usize)?;
            let mut all = Notes(&bytes);
            all.find(|note| note.kind == NT_GNU_BUILD_ID && note.name == b"GNU\0")
                .map(|note| note.body.to_vec())
        })
    }

    /// The address of an exported symbol, found in the hash table of the dynamic linker.
    pub(crate) fn symbol(&self, name: &str) -> Option<Address> {
        let (symbols, names) = (self.tag(DT_SYMTAB)?, self.tag(DT_STRTAB)?);
        let index = match self.tag(DT_GNU_HASH) {
            Some(table) => self.index_by_gnu_hash(table, name, symbols, names)?,
            None => self.index_by_hash(self.tag(DT_HASH)?, name, symbols, names)?,
        };
        let value = symbols.checked_add(u64::from(index) * 24 + 8)?;
        Some(self.bias.wrapping_add(self.memory.u64(value)?))
    }

    fn is_named(&self, index: u32, name: &str, symbols: Address, names: Address) -> Option<bool> {
        let symbol = symbols.checked_add(u64::from(index) * 24)?;
        let text = names.checked_add(u64::from(self.memory.u32(symbol)?))?;
        Some(self.memory.text(text)? == name)
    }

    fn index_by_gnu_hash(
        &self,
        table: Address,
        name: &str,
        symbols: Address,
        names: Address,
    ) -> Option<u32> {
        let word = |at: u64| self.memory.u32(table.checked_add(at)?);
        let (buckets, first, filter) = (word(0)?, word(4)?, word(8)?);
        let bucket_table = 16 + u64::from(filter) * 8;
        let chains = bucket_table + u64::from(buckets) * 4;
        let hash = gnu_hash(name);
        let bucket = u64::from(hash.checked_rem(buckets)?);
        let mut index = word(bucket_table + bucket * 4)?;
        for _ in 0..LONGEST_CHAIN {
            let link = u64::from(index.checked_sub(first)?);
            let found = word(chains + link * 4)?;
            if found | 1 == hash | 1 && self.is_named(index, name, symbols, names)? {
                return Some(index);
            }
            // The lowest bit marks the last one of a chain.
            (found & 1 == 0).then_some(())?;
            index = index.checked_add(1)?;
        }
        None
    }

    /// The older table, which is in libraries that an old linker made with its defaults.
    fn index_by_hash(
        &self,
        table: Address,
        name: &str,
        symbols: Address,
        names: Address,
    ) -> Option<u32> {
        let word = |i: u64| self.memory.u32(table.checked_add(i * 4)?);
        let buckets = word(0)?;
        let bucket = u64::from(elf_hash(name).checked_rem(buckets)?);
        let mut index = word(2 + bucket)?;
        for _ in 0..LONGEST_CHAIN {
            (index != 0).then_some(())?;
            if self.is_named(index, name, symbols, names)? {
                return Some(index);
            }
            index = word(2 + u64::from(buckets) + u64::from(index))?;
        }
        None
    }

    /// An address in the dynamic section. The dynamic linker of glibc has already added the bias, that of musl has not.
    fn tag(&self, wanted: u64) -> Option<Address> {
        let dynamic = self.of_kind(PT_DYNAMIC).next()?;
        let start = self.bias.wrapping_add(dynamic.address);
        for i in 0..MOST_TAGS.min(dynamic.size / 16) {
            let at = start.checked_add(i * 16)?;
            let value = self.memory.u64(at.checked_add(8)?)?;
            match self.memory.u64(at)? {
                0 => return None,
                tag if tag == wanted && value < self.bias => return value.checked_add(self.bias),
                tag if tag == wanted => return Some(value),
                _ => {}
            }
        }
        None
    }
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(byte))
    })
}

fn elf_hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ high >> 24) & !high
    })
}

/// One note.
pub(crate) struct Note<'a> {
    pub(crate) kind: u32,
    pub(crate) name: &'a [u8],
    pub(crate) body: &'a [u8],
}

/// The notes of a section, before the first incomplete one.
pub(crate) struct Notes<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Notes<'a> {
    type Item = Note<'a>;

    fn next(&mut self) -> Option<Note<'a>> {
        let word = |at: usize| Some(u32::from_le_bytes(self.0.get(at..at + 4)?.try_into().ok()?));
        let (name, body, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let start = 12 + name.next_multiple_of(4);
        let note = Note {
            kind,
            name: self.0.get(12..12 + name)?,
            body: self.0.get(start..start.checked_add(body)?)?,
        };
        let end = start + body.next_multiple_of(4);
        self.0 = self.0.get(end..).unwrap_or_default();
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::{Notes, elf_hash, gnu_hash};

    #[test]
    fn hashes_are_those_of_the_dynamic_linker() {
        // Values of the descriptions of DT_HASH and DT_GNU_HASH.
        assert_eq!(elf_hash("printf"), 0x077905a6);
        assert_eq!(elf_hash("exit"), 0x0006cf04);
        assert_eq!(gnu_hash(""), 0x0000_1505);
        assert_eq!(gnu_hash("printf"), 0x156b_2bb8);
        assert_eq!(gnu_hash("exit"), 0x7c96_7e3f);
    }

    #[test]
    fn a_cut_note_ends_the_notes() {
        let whole = [4u32, 3, 9].map(u32::to_le_bytes).concat();
        let whole = [&whole[..], b"GNU\0", b"abc\0"].concat();
        let two = [&whole[..], &whole[..whole.len() - 3]].concat();
        let found: Vec<_> = Notes(&two).map(|note| (note.kind, note.body)).collect();
        assert_eq!(found, [(9, &b"abc"[..])]);
    }
}
