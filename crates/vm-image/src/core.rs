//! An ELF core file: the memory of a process, written by a debugger or the kernel.

use crate::elf::{Library, Notes};
use crate::fault::Fault;
use crate::layout;
use crate::machine::Machine;
use crate::memory::{Address, Memory, Structures, read_file_at};
use crate::process::is_libjvm;
use crate::roots::Registers;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_PRSTATUS: u32 = 1;
const NT_FILE: u32 = 0x4649_4c45;
/// The most program headers that are accepted; no core has as many.
const MOST_HEADERS: u64 = 1 << 20;
/// The most bytes of notes.
const LONGEST_NOTES: u64 = 1 << 28;
/// The most mapped files.
const MOST_FILES: u64 = 1 << 20;

/// A part of the memory that is in the core.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: Address,
    /// Its end address in the process.
    end: Address,
    /// Its offset in the core.
    offset: u64,
    /// How many of its bytes are in the core.
    len: u64,
}

/// A part of the memory into which a file was mapped.
#[derive(Debug)]
struct Mapped {
    start: Address,
    end: Address,
    /// The offset in the file at which it begins.
    offset: u64,
    file: usize,
}

/// A file that was mapped.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    /// `None` if the file does not exist any more, or was replaced.
    file: Option<File>,
    /// Whether its build id, or its dynamic section, equals that of the mapped file.
    is_checked: bool,
    is_used: Cell<bool>,
}

/// A core file.
#[derive(Debug)]
pub struct Core {
    file: File,
    /// In the order of addresses.
    segments: Vec<Segment>,
    /// In the order of addresses.
    mapped: Vec<Mapped>,
    sources: Vec<Source>,
    registers: Vec<Registers>,
    libjvm: Address,
    notes: Vec<String>,
}

impl Core {
    /// Opens a core. Contents that the core lacks are read from the files that were mapped, if their build id is the
    /// same; `libjvm` is the current path of the VM's library.
    ///
    /// # Errors
    /// The file is not a core of a HotSpot VM.
    pub fn open(path: &Path, libjvm: Option<&Path>) -> Result<Core, Fault> {
        let name = path.display();
        let file = File::open(path).map_err(Fault::io(format!("cannot open {name}")))?;
        let no_core =
            |why: &str| Fault::NoCore(format!("{name} is no ELF core of a HotSpot VM: {why}"));
        let head: [u8; 64] = at(&file, 0).ok_or_else(|| no_core("it is too short"))?;
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return Err(no_core(
                "it does not begin as a little-endian ELF file of 64 bits",
            ));
        }
        let is_core = u16_at(&head, 16) == Some(4);
        let machine = u16_at(&head, 18).filter(|_| is_core);
        let machine = machine.and_then(Machine::of_elf);
        let machine = machine.ok_or_else(|| {
            no_core(
                "it is another kind of ELF file, or of a processor other than x86_64 and aarch64",
            )
        })?;
        let mut core = Core {
            file,
            segments: Vec::new(),
            mapped: Vec::new(),
            sources: Vec::new(),
            registers: Vec::new(),
            libjvm: 0,
            notes: Vec::new(),
        };
        core.read_headers(&head, machine)
            .ok_or_else(|| no_core("its program headers are missing"))?;
        core.segments.sort_unstable_by_key(|segment| segment.start);
        core.mapped.sort_unstable_by_key(|mapped| mapped.start);
        if core.mapped.is_empty() {
            let libjvm = libjvm.ok_or_else(|| {
                Fault::NoCore(format!("{name} does not name the files that were mapped; --libjvm names the library of its VM"))
            })?;
            core.libjvm = core.find_by_layout(libjvm)?;
            core.notes
                .push("the core does not name the files that were mapped".to_owned());
        } else {
            core.open_sources(libjvm);
            let found = core.find_libjvm();
            core.libjvm = found.ok_or_else(|| Fault::NoVm(name.to_string()))?;
        }
        Ok(core)
    }

    /// The address of the first byte of `libjvm.so`.
    pub fn libjvm(&self) -> Address {
        self.libjvm
    }

    /// Registers of the threads.
    pub fn registers(&self) -> &[Registers] {
        &self.registers
    }

    /// Notes about files that should have been read, or that were read without a check.
    pub fn notes(&self) -> Vec<String> {
        let unchecked = self
            .sources
            .iter()
            .filter(|source| source.is_used.get() && !source.is_checked);
        let unchecked = unchecked.map(|source| {
            let path = source.path.display();
            format!("{path} was read for parts that the core lacks; it has no build id by which it could be checked")
        });
        self.notes.iter().cloned().chain(unchecked).collect()
    }

    fn read_headers(&mut self, head: &[u8; 64], machine: Machine) -> Option<()> {
        let table = u64_at(head, 32)?;
        let size = u64::from(u16_at(head, 54)?).max(56);
        let mut count = u64::from(u16_at(head, 56)?);
        if count == 0xffff {
            // If there are more headers than the field can hold, the number is in the first section header.
            let section: [u8; 64] = at(&self.file, u64_at(head, 40)?)?;
            count = u32_at(&section, 44)?.into();
        }
        let mut notes = Vec::new();
        for i in 0..count.min(MOST_HEADERS) {
            let header: [u8; 56] = at(&self.file, table.checked_add(i * size)?)?;
            let (offset, start) = (u64_at(&header, 8)?, u64_at(&header, 16)?);
            let (len, size) = (u64_at(&header, 32)?, u64_at(&header, 40)?);
            match u32_at(&header, 0)? {
                PT_LOAD => self.segments.push(Segment {
                    start,
                    end: start.saturating_add(size),
                    offset,
                    len: len.min(size),
                }),
                PT_NOTE => notes.push((offset, len)),
                _ => {}
            }
        }
        let mut left = LONGEST_NOTES;
        for (offset, len) in notes {
            let there = self.file.metadata().ok()?.len().saturating_sub(offset);
            let len = len.min(there).min(left);
            left -= len;
            let mut bytes = vec![0; len as usize];
            let there = read_file_at(&self.file, &mut bytes, offset);
            self.read_notes(&bytes[..there], machine);
        }
        Some(())
    }

    fn read_notes(&mut self, bytes: &[u8], machine: Machine) {
        for note in Notes(bytes) {
            match (note.kind, note.name) {
                (NT_PRSTATUS, b"CORE\0") => {
                    self.registers.extend(registers(note.body, machine));
                }
                (NT_FILE, b"CORE\0") => drop(self.read_files(note.body)),
                _ => {}
            }
        }
    }

    /// The table of mapped files: a count, a page size, three numbers per file, then the paths.
    fn read_files(&mut self, body: &[u8]) -> Option<()> {
        let (count, page) = (u64_at(body, 0)?, u64_at(body, 8)?);
        let count = count.min(MOST_FILES) as usize;
        let rows = body.get(16..16 + count * 24)?;
        let mut names = body[16 + count * 24..].split(|byte| *byte == 0);
        let mut known: FxHashMap<PathBuf, usize> = FxHashMap::default();
        for row in rows.as_chunks::<24>().0 {
            let name = String::from_utf8_lossy(names.next()?).into_owned();
            let path = PathBuf::from(name);
            let file = *known.entry(path).or_insert_with_key(|path| {
                self.sources.push(Source {
                    path: path.clone(),
                    file: None,
                    is_checked: false,
                    is_used: Cell::new(false),
                });
                self.sources.len() - 1
            });
            self.mapped.push(Mapped {
                start: u64_at(row, 0)?,
                end: u64_at(row, 8)?,
                offset: u64_at(row, 16)?.saturating_mul(page),
                file,
            });
        }
        Some(())
    }

    /// Opens the files that were mapped and have not changed.
    fn open_sources(&mut self, libjvm: Option<&Path>) {
        let mut bases = vec![None; self.sources.len()];
        for mapped in self.mapped.iter().filter(|mapped| mapped.offset == 0) {
            bases[mapped.file].get_or_insert(mapped.start);
        }
        for (i, base) in bases.into_iter().enumerate() {
            let source = &self.sources[i];
            let text = source.path.to_string_lossy().into_owned();
            let is_library = is_libjvm(&text);
            // The class archive is in the same folder as the library.
            let beside = text.ends_with(".jsa").then_some(libjvm).flatten();
            let beside =
                beside.and_then(|libjvm| Some(libjvm.with_file_name(source.path.file_name()?)));
            let path = match libjvm {
                Some(libjvm) if is_library => libjvm.to_owned(),
                _ => beside.unwrap_or_else(|| source.path.clone()),
            };
            let Some(file) = open_file(&path) else {
                if is_library {
                    self.notes.push(format!(
                        "{} is not there (--libjvm names another place)",
                        path.display()
                    ));
                }
                continue;
            };
            let of_core = base.and_then(|base| build_id(&InCore(self), base));
            let of_file = build_id(&InFile(&file), 0);
            let is_checked = of_core.is_some() && of_core == of_file;
            if of_core.is_some() && !is_checked {
                if is_library {
                    let path = path.display();
                    self.notes.push(format!("{path} is not the library of this core, its build id is another one (--libjvm names the right one)"));
                }
                continue;
            }
            self.sources[i] = Source {
                path,
                file: Some(file),
                is_checked,
                is_used: Cell::new(false),
            };
        }
    }

    /// Finds the library of the VM in a core that names no files, and reads from the library what the core lacks.
    fn find_by_layout(&mut self, libjvm: &Path) -> Result<Address, Fault> {
        let name = libjvm.display();
        let file = File::open(libjvm).map_err(Fault::io(format!("cannot open {name}")))?;
        let in_file = InFile(&file);
        let structures = Structures::new(&in_file);
        let found = Library::at(&structures, 0).and_then(|library| {
            let (offset, len) = layout::dynamic(library.segments())?;
            let mut dynamic = vec![0; len as usize];
            (in_file.read(offset, &mut dynamic) == dynamic.len()).then_some(())?;
            let starts = self.segments.iter().map(|segment| segment.start);
            layout::find(&InCore(self), starts, library.segments(), &dynamic)
        });
        let found = found.filter(|parts| !parts.is_empty());
        let found = found.ok_or_else(|| {
            Fault::NoCore(format!("the core does not name the files that were mapped, and {name} is not found in it: it is the library of another VM (--libjvm names the right one), or the core is cut"))
        })?;
        let start = found[0].start;
        self.mapped.extend(found.into_iter().map(|part| Mapped {
            start: part.start,
            end: part.end,
            offset: part.offset,
            file: 0,
        }));
        self.sources.push(Source {
            path: libjvm.to_owned(),
            file: Some(file),
            is_checked: true,
            is_used: Cell::new(false),
        });
        Ok(start)
    }

    fn find_libjvm(&self) -> Option<Address> {
        let mut first = self.mapped.iter().filter(|mapped| mapped.offset == 0);
        let is_library = |mapped: &&Mapped| {
            let path = &self.sources[mapped.file].path;
            is_libjvm(&path.to_string_lossy())
        };
        Some(first.find(is_library)?.start)
    }

    /// The part of the core that has an address.
    fn segment(&self, at: Address) -> Option<&Segment> {
        let next = self.segments.partition_point(|segment| segment.start <= at);
        let segment = self.segments.get(next.checked_sub(1)?)?;
        (at < segment.end).then_some(segment)
    }

    /// Reads bytes that are in the core.
    fn read_core(&self, at: Address, into: &mut [u8]) -> usize {
        let Some(segment) = self.segment(at) else {
            return 0;
        };
        let inside = at - segment.start;
        let there = segment.len.saturating_sub(inside).min(into.len() as u64) as usize;
        match segment.offset.checked_add(inside) {
            Some(offset) => read_file_at(&self.file, &mut into[..there], offset),
            None => 0,
        }
    }

    /// Reads bytes that are in a mapped file and not in the core.
    fn read_file(&self, at: Address, into: &mut [u8]) -> usize {
        // Bytes that should be in the core but are cut off may have been changed after the file was mapped.
        let in_core = |segment: &Segment| at - segment.start < segment.len;
        if self.segment(at).is_some_and(in_core) {
            return 0;
        }
        let next = self.mapped.partition_point(|mapped| mapped.start <= at);
        let mapped = next.checked_sub(1).and_then(|i| self.mapped.get(i));
        let Some(mapped) = mapped.filter(|mapped| at < mapped.end) else {
            return 0;
        };
        let source = &self.sources[mapped.file];
        let len = (mapped.end - at).min(into.len() as u64) as usize;
        let offset = mapped.offset.checked_add(at - mapped.start);
        let (Some(file), Some(offset)) = (&source.file, offset) else {
            return 0;
        };
        source.is_used.set(true);
        read_file_at(file, &mut into[..len], offset)
    }
}

/// Opens a regular file. Opening anything else can wait for ever (a pipe), or make a device do something.
fn open_file(path: &Path) -> Option<File> {
    fs::metadata(path).ok()?.is_file().then_some(())?;
    File::open(path).ok()
}

impl Memory for Core {
    fn read(&self, at: Address, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = at.checked_add(done as u64) else {
                break;
            };
            let count = match self.read_core(at, &mut into[done..]) {
                0 => self.read_file(at, &mut into[done..]),
                count => count,
            };
            if count == 0 {
                break;
            }
            done += count;
        }
        done
    }

    fn next_readable(&self, at: Address) -> Option<Address> {
        if let Some(segment) = self.segment(at)
            && at - segment.start < segment.len
        {
            // After the end of a truncated file, no bytes can be read.
            let there = self.file.metadata().map_or(0, |metadata| metadata.len());
            let offset = segment.offset.checked_add(at - segment.start)?;
            if offset < there {
                return Some(at);
            }
        }
        let next = self.segments.partition_point(|segment| segment.start <= at);
        self.segments.get(next).map(|segment| segment.start)
    }
}

/// What a core itself has, without files.
struct InCore<'c>(&'c Core);

impl Memory for InCore<'_> {
    fn read(&self, at: Address, into: &mut [u8]) -> usize {
        self.0.read_core(at, into)
    }

    fn next_readable(&self, _: Address) -> Option<Address> {
        None
    }
}

/// A file, read as if it were mapped from its beginning; this is correct for the part that contains its notes.
struct InFile<'f>(&'f File);

impl Memory for InFile<'_> {
    fn read(&self, at: Address, into: &mut [u8]) -> usize {
        read_file_at(self.0, into, at)
    }

    fn next_readable(&self, _: Address) -> Option<Address> {
        None
    }
}

fn build_id(memory: &dyn Memory, base: Address) -> Option<Vec<u8>> {
    let memory = Structures::new(memory);
    Library::at(&memory, base)?.build_id()
}

/// The registers of a thread, from its `elf_prstatus`: its id is at offset 32, its registers at 112.
fn registers(body: &[u8], machine: Machine) -> Option<Registers> {
    let words: Vec<u64> = body
        .get(112..)?
        .as_chunks()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    Some(Registers {
        thread: u32_at(body, 32)?,
        stack_pointer: *words.get(machine.stack_pointer())?,
        words,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// This many bytes of a file, or nothing.
fn at<const N: usize>(file: &File, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (read_file_at(file, &mut bytes, offset) == N).then_some(bytes)
}
