//! The fields of a class, in both formats of HotSpot: rows of six 16-bit numbers up to JDK 20, a compressed stream of
//! numbers from 21 on.

use crate::memory::Address;
use crate::numbers::Numbers;
use crate::symbols::Symbols;
use crate::vm::Vm;
use hprof::BasicType;

/// The most bytes of the fields of a class.
const LONGEST: u32 = 1 << 23;
const STATIC: u32 = 8;
/// The flag of a row whose generic signature is after all rows (JDK 8 to 20).
const HAS_GENERIC_SIGNATURE: u32 = 2048;
/// For classes with more fields than this, JDK 26 has the position of a search table after the counts.
const SEARCHED_FROM: u32 = 16;

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The symbol of its name.
    pub(crate) name: Address,
    pub(crate) kind: BasicType,
    /// Its offset in the object or, for a static field, in the class object.
    pub(crate) offset: u32,
    pub(crate) is_static: bool,
}

/// The fields of one class.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// Fields that the program declares.
    pub(crate) declared: Vec<Field>,
    /// Offsets of fields that the VM has added.
    pub(crate) injected: Vec<u32>,
}

/// A field in the VM's format.
struct Row {
    flags: u32,
    name: u32,
    signature: u32,
    offset: u32,
}

/// Reads the fields of a class.
pub(crate) fn read(vm: &Vm<'_>, symbols: &mut Symbols, klass: Address) -> Option<Fields> {
    let constants = Constants::of(vm, klass)?;
    if let Some(at) = vm.tables.find("InstanceKlass._fieldinfo_stream") {
        let array = vm.memory.u64(klass.wrapping_add(at))?;
        if array == 0 {
            return Some(Fields::default());
        }
        let data = vm.tables.find("Array<u1>._data")?;
        let bytes = array_of(vm, array, data, 1)?;
        let forms = [0, 4];
        return forms.iter().find_map(|gap| {
            let (rows, injected) = stream(&bytes, *gap)?;
            let declared = constants.fields(vm, symbols, &rows)?;
            Some(Fields { declared, injected })
        });
    }
    let count = vm.tables.find("InstanceKlass._java_fields_count")?;
    let count = vm.memory.u16(klass.wrapping_add(count))?;
    let at = vm.tables.find("InstanceKlass._fields")?;
    let array = vm.memory.u64(klass.wrapping_add(at))?;
    if array == 0 {
        return Some(Fields::default());
    }
    let data = vm.tables.find("Array<u2>._data")?;
    let bytes = array_of(vm, array, data, 2)?;
    let (rows, injected) = rows(vm, &bytes, count)?;
    let declared = constants.fields(vm, symbols, &rows)?;
    Some(Fields { declared, injected })
}

/// The elements of a VM array.
pub(crate) fn array_of(vm: &Vm<'_>, array: Address, data: u64, size: u32) -> Option<Vec<u8>> {
    // All VM arrays are instances of one template, so the length has the same offset in all of them as in the one that
    // is exported.
    let length = vm.tables.find("Array<int>._length")?;
    let len = vm
        .memory
        .u32(array.wrapping_add(length))?
        .checked_mul(size)?;
    (len <= LONGEST).then_some(())?;
    vm.memory.bytes(array.wrapping_add(data), len as usize)
}

/// The constant pool of a class.
pub(crate) struct Constants {
    first: Address,
    len: u32,
}

impl Constants {
    fn of(vm: &Vm<'_>, klass: Address) -> Option<Constants> {
        let at = vm.tables.find("InstanceKlass._constants")?;
        Self::at(vm, vm.memory.pointer(klass.wrapping_add(at))?)
    }

    /// The constant pool at an address.
    pub(crate) fn at(vm: &Vm<'_>, pool: Address) -> Option<Constants> {
        let len = vm.tables.find("ConstantPool._length")?;
        Some(Constants {
            // The entries follow the structure itself.
            first: pool.wrapping_add(vm.tables.size("ConstantPool").ok()?),
            len: vm.memory.u32(pool.wrapping_add(len))?,
        })
    }

    pub(crate) fn symbol(&self, vm: &Vm<'_>, index: u32) -> Option<Address> {
        (index < self.len).then_some(())?;
        vm.memory
            .pointer_unaligned(self.first.wrapping_add(u64::from(index) * 8))
    }

    fn fields(&self, vm: &Vm<'_>, symbols: &mut Symbols, rows: &[Row]) -> Option<Vec<Field>> {
        let field = |row: &Row| {
            let name = self.symbol(vm, row.name)?;
            symbols.text(vm, name)?;
            let signature = self.symbol(vm, row.signature)?;
            let kind = kind_of(symbols.text(vm, signature)?)?;
            Some(Field {
                name,
                kind,
                offset: row.offset,
                is_static: row.flags & STATIC != 0,
            })
        };
        rows.iter().map(field).collect()
    }
}

/// The type of a descriptor, from its first character.
fn kind_of(signature: &[u8]) -> Option<BasicType> {
    Some(match signature.first()? {
        b'Z' => BasicType::Boolean,
        b'C' => BasicType::Char,
        b'F' => BasicType::Float,
        b'D' => BasicType::Double,
        b'B' => BasicType::Byte,
        b'S' => BasicType::Short,
        b'I' => BasicType::Int,
        b'J' => BasicType::Long,
        b'L' | b'[' => BasicType::Object,
        _ => return None,
    })
}

/// Rows of 16-bit numbers: the declared fields, the injected ones, then generic signatures.
fn rows(vm: &Vm<'_>, bytes: &[u8], declared: u16) -> Option<(Vec<Row>, Vec<u32>)> {
    let constant = |name: &str| {
        vm.tables
            .constant(name)
            .and_then(|n| usize::try_from(n).ok())
    };
    let slots = constant("FieldInfo::field_slots").filter(|n| (1..=16).contains(n))?;
    let slot = |name: &str| constant(&format!("FieldInfo::{name}")).filter(|n| *n < slots);
    let (flags, name, signature) = (
        slot("access_flags_offset")?,
        slot("name_index_offset")?,
        slot("signature_index_offset")?,
    );
    let (low, high) = (slot("low_packed_offset")?, slot("high_packed_offset")?);
    let tag = constant("FIELDINFO_TAG_SIZE").filter(|n| *n < 16)?;
    let mut numbers: &[[u8; 2]] = bytes.as_chunks().0;
    let (mut all, mut injected) = (Vec::new(), Vec::new());
    let mut generic = 0;
    while numbers.len() >= slots + generic {
        let (row, rest) = numbers.split_at(slots);
        numbers = rest;
        let number = |at: usize| u32::from(u16::from_le_bytes(row[at]));
        if number(flags) & HAS_GENERIC_SIGNATURE != 0 {
            generic += 1;
        }
        let offset = (number(high) << 16 | number(low)) >> tag;
        if all.len() < usize::from(declared) {
            all.push(Row {
                flags: number(flags),
                name: number(name),
                signature: number(signature),
                offset,
            });
        } else {
            injected.push(offset);
        }
    }
    (all.len() == usize::from(declared)).then_some((all, injected))
}

/// A compressed stream (`fieldInfo.hpp`): the numbers of declared and of injected fields, then per field its name,
/// signature, offset, access flags, flags, and the numbers that the flags announce.
fn stream(bytes: &[u8], gap: usize) -> Option<(Vec<Row>, Vec<u32>)> {
    let mut numbers = Numbers {
        bytes,
        excludes_zero: true,
    };
    let (declared, injected) = (numbers.next()?, numbers.next()?);
    if gap > 0 {
        (declared > SEARCHED_FROM).then_some(())?;
        numbers.bytes = numbers.bytes.get(gap..)?;
    }
    // A field has at least five bytes.
    let total = declared.checked_add(injected)? as usize;
    (total <= bytes.len() / 5).then_some(())?;
    let mut rows = Vec::with_capacity(total);
    for _ in 0..total {
        let row = Row {
            name: numbers.next()?,
            signature: numbers.next()?,
            offset: numbers.next()?,
            flags: numbers.next()?,
        };
        let flags = numbers.next()?;
        // `FieldInfo::FieldFlags`: each of initialized (0), generic (2) and contended (4) announces one more number.
        for bit in [0, 2, 4] {
            if flags >> bit & 1 == 1 {
                numbers.next()?;
            }
        }
        rows.push(row);
    }
    let injected = rows.split_off(declared as usize);
    Some((rows, injected.iter().map(|row| row.offset).collect()))
}

#[cfg(test)]
mod tests {
    use super::stream;

    #[test]
    fn a_stream_is_read_up_to_its_injected_fields_and_not_beyond_its_end() {
        let plus = |n: u8| n + 1;
        // One field with an initial value, and one injected field.
        let whole = [1, 1, 7, 8, 12, 8, 1, 99, 3, 4, 16, 0, 2].map(plus);
        let (rows, injected) = stream(&whole, 0).expect("a stream");
        assert_eq!((rows[0].name, rows[0].offset, rows[0].flags), (7, 12, 8));
        assert_eq!(injected, [16]);
        for cut in 0..whole.len() {
            assert!(stream(&whole[..cut], 0).is_none());
        }
        // The highest numbers of fields that can be claimed.
        assert!(stream(&[0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 1], 0).is_none());
    }
}
