//! A VM in an image: its tables, its flags, and how its references and object headers are packed.

use crate::elf::Library;
use crate::fault::Fault;
use crate::machine::Machine;
use crate::memory::{Address, Memory, Structures};
use crate::structs::Tables;
use rustc_hash::FxHashMap;

/// The most flags of a VM.
const MOST_FLAGS: u64 = 1 << 14;

/// Where an object's header contains its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// A wide pointer after the mark word.
    Wide,
    /// 32 bits after the mark word.
    Narrow,
    /// The upper bits of the mark word, from this one on (compact object headers).
    Compact(u32),
}

/// A VM in an image.
pub(crate) struct Vm<'m> {
    pub(crate) memory: Structures<'m>,
    pub(crate) tables: Tables,
    /// The addresses and sizes of the variables of `libjvm.so`.
    variables: Vec<(Address, u64)>,
    /// Addresses of the values of its flags.
    flags: FxHashMap<String, Address>,
    /// Base and shift of 32-bit references; `None` if references have 64 bits.
    pub(crate) narrow: Option<(Address, u32)>,
    klass_base: Address,
    klass_shift: u32,
    pub(crate) header: Header,
    /// Addresses of objects are multiples of this.
    pub(crate) alignment: u64,
    pub(crate) machine: Machine,
}

impl<'m> Vm<'m> {
    /// The VM whose library is mapped at `base`.
    pub(crate) fn open(memory: &'m dyn Memory, base: Address) -> Result<Vm<'m>, Fault> {
        let memory = Structures::new(memory);
        let no_header = || Fault::NoTables {
            what: "ELF header".to_owned(),
        };
        let machine = base.checked_add(18).and_then(|at| memory.u16(at));
        let machine = machine.and_then(Machine::of_elf).ok_or_else(no_header)?;
        let (tables, variables) = {
            let library = Library::at(&memory, base).ok_or_else(no_header)?;
            (Tables::read(&memory, &library)?, library.variables())
        };
        let flags = flags(&memory, &tables)?;
        let mut vm = Vm {
            memory,
            tables,
            variables,
            flags,
            narrow: None,
            klass_base: 0,
            klass_shift: 0,
            header: Header::Wide,
            alignment: 8,
            machine,
        };
        vm.read_layout()?;
        Ok(vm)
    }

    fn read_layout(&mut self) -> Result<(), Fault> {
        let number = |vm: &Self, names: &[&str]| {
            let at = vm.tables.address(names)?;
            let what = "the packing of references";
            vm.memory.u64(at).ok_or(Fault::Senseless { what })
        };
        let shift = |vm: &Self, names: &[&str]| {
            let at = vm.tables.address(names)?;
            let what = "the packing of references";
            let shift = vm.memory.u32(at).filter(|shift| *shift < 32);
            shift.ok_or(Fault::Senseless { what })
        };
        if self.is_set("UseCompressedOops") {
            let base = number(
                self,
                &[
                    "CompressedOops._narrow_oop._base",
                    "CompressedOops._base",
                    "Universe._narrow_oop._base",
                ],
            )?;
            let shift = shift(
                self,
                &[
                    "CompressedOops._narrow_oop._shift",
                    "CompressedOops._shift",
                    "Universe._narrow_oop._shift",
                ],
            )?;
            self.narrow = Some((base, shift));
        }
        // With compact headers, JDK 25 always compresses class pointers.
        let compact = self.is_set("UseCompactObjectHeaders");
        if compact || self.is_set("UseCompressedClassPointers") {
            self.klass_base = number(
                self,
                &[
                    "CompressedKlassPointers._narrow_klass._base",
                    "CompressedKlassPointers._base",
                    "Universe._narrow_klass._base",
                ],
            )?;
            self.klass_shift = shift(
                self,
                &[
                    "CompressedKlassPointers._narrow_klass._shift",
                    "CompressedKlassPointers._shift",
                    "Universe._narrow_klass._shift",
                ],
            )?;
            self.header = Header::Narrow;
        }
        if compact {
            let what = "markWord::klass_shift";
            let shift = self.tables.constant(what).unwrap_or(0);
            if !(32..64).contains(&shift) {
                return Err(Fault::Senseless { what });
            }
            self.header = Header::Compact(shift as u32);
        }
        let alignment = self.flag("ObjectAlignmentInBytes").unwrap_or(8) & 0xffff;
        if !alignment.is_power_of_two() || !(8..=256).contains(&alignment) {
            let what = "the alignment of objects";
            return Err(Fault::Senseless { what });
        }
        self.alignment = alignment;
        Ok(())
    }

    /// All words of the variables of `libjvm.so`, with their addresses.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (Address, u64)> {
        let word = |at: Address| Some((at, self.memory.u64(at)?));
        self.variables.iter().flat_map(move |(start, size)| {
            let start = start.next_multiple_of(8);
            (0..size / 8).filter_map(move |i| word(start.checked_add(i * 8)?))
        })
    }

    /// The first eight bytes of a flag's value.
    fn flag(&self, name: &str) -> Option<u64> {
        self.memory.u64(*self.flags.get(name)?)
    }

    /// Whether this VM has a flag.
    pub(crate) fn has_flag(&self, name: &str) -> bool {
        self.flags.contains_key(name)
    }

    /// Whether a flag is on; a flag that this VM does not have is off.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        let value = self.flags.get(name).and_then(|at| self.memory.u8(*at));
        value == Some(1)
    }

    /// `17.0.15+6-Debian-1deb12u1`, or as much of it as the VM provides.
    pub(crate) fn version(&self) -> String {
        let names = [
            "Abstract_VM_Version._s_vm_release",
            "VM_Version._s_vm_release",
        ];
        let at = names.iter().find_map(|name| self.tables.find_static(name));
        let text = at.and_then(|at| self.memory.text(self.memory.u64(at)?));
        text.unwrap_or_else(|| "of unknown version".to_owned())
    }

    /// Whether a number in a compressed stream contains no zero byte, as from JDK 20 on. (JDK 8 uses another version
    /// numbering and has the old encoding.)
    pub(crate) fn excludes_zero(&self) -> bool {
        let major = self
            .tables
            .find_static("Abstract_VM_Version._vm_major_version");
        let major = major.and_then(|at| self.memory.u32(at));
        major >= Some(20) && self.tables.find("GrowableArrayBase._len").is_some()
    }

    /// The class of an object, from its first 16 bytes.
    pub(crate) fn klass(&self, mark: u64, word: u64) -> Address {
        match self.header {
            Header::Wide => word,
            Header::Narrow => self.wide_klass(word & 0xffff_ffff),
            Header::Compact(shift) => self.wide_klass(mark >> shift),
        }
    }

    fn wide_klass(&self, narrow: u64) -> Address {
        if narrow == 0 {
            return 0;
        }
        self.klass_base.wrapping_add(narrow << self.klass_shift)
    }

    /// The offset of the length in arrays: after the class, instead of the class, or after a gap.
    pub(crate) fn length_offset(&self) -> usize {
        match self.header {
            Header::Wide => 16,
            Header::Narrow => 12,
            Header::Compact(_) => 8,
        }
    }

    /// Bytes of a reference in an object.
    pub(crate) fn reference_size(&self) -> usize {
        if self.narrow.is_some() { 4 } else { 8 }
    }

    /// A 32-bit reference as an address.
    pub(crate) fn widen(&self, narrow: u32) -> Address {
        match self.narrow {
            Some((base, shift)) if narrow != 0 => base.wrapping_add(u64::from(narrow) << shift),
            _ => 0,
        }
    }

    /// The reference in a field of an object.
    pub(crate) fn reference_at(&self, at: Address) -> Option<Address> {
        if self.narrow.is_some() {
            self.memory.u32(at).map(|narrow| self.widen(narrow))
        } else {
            self.memory.u64(at)
        }
    }

    /// The reference in a field of a structure of the VM: the field itself or, if it is a handle, the word that it
    /// points to. 0 for none. (`Klass._java_mirror` is an `oop` in JDK 8 and an `OopHandle` later.)
    pub(crate) fn reference_of(&self, structure: Address, field: &str) -> Option<Address> {
        let value = self
            .memory
            .u64(structure.checked_add(self.tables.find(field)?)?)?;
        if value != 0 && self.tables.kind(field) == "OopHandle" {
            // `OopHandle` consists only of its pointer (JDK 17 to 25 export its offset 0).
            let inner = self.tables.find("OopHandle._obj").unwrap_or(0);
            return self.memory.u64(value.checked_add(inner)?);
        }
        Some(value)
    }
}

/// Names of flags and addresses of their values.
fn flags(memory: &Structures<'_>, tables: &Tables) -> Result<FxHashMap<String, Address>, Fault> {
    let what = "the table of flags";
    let either = |rest: &str| [format!("JVMFlag.{rest}"), format!("Flag.{rest}")];
    let address = |rest: &str| {
        let [new, old] = either(rest);
        tables.address(&[&new, &old])
    };
    let offset = |rest: &str| {
        let [new, old] = either(rest);
        tables.offset(&[&new, &old])
    };
    let size = tables.size("JVMFlag").or_else(|_| tables.size("Flag"))?;
    let (name, value) = (offset("_name")?, offset("_addr")?);
    let (Some(first), Some(count)) = (
        memory.pointer(address("flags")?),
        memory.u64(address("numFlags")?),
    ) else {
        return Err(Fault::Senseless { what });
    };
    let mut flags = FxHashMap::default();
    for i in 0..count.min(MOST_FLAGS) {
        let read = || {
            let flag = first.checked_add(i * size)?;
            // The last row of the table has no name.
            let name = memory.text(memory.u64(flag + name)?)?;
            Some((name, memory.u64(flag + value)?))
        };
        flags.extend(read());
    }
    if flags.is_empty() {
        return Err(Fault::Senseless { what });
    }
    Ok(flags)
}
