//! Names of native functions and their libraries. Neither an allocation nor a signal handler looks them up: a thread of the
//! agent does, a moment after the stack was taken.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locks::{Mutex, MutexGuard, Rank};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// Libraries that only pass an allocation on: it is counted for who called them.
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

/// Where an address is.
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

/// Functions of a file.
#[derive(Default)]
struct Functions {
    /// Those with a name: begin, end and name, by begin.
    named: Vec<(u64, u64, String)>,
    /// Where functions begin, with or without a name, in ascending order.
    begins: Vec<u64>,
}

/// What was looked up.
pub(crate) struct Symbols {
    files: FxHashMap<PathBuf, Functions>,
    known: FxHashMap<usize, Option<Place>>,
    /// How many libraries had come and gone when addresses were last forgotten.
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
            changes: 0,
        }
    }

    /// Forgets addresses: other libraries may be there now.
    pub(super) fn forget_addresses(&mut self) {
        self.known.clear();
    }

    /// Forgets addresses if a library has come or gone since the last call. Whether one has.
    pub(crate) fn follow_libraries(&mut self) -> bool {
        let changes = changes_of_libraries();
        let is_new = changes != self.changes;
        if is_new {
            self.changes = changes;
            self.forget_addresses();
        }
        is_new
    }

    /// Where the call that returns to `pc` is; `None` in no library, as in the VM's own code
    /// that calls native methods.
    pub(crate) fn place(&mut self, pc: usize) -> Option<Place> {
        if let Some(place) = self.known.get(&pc) {
            return place.clone();
        }
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        let place = self.look_up(pc.wrapping_sub(1));
        self.known.insert(pc, place.clone());
        place
    }

    /// As [`Symbols::place`], of an instruction anywhere in a function: one without a name is called by its beginning.
    pub(crate) fn place_in_function(&mut self, pc: usize) -> Option<Place> {
        let mut place = self.place(pc)?;
        if !place.function.starts_with("+0x") {
            return Some(place);
        }
        let (path, bias) = loaded_at(pc.wrapping_sub(1))?;
        let offset = (pc.wrapping_sub(1) - bias) as u64;
        let begins = self.files.get(&path).map(|file| &*file.begins);
        let begins = begins.unwrap_or_default();
        let after = begins.partition_point(|begin| *begin <= offset);
        place.function = match after.checked_sub(1) {
            Some(at) => format!("+0x{:x}", begins[at]),
            None => NO_NAME.to_owned(),
        };
        self.known.insert(pc, Some(place.clone()));
        Some(place)
    }

    fn look_up(&mut self, address: usize) -> Option<Place> {
        let (path, bias) = loaded_at(address)?;
        let offset = (address - bias) as u64;
        let name = path.file_name().map(|name| name.to_string_lossy());
        let function = self
            .in_file(&path, offset)
            .map_or_else(|| format!("+0x{offset:x}"), readable);
        Some(Place {
            library: name.as_deref().unwrap_or("unknown").into(),
            function,
        })
    }

    /// The name that the file's own tables of symbols have.
    fn in_file(&mut self, path: &Path, offset: u64) -> Option<&str> {
        if !self.files.contains_key(path) {
            // A program may load libraries of other names for ever.
            if self.files.len() >= MOST_FILES {
                self.files.clear();
            }
            let functions = functions_of(path).unwrap_or_default();
            self.files.insert(path.to_owned(), functions);
        }
        let functions = &self.files.get(path)?.named;
        let after = functions.partition_point(|(begin, ..)| *begin <= offset);
        let (_, end, name) = functions.get(after.checked_sub(1)?)?;
        (offset < *end).then_some(name)
    }
}

/// A search in the list of loaded files, and its result.
struct Search {
    address: usize,
    /// What is added to the addresses of the file.
    bias: usize,
    name: [u8; 4096],
    length: usize,
}

/// The file that is loaded at an address, and what was added to the addresses in it.
fn loaded_at(address: usize) -> Option<(PathBuf, usize)> {
    let mut search = Search {
        address,
        bias: 0,
        name: [0; 4096],
        length: 0,
    };
    // SAFETY: the function gets the pointer back as long as the call lasts.
    let found = unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    if found == 0 {
        return None;
    }
    let path = match search.length {
        // The program itself has no name.
        0 => std::fs::read_link("/proc/self/exe").ok()?,
        length => PathBuf::from(OsStr::from_bytes(&search.name[..length])),
    };
    Some((path, search.bias))
}

/// Called for each loaded file until it gives another number than 0. No file comes or goes meanwhile, so nothing
/// is allocated here: a thread that has the lock of the allocator might wait for the linker.
unsafe extern "C" fn look(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the linker's promise, and that of `loaded_at`.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: there are so many headers.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let bias = info.dlpi_addr as usize;
    let is_here = |header: &libc::Elf64_Phdr| {
        let begin = bias.wrapping_add(header.p_vaddr as usize);
        let offset = search.address.wrapping_sub(begin);
        let is_code = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
        is_code && offset < header.p_memsz as usize
    };
    if !headers.iter().any(is_here) {
        return 0;
    }
    search.bias = bias;
    if !info.dlpi_name.is_null() {
        // SAFETY: a text of the linker's.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        search.length = name.len().min(search.name.len());
        search.name[..search.length].copy_from_slice(&name[..search.length]);
    }
    1
}

/// Where systems keep the symbols that were stripped from libraries, by the number of the build.
const SEPARATE: &str = "/usr/lib/debug/.build-id";

fn functions_of(path: &Path) -> Option<Functions> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let mut named = named_in(&file);
    if file.symbols().next().is_none()
        && let Some(path) = separate_symbols(&file)
        && let Ok(bytes) = std::fs::read(path)
        && let Ok(file) = object::File::parse(&*bytes)
    {
        named.extend(named_in(&file));
    }
    named.sort();
    Some(Functions {
        named,
        begins: begins_of(&file).unwrap_or_default(),
    })
}

fn separate_symbols(file: &object::File<'_>) -> Option<PathBuf> {
    let build = file.build_id().ok()??;
    let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest): (String, String) = (text(build.get(..1)?), text(&build[1..]));
    Some(Path::new(SEPARATE).join(first).join(rest + ".debug"))
}

fn named_in(file: &object::File<'_>) -> Vec<(u64, u64, String)> {
    // A stripped file has only what it exports.
    let symbols = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
    let named = symbols.filter_map(|symbol| {
        let (begin, size) = (symbol.address(), symbol.size());
        let name = symbol.name().ok()?;
        Some((begin, begin.checked_add(size)?, name.to_owned()))
    });
    named.collect()
}

/// Where functions begin, by the table that finds the unwinding rules of each: version 1 with sorted pairs of offsets
/// from the section's beginning (Linux Standard Base, "`.eh_frame_hdr`"). Stripped files have it, too.
fn begins_of(file: &object::File<'_>) -> Option<Vec<u64>> {
    /// Version, a relative pointer of 4 bytes, a count of 4 bytes, and pairs of 4 bytes from the section's beginning.
    const USUAL: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    let section = file.section_by_name(".eh_frame_hdr")?;
    let bytes = section.data().ok()?;
    if bytes.get(..4)? != USUAL {
        return None;
    }
    let pairs = bytes.get(12..)?.chunks_exact(8);
    let count = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?) as usize;
    let begin = |pair: &[u8]| {
        let offset = i32::from_le_bytes([pair[0], pair[1], pair[2], pair[3]]);
        section.address().wrapping_add_signed(i64::from(offset))
    };
    let mut begins: Vec<u64> = pairs.take(count).map(begin).collect();
    begins.sort_unstable();
    Some(begins)
}

/// How many libraries were loaded and unloaded in all.
fn changes_of_libraries() -> u64 {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        changes: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker's promise, and that of the caller below.
        unsafe { *changes.cast::<u64>() = (*info).dlpi_adds.wrapping_add((*info).dlpi_subs) };
        1
    }
    let mut changes = 0_u64;
    // SAFETY: the function gets the pointer back as long as the call lasts.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut changes).cast()) };
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
        let mut symbols = Symbols::new();
        let place = symbols.place(libc::strlen as *const () as usize + 1);
        let place = place.expect("a library");
        assert!(place.library.starts_with("libc"), "{place:?}");
        assert!(place.is_carrier(), "{place:?}");
        let own = symbols.place(functions_of as *const () as usize + 1);
        let own = own.expect("a library");
        assert!(own.function.contains("functions_of"), "{own:?}");
        assert_eq!(symbols.place(17), None);
        // Data of a library is no code.
        let data = symbols.place((&raw const ALL).addr() + 1);
        assert_eq!(data, None);
    }

    #[test]
    fn a_function_without_a_name_is_called_by_its_beginning() {
        let mut symbols = Symbols::new();
        let begin = begins_of as *const () as usize;
        symbols.place(begin + 1).expect("a library");
        for file in symbols.files.values_mut() {
            file.named.clear();
        }
        symbols.forget_addresses();
        let [first, later] = [1, 9].map(|at| symbols.place_in_function(begin + at));
        assert_eq!(first, later);
        let (_, bias) = loaded_at(begin).expect("this program");
        let name = format!("+0x{:x}", begin - bias);
        assert_eq!(first.expect("a library").function, name);
    }
}
