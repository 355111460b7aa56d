//! One agent library for glibc from 2.17 on and for musl: what it needs is compared with what both have.

use std::collections::BTreeSet;

use object::read::elf::{Dyn, ElfFile64, FileHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectSymbol, elf};

/// Libraries that an agent may name. musl's loader takes each of these names as its own.
const LIBRARIES: [&str; 5] = [
    "libc.so.6",
    "libdl.so.2",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];

/// The newest glibc that an agent may need: that of RHEL 7.
const GLIBC: [u32; 2] = [2, 17];

/// Functions that have a twin whose name ends with 64, which musl's loader takes as the function itself:
/// its file offsets always have 64 bits.
const WITH_64: [&str; 17] = [
    "__fxstat",
    "__fxstatat",
    "__lxstat",
    "__xstat",
    "fopen",
    "fstat",
    "fstatat",
    "ftruncate",
    "lseek",
    "lstat",
    "mmap",
    "open",
    "openat",
    "pread",
    "pwrite",
    "readdir",
    "stat",
];

type Elf<'a> = ElfFile64<'a, LittleEndian>;

/// A symbol that a library takes from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Such as `GLIBC_2.17`, if it has a version.
    pub version: Option<String>,
    /// The library loads without it.
    pub weak: bool,
}

/// What a library needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// File names of other libraries.
    pub libraries: Vec<String>,
    /// Symbols of other libraries.
    pub symbols: Vec<Symbol>,
}

/// What a library needs, by its dynamic section.
///
/// # Errors
/// It is no such library.
pub fn needs(bytes: &[u8]) -> Result<Needs, String> {
    read(bytes).map_err(|error| error.to_string())
}

fn read(bytes: &[u8]) -> object::read::Result<Needs> {
    let file = Elf::parse(bytes)?;
    let endian = file.endian();
    let sections = file.elf_section_table();
    let mut needs = Needs::default();
    if let Some((entries, strings)) = sections.dynamic(endian, bytes)? {
        let strings = sections.strings(endian, bytes, strings)?;
        for entry in entries
            .iter()
            .filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED))
        {
            let name = entry.string(endian, strings)?;
            needs
                .libraries
                .push(String::from_utf8_lossy(name).into_owned());
        }
    }
    let versions = sections.versions(endian, bytes)?;
    for symbol in file.dynamic_symbols().filter(ObjectSymbol::is_undefined) {
        let name = symbol.name()?.to_owned();
        let version = match &versions {
            Some(table) => table.version(table.version_index(endian, symbol.index()))?,
            None => None,
        };
        let version = version.map(|version| String::from_utf8_lossy(version.name()).into_owned());
        if !name.is_empty() {
            let weak = symbol.is_weak();
            needs.symbols.push(Symbol {
                name,
                version,
                weak,
            });
        }
    }
    Ok(needs)
}

/// What would keep a library from being loaded by one of the C libraries, if musl has these functions.
pub fn problems(needs: &Needs, musl: &BTreeSet<String>) -> Vec<String> {
    let libraries = needs.libraries.iter();
    let mut found: Vec<String> = libraries
        .filter(|name| !LIBRARIES.contains(&name.as_str()))
        .map(|name| format!("needs the library {name}, which not every system has"))
        .collect();
    for Symbol {
        name,
        version,
        weak,
    } in &needs.symbols
    {
        let number = version
            .as_deref()
            .and_then(|text| text.strip_prefix("GLIBC_"));
        let is_old = number.is_none_or(|text| {
            let parts = text.split('.').map(|part| part.parse().unwrap_or(u32::MAX));
            parts.collect::<Vec<u32>>() <= GLIBC.to_vec()
        });
        if !is_old {
            let version = version.as_deref().unwrap_or_default();
            found.push(format!(
                "needs {name} of {version}, which is newer than 2.17"
            ));
        }
        let twin = name
            .strip_suffix("64")
            .filter(|twin| WITH_64.contains(twin));
        if !weak && !musl.contains(name) && !twin.is_some_and(|twin| musl.contains(twin)) {
            found.push(format!("needs {name}, which musl does not have"));
        }
    }
    found
}

/// Removes the entries by which a library names another one; whether there was one.
///
/// `__tls_get_addr` is in glibc's loader, so linkers name the loader, which is always there under glibc
/// and has another name under musl.
///
/// # Errors
/// It is no such library.
pub fn remove_library(bytes: &mut [u8], name: &str) -> Result<bool, String> {
    let fault = |error: object::read::Error| error.to_string();
    let file = Elf::parse(&*bytes).map_err(fault)?;
    let endian = file.endian();
    let sections = file.elf_section_table();
    let Some((entries, strings)) = sections.dynamic(endian, &*bytes).map_err(fault)? else {
        return Ok(false);
    };
    let strings = sections.strings(endian, &*bytes, strings).map_err(fault)?;
    let named = |entry: &elf::Dyn64<LittleEndian>| {
        entry.tag32(endian) == Some(elf::DT_NEEDED)
            && entry.string(endian, strings) == Ok(name.as_bytes())
    };
    let kept: Vec<elf::Dyn64<LittleEndian>> = entries
        .iter()
        .filter(|entry| !named(entry))
        .copied()
        .collect();
    let is_there = kept.len() < entries.len();
    let dynamic = sections
        .iter()
        .find(|section| section.sh_type(endian) == elf::SHT_DYNAMIC);
    let start = dynamic.map_or(0, |section| section.sh_offset(endian));
    let (start, all) = (usize::try_from(start).unwrap_or(usize::MAX), entries.len());
    let mut table = Vec::new();
    for entry in &kept {
        table.extend_from_slice(&entry.d_tag.get(endian).to_le_bytes());
        table.extend_from_slice(&entry.d_val.get(endian).to_le_bytes());
    }
    // The table ends with an entry of zeros, and may have more of them.
    table.resize(all * size_of::<elf::Dyn64<LittleEndian>>(), 0);
    let place = bytes.get_mut(start..start + table.len());
    place
        .ok_or("a section outside of the file")?
        .copy_from_slice(&table);
    Ok(is_there)
}

/// Name of glibc's loader on an architecture.
///
/// # Errors
/// It is no such library.
pub fn loader(bytes: &[u8]) -> Result<&'static str, String> {
    let file = Elf::parse(bytes).map_err(|error| error.to_string())?;
    match file.elf_header().e_machine(file.endian()) {
        elf::EM_X86_64 => Ok("ld-linux-x86-64.so.2"),
        elf::EM_AARCH64 => Ok("ld-linux-aarch64.so.1"),
        machine => Err(format!("an unknown machine: {machine}")),
    }
}

/// Names of the functions in a static library, from the table that `ar` puts in front.
///
/// # Errors
/// There is no such table.
pub fn archive_symbols(bytes: &[u8]) -> Result<BTreeSet<String>, String> {
    let table = || {
        let member = bytes.strip_prefix(b"!<arch>\n")?;
        let size = member.strip_prefix(b"/               ")?.get(32..42)?;
        let size: usize = std::str::from_utf8(size).ok()?.trim().parse().ok()?;
        let table = member.get(60..60 + size)?;
        let count = u32::from_be_bytes(table.get(..4)?.try_into().ok()?) as usize;
        let names = table.get(4 + 4 * count..)?.split(|byte| *byte == 0);
        let names = names
            .take(count)
            .map(|name| String::from_utf8_lossy(name).into_owned());
        Some(names.collect())
    };
    table().ok_or_else(|| "no archive with a table of symbols".to_owned())
}
