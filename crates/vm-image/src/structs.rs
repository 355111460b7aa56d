//! The tables in which `libjvm.so` describes its own structures (`vmStructs.cpp`): the offset of each field in its
//! type, the sizes of types, and constants. The serviceability agent of the JDK reads the same tables, so they are
//! correct for exactly this build of the VM.

use crate::elf::Library;
use crate::fault::Fault;
use crate::memory::{Address, Structures};
use rustc_hash::FxHashMap;

/// The most rows of a table; JDK 21 has 2,064 in all four.
const MOST_ROWS: u64 = 1 << 14;

/// A field of a structure.
#[derive(Debug)]
struct Field {
    /// Its type as C++ text, such as `OopHandle`.
    kind: String,
    /// Its offset, or the address of a static field.
    place: u64,
    is_static: bool,
}

/// The four tables.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    fields: FxHashMap<String, Field>,
    sizes: FxHashMap<String, u64>,
    constants: FxHashMap<String, i64>,
}

/// One of the tables, with the layout of its rows as the library describes it.
struct Table<'t, 's, 'm> {
    memory: &'t Structures<'m>,
    library: &'t Library<'s, 'm>,
    name: &'static str,
    entry: &'static str,
}

impl Table<'_, '_, '_> {
    fn word(&self, name: &str) -> Result<u64, Fault> {
        let value = self.library.symbol(name).and_then(|at| self.memory.u64(at));
        value.ok_or_else(|| Fault::NoTables {
            what: name.to_owned(),
        })
    }

    /// The offset of a member in a row.
    fn member(&self, name: &str) -> Result<u64, Fault> {
        self.word(&format!("{}{name}Offset", self.entry))
    }

    /// The rows before the one without a name, which ends the table.
    fn rows(&self, name: u64) -> Result<impl Iterator<Item = (Address, String)>, Fault> {
        let (first, size) = (
            self.word(self.name)?,
            self.word(&format!("{}ArrayStride", self.entry))?,
        );
        let rows = (0..MOST_ROWS).map_while(move |i| {
            let row = first.checked_add(size.checked_mul(i)?)?;
            let name = self.memory.u64(row.checked_add(name)?)?;
            (name != 0).then_some((row, name))
        });
        Ok(rows.filter_map(|(row, name)| Some((row, self.memory.text(name)?))))
    }
}

impl Tables {
    /// Reads the tables of the library.
    pub(crate) fn read<'m>(
        memory: &Structures<'m>,
        library: &Library<'_, 'm>,
    ) -> Result<Tables, Fault> {
        let mut tables = Tables::default();
        let table = |name, entry| Table {
            memory,
            library,
            name,
            entry,
        };
        tables.read_fields(&table("gHotSpotVMStructs", "gHotSpotVMStructEntry"))?;
        tables.read_sizes(&table("gHotSpotVMTypes", "gHotSpotVMTypeEntry"))?;
        let ints = table("gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry");
        let value = ints.member("Value")?;
        for (row, name) in ints.rows(ints.member("Name")?)? {
            if let Some(value) = memory.i32(row.wrapping_add(value)) {
                tables.constants.insert(name, value.into());
            }
        }
        let longs = table("gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntry");
        let value = longs.member("Value")?;
        for (row, name) in longs.rows(longs.member("Name")?)? {
            if let Some(value) = memory.u64(row.wrapping_add(value)) {
                tables.constants.insert(name, value as i64);
            }
        }
        Ok(tables)
    }

    fn read_fields(&mut self, table: &Table<'_, '_, '_>) -> Result<(), Fault> {
        let memory = table.memory;
        let (name, kind) = (table.member("FieldName")?, table.member("TypeString")?);
        let (is_static, offset) = (table.member("IsStatic")?, table.member("Offset")?);
        let address = table.member("Address")?;
        for (row, owner) in table.rows(table.member("TypeName")?)? {
            let read = || {
                let name = memory.text(memory.u64(row.wrapping_add(name))?)?;
                let is_static = memory.i32(row.wrapping_add(is_static))? != 0;
                let place = if is_static { address } else { offset };
                // Fields without a type, such as arrays, have a null pointer here.
                let kind = memory.u64(row.wrapping_add(kind))?;
                let field = Field {
                    kind: memory.text(kind).unwrap_or_default(),
                    place: memory.u64(row.wrapping_add(place))?,
                    is_static,
                };
                Some((name, field))
            };
            if let Some((name, field)) = read() {
                self.fields.insert(format!("{owner}.{name}"), field);
            }
        }
        Ok(())
    }

    fn read_sizes(&mut self, table: &Table<'_, '_, '_>) -> Result<(), Fault> {
        let size = table.member("Size")?;
        for (row, name) in table.rows(table.member("TypeName")?)? {
            if let Some(size) = table.memory.u64(row.wrapping_add(size)) {
                self.sizes.insert(name, size);
            }
        }
        Ok(())
    }

    /// The offset of a field, if this VM has it.
    pub(crate) fn find(&self, field: &str) -> Option<u64> {
        let found = self.fields.get(field).filter(|field| !field.is_static)?;
        // No structure of the VM is as large as this; a larger offset is damage and could overflow.
        (found.place < 1 << 20).then_some(found.place)
    }

    /// The offset of a field under the first of its names that this VM has.
    pub(crate) fn offset(&self, names: &[&str]) -> Result<u64, Fault> {
        let found = names.iter().find_map(|name| self.find(name));
        found.ok_or_else(|| missing(names))
    }

    /// The address of a static field, if this VM has it.
    pub(crate) fn find_static(&self, field: &str) -> Option<Address> {
        let found = self.fields.get(field).filter(|field| field.is_static)?;
        Some(found.place)
    }

    /// The address of a static field under the first of its names that this VM has.
    pub(crate) fn address(&self, names: &[&str]) -> Result<Address, Fault> {
        let found = names.iter().find_map(|name| self.find_static(name));
        found.ok_or_else(|| missing(names))
    }

    /// The C++ type of a field, empty for none.
    pub(crate) fn kind(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", |field| &field.kind)
    }

    /// The size of a type.
    pub(crate) fn size(&self, name: &str) -> Result<u64, Fault> {
        let found = self.sizes.get(name).copied().filter(|size| *size < 1 << 20);
        found.ok_or_else(|| missing(&[name]))
    }

    /// A constant, if this VM has it.
    pub(crate) fn constant(&self, name: &str) -> Option<i64> {
        self.constants.get(name).copied()
    }
}

fn missing(names: &[&str]) -> Fault {
    Fault::Missing {
        what: names.join(" or "),
    }
}
