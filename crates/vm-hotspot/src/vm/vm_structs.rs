//! Tables that HotSpot exports for debuggers, in every build since JDK 6: the offsets of fields in its structs.

use std::ffi::{CStr, c_char, c_void};

use rustc_hash::FxHashMap;

/// A field: its offset, or its address if it is static.
#[derive(Clone, Copy, Debug)]
struct Place {
    is_static: bool,
    offset: usize,
    address: usize,
    /// Where its type is as text.
    type_text: usize,
}

/// The tables, read once.
#[derive(Debug, Default)]
pub(crate) struct VmStructs {
    fields: FxHashMap<(String, String), Place>,
    sizes: FxHashMap<String, usize>,
    constants: FxHashMap<String, i32>,
}

/// A symbol of the VM, or null. The launcher loads libjvm globally, embedders may not.
pub(crate) fn exported_symbol(name: &CStr) -> *mut c_void {
    // SAFETY: plain symbol lookups; a library that is not loaded stays so.
    unsafe {
        let global = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        if !global.is_null() {
            return global;
        }
        let vm = libc::dlopen(c"libjvm.so".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if vm.is_null() {
            return std::ptr::null_mut();
        }
        libc::dlsym(vm, name.as_ptr())
    }
}

/// The value of an exported variable of one word; `None` if there is no such symbol.
fn exported(name: &CStr) -> Option<usize> {
    let symbol = exported_symbol(name);
    if symbol.is_null() {
        return None;
    }
    // SAFETY: all symbols that are looked up are variables of one word.
    Some(unsafe { symbol.cast::<usize>().read() })
}

/// Reads a `T` at an address; `None` for null.
///
/// # Safety
/// The address is null or holds a `T` of the VM.
pub(crate) unsafe fn read<T: Copy>(address: usize) -> Option<T> {
    if address == 0 {
        return None;
    }
    // SAFETY: the caller's promise; unaligned reads are allowed for.
    Some(unsafe { (address as *const T).read_unaligned() })
}

/// The C string whose address is at `place`.
///
/// # Safety
/// `place` is in one of the VM's tables.
unsafe fn text(place: usize) -> Option<String> {
    // SAFETY: the caller's promise: a pointer to a string constant, or null.
    unsafe {
        let text = read::<*const c_char>(place)?;
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

impl VmStructs {
    /// Reads the tables of the VM in this process.
    pub(crate) fn load() -> Option<Self> {
        let mut found = Self::default();
        let table = exported(c"gHotSpotVMStructs")?;
        let stride = exported(c"gHotSpotVMStructEntryArrayStride")?;
        let at = [
            exported(c"gHotSpotVMStructEntryTypeNameOffset")?,
            exported(c"gHotSpotVMStructEntryFieldNameOffset")?,
            exported(c"gHotSpotVMStructEntryIsStaticOffset")?,
            exported(c"gHotSpotVMStructEntryOffsetOffset")?,
            exported(c"gHotSpotVMStructEntryAddressOffset")?,
            exported(c"gHotSpotVMStructEntryTypeStringOffset")?,
        ];
        // SAFETY: the table ends with an entry without a name, and its exported
        // companions say where in an entry what stands.
        unsafe {
            let mut entry = table;
            while let (Some(kind), Some(field)) = (text(entry + at[0]), text(entry + at[1])) {
                let place = Place {
                    is_static: read::<i32>(entry + at[2])? != 0,
                    offset: read(entry + at[3])?,
                    address: read(entry + at[4])?,
                    type_text: entry + at[5],
                };
                found.fields.insert((kind, field), place);
                entry += stride;
            }
            let stride = exported(c"gHotSpotVMTypeEntryArrayStride")?;
            let name = exported(c"gHotSpotVMTypeEntryTypeNameOffset")?;
            let size = exported(c"gHotSpotVMTypeEntrySizeOffset")?;
            let mut entry = exported(c"gHotSpotVMTypes")?;
            while let Some(kind) = text(entry + name) {
                found.sizes.insert(kind, read(entry + size)?);
                entry += stride;
            }
            let stride = exported(c"gHotSpotVMIntConstantEntryArrayStride")?;
            let name = exported(c"gHotSpotVMIntConstantEntryNameOffset")?;
            let value = exported(c"gHotSpotVMIntConstantEntryValueOffset")?;
            let mut entry = exported(c"gHotSpotVMIntConstants")?;
            while let Some(constant) = text(entry + name) {
                found.constants.insert(constant, read(entry + value)?);
                entry += stride;
            }
        }
        Some(found)
    }

    fn place(&self, kinds: &[&str], field: &str) -> Option<Place> {
        // Struct names change between releases; names of fields do not.
        let key = |kind: &str| (kind.to_owned(), field.to_owned());
        kinds
            .iter()
            .find_map(|kind| self.fields.get(&key(kind)).copied())
    }

    /// Offset of a field in the first of these structs that has it.
    pub(crate) fn offset(&self, kinds: &[&str], field: &str) -> Option<usize> {
        self.place(kinds, field)
            .filter(|place| !place.is_static)
            .map(|place| place.offset)
    }

    /// The type of a field of the first of these structs that has it, as in the VM's sources.
    pub(crate) fn type_of(&self, kinds: &[&str], field: &str) -> Option<String> {
        let place = self.place(kinds, field)?;
        // SAFETY: in the VM's table.
        unsafe { text(place.type_text) }
    }

    /// Address of a static field.
    pub(crate) fn address(&self, kind: &str, field: &str) -> Option<usize> {
        self.place(&[kind], field)
            .filter(|place| place.is_static)
            .map(|place| place.address)
    }

    /// The size of a struct.
    pub(crate) fn size(&self, kind: &str) -> Option<usize> {
        self.sizes.get(kind).copied()
    }

    /// An int constant, by the first of these names.
    pub(crate) fn constant(&self, names: &[&str]) -> Option<i32> {
        names
            .iter()
            .find_map(|name| self.constants.get(*name).copied())
    }

    /// Whether a boolean flag is set, on the command line or by the VM.
    pub(crate) fn flag(&self, wanted: &str) -> Option<bool> {
        const KINDS: &[&str] = &["JVMFlag", "Flag"];
        let kind = *KINDS.iter().find(|kind| self.sizes.contains_key(**kind))?;
        let size = *self.sizes.get(kind)?;
        let (name, value) = (self.offset(KINDS, "_name")?, self.offset(KINDS, "_addr")?);
        // SAFETY: statics of the VM: its table of flags, and how many there are.
        unsafe {
            let table = read::<usize>(self.address(kind, "flags")?)?;
            let count = read::<usize>(self.address(kind, "numFlags")?)?;
            for entry in (0..count).map(|at| table + at * size) {
                if text(entry + name).is_some_and(|name| name == wanted) {
                    return read::<u8>(read::<usize>(entry + value)?).map(|on| on != 0);
                }
            }
        }
        None
    }
}
