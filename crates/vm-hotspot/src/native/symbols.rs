//! Names of native functions and their libraries. Neither an allocation nor a signal handler looks them up: a thread of the
//! agent does, a moment after the stack was taken.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locks::{Mutex, MutexGuard, Rank};
use rustc_hash::{FxBuildHasher, FxHashMap};
use vmpi::{Memory, Worth};

use crate::native::functions::Functions;
use crate::native::objects::each_loaded;
use crate::native::own_files::own_file;

/// Libraries that only pass an allocation on; it is counted for their caller.
const CARRIERS: [&str; 8] = [
    "libc.so",
    "libc-2",
    "libstdc++.so",
    "libc++",
    "libgcc_s.so",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
];

/// The library and function of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// File name of the library.
    pub(crate) library: Arc<str>,
    /// Name of the function; `+0x1a2b` behind the library's beginning if it has none.
    pub(crate) function: String,
}

impl Place {
    /// Whether the library only passes allocations on.
    pub(super) fn is_carrier(&self) -> bool {
        CARRIERS.iter().any(|name| self.library.starts_with(name))
    }
}

/// The names that were looked up.
pub(crate) struct Symbols {
    files: FxHashMap<PathBuf, Functions>,
    known: FxHashMap<usize, Option<Place>>,
    /// Bytes that the agent's memory was charged for what is known of addresses.
    charged: u64,
    /// The memory that all of this is charged to.
    memory: Option<Arc<Memory>>,
    /// How many libraries had been loaded and unloaded when addresses were last removed.
    changes: u64,
}

/// Most addresses that are remembered.
const MOST_KNOWN: usize = 1 << 16;
/// Most files whose functions are remembered.
const MOST_FILES: usize = 512;
/// The function in a library that does not state its functions.
pub(crate) const NO_NAME: &str = "(no_name)";

static ALL: Mutex<Symbols> = Mutex::new(Rank::Symbols, Symbols::new());

/// All names of the process.
pub(crate) fn all() -> MutexGuard<'static, Symbols> {
    ALL.lock()
}

impl Symbols {
    const fn new() -> Self {
        Self {
            files: FxHashMap::with_hasher(FxBuildHasher),
            known: FxHashMap::with_hasher(FxBuildHasher),
            charged: 0,
            memory: None,
            changes: 0,
        }
    }

    /// From now on names are charged to this memory. Names of another recording, whose sampler may continue for a
    /// moment after its end, are removed, because this memory was not charged for them.
    fn charge_to(&mut self, memory: &Arc<Memory>) {
        let before = self.memory.as_ref();
        if before.is_none_or(|before| !Arc::ptr_eq(before, memory)) {
            self.forget_all();
            self.memory = Some(Arc::clone(memory));
        }
    }

    /// Removes addresses, because they may belong to other libraries now.
    pub(super) fn forget_addresses(&mut self, memory: &Arc<Memory>) {
        self.charge_to(memory);
        self.known.clear();
        memory
            .native
            .give(Worth::Names, std::mem::take(&mut self.charged));
    }

    /// Removes everything, at the end of the recording with this memory.
    pub(crate) fn release(&mut self, memory: &Arc<Memory>) {
        let charged = self.memory.as_ref();
        if charged.is_some_and(|charged| Arc::ptr_eq(charged, memory)) {
            self.forget_all();
        }
    }

    fn forget_all(&mut self) {
        if let Some(memory) = self.memory.take() {
            memory
                .native
                .give(Worth::Names, std::mem::take(&mut self.charged));
            self.known = FxHashMap::default();
            self.forget_files(&memory);
        }
    }

    fn forget_files(&mut self, memory: &Memory) {
        for (_, functions) in std::mem::take(&mut self.files) {
            functions.release(memory);
        }
    }

    /// Removes addresses if a library was loaded or unloaded since the last call; returns whether one was.
    pub(crate) fn follow_libraries(&mut self, memory: &Arc<Memory>) -> bool {
        let changes = changes_of_libraries();
        let is_new = changes != self.changes;
        if is_new {
            self.changes = changes;
            self.forget_addresses(memory);
        }
        is_new
    }

    /// Where the call that returns to `pc` is; `None` in no library, as in the VM's own code
    /// that calls native methods.
    pub(crate) fn place(&mut self, pc: usize, memory: &Arc<Memory>) -> Option<Place> {
        self.charge_to(memory);
        if let Some(place) = self.known.get(&pc) {
            return place.clone();
        }
        let place = self.look_up(pc.wrapping_sub(1), memory);
        self.remember(pc, place.clone(), memory);
        place
    }

    /// Stores the function of an address, if there is memory for it.
    fn remember(&mut self, pc: usize, place: Option<Place>, memory: &Arc<Memory>) {
        if self.known.len() >= MOST_KNOWN {
            self.forget_addresses(memory);
        }
        let name = place.as_ref().map_or(0, |place| place.function.capacity());
        let bytes = (name + 2 * size_of::<(usize, Option<Place>)>()) as u64;
        if memory.native.take(Worth::Names, bytes) {
            self.charged += bytes;
            self.known.insert(pc, place);
        }
    }

    /// Like [`Symbols::place`], for an instruction anywhere in a function; a function without a name is named by the
    /// offset of its beginning.
    pub(crate) fn place_in_function(&mut self, pc: usize, memory: &Arc<Memory>) -> Option<Place> {
        let mut place = self.place(pc, memory)?;
        if !place.function.starts_with("+0x") {
            return Some(place);
        }
        let (path, bias) = loaded_at(pc.wrapping_sub(1))?;
        let offset = (pc.wrapping_sub(1) - bias) as u64;
        let file = self.files.get(&path);
        place.function = match file.and_then(|file| file.begin_of(offset)) {
            Some(begin) => format!("+0x{begin:x}"),
            None => NO_NAME.to_owned(),
        };
        self.remember(pc, Some(place.clone()), memory);
        Some(place)
    }

    fn look_up(&mut self, address: usize, memory: &Memory) -> Option<Place> {
        let (path, bias) = loaded_at(address)?;
        let offset = (address - bias) as u64;
        let name = path.file_name().map(|name| name.to_string_lossy());
        let function = self
            .in_file(&path, offset, memory)
            .map_or_else(|| format!("+0x{offset:x}"), readable);
        Some(Place {
            library: name.as_deref().unwrap_or("unknown").into(),
            function,
        })
    }

    /// The name that the file's own tables of symbols have.
    fn in_file(&mut self, path: &Path, offset: u64, memory: &Memory) -> Option<&str> {
        if !self.files.contains_key(path) {
            // A program may load libraries with new names without limit.
            if self.files.len() >= MOST_FILES {
                self.forget_files(memory);
            }
            self.files
                .insert(path.to_owned(), Functions::of(path, memory));
        }
        self.files.get(path)?.name_at(offset)
    }
}

/// The file that is loaded at an address, and what was added to the addresses in it.
fn loaded_at(address: usize) -> Option<(PathBuf, usize)> {
    let mut name = [0; 4096];
    let mut found = None;
    each_loaded(|info, headers| {
        let bias = info.dlpi_addr as usize;
        let is_here = |header: &libc::Elf64_Phdr| {
            let begin = bias.wrapping_add(header.p_vaddr as usize);
            let offset = address.wrapping_sub(begin);
            let is_code = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
            is_code && offset < header.p_memsz as usize
        };
        if !headers.iter().any(is_here) {
            return false;
        }
        let mut length = 0;
        if !info.dlpi_name.is_null() {
            // SAFETY: a text of the linker's.
            let text = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
            length = text.len().min(name.len());
            name[..length].copy_from_slice(&text[..length]);
        }
        found = Some((length, bias));
        true
    });
    let (length, bias) = found?;
    let path = match length {
        // The program itself has no name.
        0 => std::fs::read_link(own_file("exe")).ok()?,
        length => PathBuf::from(OsStr::from_bytes(&name[..length])),
    };
    Some((path, bias))
}

/// How many libraries were loaded and unloaded in all.
fn changes_of_libraries() -> u64 {
    let mut changes = 0;
    each_loaded(|info, _| {
        changes = info.dlpi_adds.wrapping_add(info.dlpi_subs);
        true
    });
    changes
}

/// A C++ name without arguments and templates, without the endings of the compiler's
/// copies, and without a version, so that it can stand where a Java method's name stands.
pub(crate) fn readable(name: &str) -> String {
    let name = name
        .split(['.', '@'])
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(name);
    let options = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type();
    let plain = cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok());
    let plain = plain.as_deref().unwrap_or(name);
    let mut text = String::with_capacity(plain.len());
    let mut depth = 0_usize;
    for letter in plain.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' | ')' | '.' | '\n' => {}
            ' ' if depth == 0 => text.push('_'),
            _ if depth == 0 => text.push(letter),
            _ => {}
        }
    }
    if text.is_empty() {
        name.to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_stand_where_a_methods_name_stands() {
        for (name, expected) in [
            ("malloc", "malloc"),
            ("leak.part.0", "leak"),
            ("pthread_cond_wait@@GLIBC_2.3.2", "pthread_cond_wait"),
            ("_ZN2os6mallocEm8MEMFLAGS", "os::malloc"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector::push_back",
            ),
            ("_Znwm", "operator_new"),
        ] {
            assert_eq!(readable(name), expected);
        }
    }

    #[test]
    fn an_address_is_found_in_its_library() {
        let memory = Arc::new(Memory::default());
        let mut symbols = Symbols::new();
        let mut place = |address: usize| symbols.place(address, &memory);
        let libc = place(libc::strlen as *const () as usize + 1).expect("a library");
        assert!(libc.library.starts_with("libc"), "{libc:?}");
        assert!(libc.is_carrier(), "{libc:?}");
        let own = place(loaded_at as *const () as usize + 1).expect("a library");
        assert!(own.function.contains("loaded_at"), "{own:?}");
        assert_eq!(place(17), None);
        // Data of a library is not code.
        assert_eq!(place((&raw const ALL).addr() + 1), None);
        assert!(memory.native.used() > 0);
        symbols.release(&memory);
        assert_eq!(memory.native.used(), 0);
    }

    #[test]
    fn a_memory_gets_back_no_more_than_it_was_charged() {
        let [first, second] = [(); 2].map(|()| Arc::new(Memory::default()));
        let mut symbols = Symbols::new();
        let address = loaded_at as *const () as usize + 1;
        symbols.place(address, &first).expect("a library");
        symbols.release(&first);
        // The sampler of the first recording is behind, and then the second one begins.
        symbols.place(address, &first).expect("a library");
        symbols.place(17, &second);
        assert!(second.native.used() > 0);
        // It is behind even more, and the second one begins anew.
        symbols.place(address, &first).expect("a library");
        assert_eq!(second.native.used(), 0);
        symbols.place(address, &second).expect("a library");
        assert_eq!(first.native.used(), 0);
        symbols.release(&first);
        symbols.forget_addresses(&second);
        symbols.release(&second);
        assert_eq!(second.native.used(), 0);
    }

    #[test]
    fn without_memory_a_function_has_no_name_and_nothing_is_remembered() {
        let memory = Arc::new(Memory::new(vmpi::Budget::LEAST));
        memory.native.charge(vmpi::Budget::LEAST);
        let mut symbols = Symbols::new();
        let address = loaded_at as *const () as usize + 1;
        let place = symbols.place_in_function(address, &memory);
        assert_eq!(place.expect("a library").function, NO_NAME);
        assert!(symbols.known.is_empty());
        assert_eq!(memory.native.used(), vmpi::Budget::LEAST);
    }

    #[test]
    fn a_function_without_a_name_is_called_by_its_beginning() {
        let memory = Arc::new(Memory::default());
        let mut symbols = Symbols::new();
        let begin = loaded_at as *const () as usize;
        symbols.place(begin + 1, &memory).expect("a library");
        for file in symbols.files.values_mut() {
            file.forget_names();
        }
        symbols.forget_addresses(&memory);
        let [first, later] = [1, 9].map(|at| symbols.place_in_function(begin + at, &memory));
        assert_eq!(first, later);
        let (_, bias) = loaded_at(begin).expect("this program");
        let name = format!("+0x{:x}", begin - bias);
        assert_eq!(first.expect("a library").function, name);
    }
}
