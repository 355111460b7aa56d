//! Names of native functions and their libraries. An allocation never looks them up: the
//! agent's thread does, a moment after the stack was seen.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::{Object, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;

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
pub(super) struct Place {
    /// File name of the library.
    pub(super) library: Arc<str>,
    /// Name of the function; `+0x1a2b` behind the library's beginning if it has none.
    pub(super) function: String,
}

impl Place {
    /// Whether the library only passes allocations on.
    pub(super) fn is_carrier(&self) -> bool {
        CARRIERS.iter().any(|name| self.library.starts_with(name))
    }
}

/// Functions of a file: begin, end and name, by begin.
type Functions = Vec<(u64, u64, String)>;

/// What was looked up.
#[derive(Default)]
pub(super) struct Symbols {
    files: FxHashMap<PathBuf, Functions>,
    known: FxHashMap<usize, Option<Place>>,
}

impl Symbols {
    /// Forgets addresses: other libraries may be there now.
    pub(super) fn forget_addresses(&mut self) {
        self.known.clear();
    }

    /// Where the call that returns to `pc` is; `None` in no library, as in the VM's own code
    /// that calls native methods.
    pub(super) fn place(&mut self, pc: usize) -> Option<Place> {
        if let Some(place) = self.known.get(&pc) {
            return place.clone();
        }
        let place = self.look_up(pc.wrapping_sub(1));
        self.known.insert(pc, place.clone());
        place
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
            let functions = functions_of(path).unwrap_or_default();
            self.files.insert(path.to_owned(), functions);
        }
        let functions = self.files.get(path)?;
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
        header.p_type == libc::PT_LOAD && offset < header.p_memsz as usize
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

fn functions_of(path: &Path) -> Option<Functions> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    // A stripped file has only what it exports.
    let symbols = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text);
    let mut functions: Functions = symbols
        .filter(|symbol| symbol.size() > 0)
        .filter_map(|symbol| {
            let (begin, size) = (symbol.address(), symbol.size());
            Some((
                begin,
                begin.checked_add(size)?,
                symbol.name().ok()?.to_owned(),
            ))
        })
        .collect();
    functions.sort();
    Some(functions)
}

/// A C++ name without arguments and templates, and without the endings of the compiler's
/// copies, so that it can stand where a Java method's name stands.
fn readable(name: &str) -> String {
    let name = name
        .split('.')
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
        let mut symbols = Symbols::default();
        let place = symbols.place(libc::strlen as *const () as usize + 1);
        let place = place.expect("a library");
        assert!(place.library.starts_with("libc"), "{place:?}");
        assert!(place.is_carrier(), "{place:?}");
        let own = symbols.place(functions_of as *const () as usize + 1);
        let own = own.expect("a library");
        assert!(own.function.contains("functions_of"), "{own:?}");
        assert_eq!(symbols.place(17), None);
    }
}
