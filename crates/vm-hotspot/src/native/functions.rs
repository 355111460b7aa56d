//! The functions of a library's file. Of the file only the tables are read that name functions and say where they begin,
//! and only if the agent's memory has room for them.

use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::{
    ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC,
    SectionHeader64,
};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, ReadCache};
use vmpi::{Memory, Worth};

type Cache = ReadCache<File>;
type Sections<'a> = SectionTable<'a, FileHeader64<Endianness>, &'a Cache>;

/// Where systems keep the symbols that were stripped from libraries, by the number of the build.
const SEPARATE: &str = "/usr/lib/debug/.build-id";

/// A function with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    begin: u64,
    end: u64,
    /// Its name: where it is among all names, and its length.
    name: (u32, u32),
}

/// Functions of a file.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// Those with a name, by begin.
    named: Vec<Named>,
    /// Their names, one behind the other.
    names: String,
    /// Where functions begin, with or without a name, in ascending order.
    begins: Vec<u64>,
    /// Bytes that the agent's memory was charged.
    charged: u64,
}

impl Functions {
    /// Those of a file: none if it cannot be read. Names and beginnings that there is no memory for are left out.
    pub(super) fn of(path: &Path, memory: &Memory) -> Self {
        let mut functions = Self::default();
        // What is wrong with a file leaves its functions without names.
        let _ = functions.read(path, memory);
        functions.named.sort_unstable();
        functions
    }

    /// The name of the function at an address of the file.
    pub(super) fn name_at(&self, address: u64) -> Option<&str> {
        let after = self.named.partition_point(|one| one.begin <= address);
        let found = self.named[after.checked_sub(1)?];
        let (at, length) = (found.name.0 as usize, found.name.1 as usize);
        let name = self.names.get(at..at + length);
        name.filter(|_| address < found.end)
    }

    /// Where the function at an address of the file begins, whether it has a name or not.
    pub(super) fn begin_of(&self, address: u64) -> Option<u64> {
        let after = self.begins.partition_point(|begin| *begin <= address);
        Some(self.begins[after.checked_sub(1)?])
    }

    /// They are not needed any more: gives back what the memory was charged.
    pub(super) fn release(self, memory: &Memory) {
        memory.native.give(Worth::Names, self.charged);
    }

    #[cfg(test)]
    pub(super) fn forget_names(&mut self) {
        self.named.clear();
    }

    fn read(&mut self, path: &Path, memory: &Memory) -> object::read::Result<()> {
        let Ok(file) = File::open(path) else {
            return Ok(());
        };
        let cache = Cache::new(file);
        let header = FileHeader64::<Endianness>::parse(&cache)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, &cache)?;
        let has_all = sections.iter().any(|one| one.sh_type(endian) == SHT_SYMTAB);
        let named = self.add_names(&cache, endian, &sections, memory);
        self.add_begins(&cache, endian, &sections, memory);
        named?;
        if !has_all
            && let Some(path) = separate_symbols(&cache, endian, &sections)
            && let Ok(file) = File::open(path)
        {
            let cache = Cache::new(file);
            let header = FileHeader64::<Endianness>::parse(&cache)?;
            let endian = header.endian()?;
            let sections = header.sections(endian, &cache)?;
            self.add_names(&cache, endian, &sections, memory)?;
        }
        Ok(())
    }

    /// Adds the functions of both tables of symbols; a stripped file has only what it exports.
    fn add_names(
        &mut self,
        cache: &Cache,
        endian: Endianness,
        sections: &Sections<'_>,
        memory: &Memory,
    ) -> object::read::Result<()> {
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            let Some(table) = sections.iter().find(|one| one.sh_type(endian) == kind) else {
                continue;
            };
            let names = sections.section(table.link(endian))?;
            // The tables themselves, while they are read.
            let size = table.sh_size(endian).saturating_add(names.sh_size(endian));
            if !has_room(memory, size) {
                continue;
            }
            let added = self.add_table(cache, endian, (table, names), memory);
            memory.native.give(Worth::Names, size);
            added?;
        }
        Ok(())
    }

    fn add_table(
        &mut self,
        cache: &Cache,
        endian: Endianness,
        (table, names): (&SectionHeader64<Endianness>, &SectionHeader64<Endianness>),
        memory: &Memory,
    ) -> object::read::Result<()> {
        let symbols = table.data_as_array::<object::elf::Sym64<Endianness>, _>(endian, cache)?;
        let texts = names.data(endian, cache)?;
        let functions = || {
            symbols.iter().filter_map(|symbol| {
                let (begin, size) = (symbol.st_value(endian), symbol.st_size(endian));
                let is_function = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC) && size > 0;
                let text = texts.get(symbol.st_name(endian) as usize..)?;
                let name = text.split(|byte| *byte == 0).next()?;
                let name = std::str::from_utf8(name).ok().filter(|_| is_function)?;
                Some((begin, begin.checked_add(size)?, name))
            })
        };
        // Counted first: names may overlap in the file, and be longer in all than their table.
        let sum = |(count, length), (.., name): (u64, u64, &str)| (count + 1, length + name.len());
        let (count, length) = functions().fold((0, 0), sum);
        let bytes = (count * size_of::<Named>() + length) as u64;
        if !has_room(memory, bytes) {
            return Ok(());
        }
        self.charged += bytes;
        self.named.reserve_exact(count);
        self.names.reserve_exact(length);
        for (begin, end, name) in functions() {
            if let (Ok(at), Ok(length)) =
                (u32::try_from(self.names.len()), u32::try_from(name.len()))
            {
                self.names.push_str(name);
                let name = (at, length);
                self.named.push(Named { begin, end, name });
            }
        }
        Ok(())
    }

    /// Adds where functions begin, by the table that finds the unwinding rules of each: version 1 with sorted pairs of
    /// offsets from the section's beginning (Linux Standard Base, "`.eh_frame_hdr`"). Stripped files have it, too.
    fn add_begins(
        &mut self,
        cache: &Cache,
        endian: Endianness,
        sections: &Sections<'_>,
        memory: &Memory,
    ) {
        let Some((_, section)) = sections.section_by_name(endian, b".eh_frame_hdr") else {
            return;
        };
        // Each pair of four bytes each gives one number of eight.
        let size = section.sh_size(endian);
        if !has_room(memory, size) {
            return;
        }
        let begins = section.data(endian, cache).ok();
        let begins = begins.and_then(|bytes| begins_in(bytes, section.sh_addr(endian)));
        self.begins = begins.unwrap_or_default();
        self.charged += size;
    }
}

/// Whether the memory has room for so many bytes more, which a file says and which may be any number.
fn has_room(memory: &Memory, bytes: u64) -> bool {
    if bytes > memory.native.limit() {
        memory.native.refuse();
        return false;
    }
    memory.native.take(Worth::Names, bytes)
}

/// Where functions begin by a section `.eh_frame_hdr` at this address.
fn begins_in(bytes: &[u8], address: u64) -> Option<Vec<u64>> {
    /// Version, a relative pointer of 4 bytes, a count of 4 bytes, and pairs of 4 bytes from the section's beginning.
    const USUAL: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    if bytes.get(..4)? != USUAL {
        return None;
    }
    let pairs = bytes.get(12..)?.chunks_exact(8);
    let count = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?) as usize;
    let begin = |pair: &[u8]| {
        let offset = i32::from_le_bytes([pair[0], pair[1], pair[2], pair[3]]);
        address.wrapping_add_signed(i64::from(offset))
    };
    let mut begins: Vec<u64> = pairs.take(count).map(begin).collect();
    begins.sort_unstable();
    Some(begins)
}

/// The file with the symbols that were stripped, by the number of the build.
fn separate_symbols(cache: &Cache, endian: Endianness, sections: &Sections<'_>) -> Option<PathBuf> {
    let mut notes = sections
        .iter()
        .filter_map(|section| section.notes(endian, cache).ok()?);
    let build = notes.find_map(|mut notes| {
        std::iter::from_fn(|| notes.next().ok()?)
            .find(|note| note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID)
    })?;
    let build = build.desc();
    let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest): (String, String) = (text(build.get(..1)?), text(&build[1..]));
    Some(Path::new(SEPARATE).join(first).join(rest + ".debug"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> PathBuf {
        std::env::current_exe().expect("this program")
    }

    #[test]
    fn names_are_charged_to_the_memory_and_given_back() {
        let memory = Memory::default();
        let functions = Functions::of(&own(), &memory);
        assert!(functions.named.len() > 1000 && functions.begins.len() > 1000);
        let kept = functions.named.capacity() * size_of::<Named>()
            + functions.names.capacity()
            + functions.begins.capacity() * size_of::<u64>();
        let charged = memory.native.used();
        assert!(charged >= kept as u64, "{charged} of {kept}");
        assert!(memory.native.most() > charged, "and while they are read");
        functions.release(&memory);
        assert_eq!(memory.native.used(), 0);
    }

    #[test]
    fn what_there_is_no_memory_for_is_left_out() {
        let memory = Memory::new(vmpi::Budget::LEAST);
        // Nearly all is in use.
        memory.native.charge(vmpi::Budget::LEAST / 16 * 13 - 64);
        let used = memory.native.used();
        let functions = Functions::of(&own(), &memory);
        assert!(functions.named.is_empty() && functions.begins.is_empty());
        assert_eq!((functions.names.capacity(), functions.charged), (0, 0));
        assert_eq!(memory.native.used(), used);
        assert!(memory.native.refused() > 0);
    }

    #[test]
    fn a_file_that_is_no_library_has_no_functions() {
        let memory = Memory::default();
        for path in ["/proc/self/maps", "/no/such/file", "/"] {
            let functions = Functions::of(Path::new(path), &memory);
            assert_eq!(functions.name_at(0x1000), None);
            assert_eq!(functions.begin_of(0x1000), None);
        }
        assert_eq!(memory.native.used(), 0);
    }
}
