//! Names of native functions and their libraries. Never asked for by an allocation: the
//! agent's thread looks them up, a moment after the stack was seen.

use std::ffi::CStr;
use std::mem::MaybeUninit;
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
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: the pointer is to a live local, which zeros are valid for; the strings
        // are of a loaded object. One that goes in this moment is not guarded against by
        // the linker; its names are copied at once.
        let (path, symbol, base) = unsafe {
            if libc::dladdr(address as *const _, info.as_mut_ptr()) == 0 {
                return None;
            }
            let info = info.assume_init();
            let text = |text: *const libc::c_char| {
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            };
            (
                text(info.dli_fname).unwrap_or_default(),
                text(info.dli_sname),
                info.dli_fbase as usize,
            )
        };
        let offset = (address - base) as u64;
        let path = file_of(&path);
        let name = path.file_name().map(|name| name.to_string_lossy());
        let function = self
            .in_file(&path, offset)
            .or(symbol.as_deref())
            .map_or_else(|| format!("+0x{offset:x}"), readable);
        Some(Place {
            library: name.as_deref().unwrap_or("unknown").into(),
            function,
        })
    }

    /// The name that the file's own table of symbols has, which knows more than what is
    /// exported.
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

/// The program's own name is not a path.
fn file_of(path: &str) -> PathBuf {
    let path = PathBuf::from(path);
    if path.is_file() {
        return path;
    }
    std::fs::read_link("/proc/self/exe").unwrap_or(path)
}

fn functions_of(path: &Path) -> Option<Functions> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let symbols = file
        .symbols()
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
