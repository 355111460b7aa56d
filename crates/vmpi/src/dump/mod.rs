//! The dump buffers of section 4: heap dumps of three levels, the dump of one object, and the monitor dump. All can be
//! written and read.
//!
//! Ids and pointers have the width and byte order of the dumped process (stated in its [`Hello`](crate::wire::Hello));
//! counts and values are big-endian. Two items are missing in the document and must come from elsewhere: a class record
//! has no count of interfaces or statics, which come from the class's `CLASS_LOAD` ([`Shapes`]); and instance bytes
//! have a length but no types.

pub mod heap;
pub mod monitor;

use std::collections::HashMap;

use crate::heap::Value;
use crate::ids::ObjectHandle;
use crate::info::BasicType;
use crate::vm_event::{ClassLoad, FieldDef};
use crate::wire::{ByteOrder, Damage, Hello};

pub use heap::{ClassDump, HeapRecord, IdRecord, RootKind};
pub use monitor::MonitorRecord;

/// Width and order of ids in a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdLayout {
    /// Bytes of an id: 4 or 8.
    pub width: u8,
    /// Their order.
    pub order: ByteOrder,
}

impl IdLayout {
    /// The layout of this process.
    pub const NATIVE: Self = Self {
        width: size_of::<usize>() as u8,
        order: ByteOrder::NATIVE,
    };

    /// The layout that the first frame of a stream states.
    #[must_use]
    pub fn of(hello: &Hello) -> Self {
        Self {
            width: hello.id_width,
            order: hello.byte_order,
        }
    }

    fn put(self, out: &mut Vec<u8>, id: u64) {
        let width = usize::from(self.width.min(8));
        match self.order {
            ByteOrder::Little => out.extend_from_slice(&id.to_le_bytes()[..width]),
            ByteOrder::Big => out.extend_from_slice(&id.to_be_bytes()[8 - width..]),
        }
    }
}

/// The types of fields in order; `None` for one that is unknown.
pub type Types<'a> = Box<dyn Iterator<Item = Option<BasicType>> + 'a>;

/// The data about classes that a reader of class records needs. It reads it again for each record, and a dump can have any
/// number of records of a class with many fields: where a stream is not trusted, no function may read all of them.
pub trait Shapes {
    /// How many interfaces a class implements directly.
    fn interfaces(&self, class: ObjectHandle) -> Option<u32>;
    /// How many of its static fields are references.
    fn static_references(&self, class: ObjectHandle) -> Option<u32>;
    /// The types of its static fields. They are read as far as the record has values.
    fn statics(&self, class: ObjectHandle) -> Option<Types<'_>>;
}

/// The types of these fields.
pub fn types_of(fields: &[FieldDef]) -> Types<'_> {
    let types = fields.iter();
    Box::new(types.map(|field| BasicType::from_descriptor(&field.signature)))
}

/// For streams that are trusted: static references are counted for each record.
impl Shapes for HashMap<ObjectHandle, ClassLoad> {
    fn interfaces(&self, class: ObjectHandle) -> Option<u32> {
        self.get(&class).map(|load| load.interfaces)
    }

    fn static_references(&self, class: ObjectHandle) -> Option<u32> {
        self.get(&class)?.static_references()
    }

    fn statics(&self, class: ObjectHandle) -> Option<Types<'_>> {
        self.get(&class).map(|load| types_of(&load.statics))
    }
}

/// An unknown class has no interfaces and no statics.
impl Shapes for () {
    fn interfaces(&self, _class: ObjectHandle) -> Option<u32> {
        Some(0)
    }

    fn static_references(&self, _class: ObjectHandle) -> Option<u32> {
        Some(0)
    }

    fn statics(&self, _class: ObjectHandle) -> Option<Types<'_>> {
        Some(Box::new(std::iter::empty()))
    }
}

/// Reads a dump buffer and tracks its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    layout: IdLayout,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], layout: IdLayout) -> Self {
        Self {
            bytes,
            at: 0,
            layout,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn damage(&self, expected: impl Into<String>, found: impl ToString) -> Damage {
        Damage::new(self.at as u64, "dump", expected, found)
    }

    pub(crate) fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], Damage> {
        let left = self.bytes.len() - self.at;
        let bytes = self
            .at
            .checked_add(len)
            .and_then(|end| self.bytes.get(self.at..end));
        let bytes = bytes.ok_or_else(|| {
            self.damage(format!("{len} bytes of {what}"), format!("{left} bytes"))
        })?;
        self.at += len;
        Ok(bytes)
    }

    pub(crate) fn u1(&mut self, what: &str) -> Result<u8, Damage> {
        Ok(self.take(1, what)?[0])
    }

    pub(crate) fn number(&mut self, width: usize, what: &str) -> Result<u64, Damage> {
        let bytes = self.take(width, what)?;
        Ok(bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    pub(crate) fn u4(&mut self, what: &str) -> Result<u32, Damage> {
        Ok(self.number(4, what)? as u32)
    }

    pub(crate) fn id(&mut self, what: &str) -> Result<u64, Damage> {
        let bytes = self.take(usize::from(self.layout.width), what)?;
        let join = |sum, byte: &u8| sum << 8 | u64::from(*byte);
        Ok(match self.layout.order {
            ByteOrder::Big => bytes.iter().fold(0, join),
            ByteOrder::Little => bytes.iter().rev().fold(0, join),
        })
    }

    pub(crate) fn object(&mut self, what: &str) -> Result<ObjectHandle, Damage> {
        self.id(what).map(ObjectHandle)
    }

    /// A list of this many ids; memory is allocated only for as many as the remaining bytes allow.
    pub(crate) fn ids(&mut self, count: u32, what: &str) -> Result<Vec<u64>, Damage> {
        let need = (count as usize).saturating_mul(usize::from(self.layout.width));
        let bytes = self.take(need, what)?;
        let mut inner = Cursor::new(bytes, self.layout);
        (0..count).map(|_| inner.id(what)).collect()
    }

    pub(crate) fn basic_type(&mut self) -> Result<BasicType, Damage> {
        let code = self.u1("a type")?;
        basic_type(code)
            .ok_or_else(|| Damage::new(self.at as u64 - 1, "dump", "a type, 2 or 4 to 11", code))
    }

    pub(crate) fn value(&mut self, kind: BasicType) -> Result<Value, Damage> {
        if kind == BasicType::Object {
            return self.object("a reference").map(Value::Object);
        }
        let bits = self.number(kind.width().unwrap_or(8), "a value")?;
        Ok(match kind {
            BasicType::Object => unreachable!("read above"),
            BasicType::Boolean => Value::Boolean(bits != 0),
            BasicType::Char => Value::Char(bits as u16),
            BasicType::Float => Value::Float(f32::from_bits(bits as u32)),
            BasicType::Double => Value::Double(f64::from_bits(bits)),
            BasicType::Byte => Value::Byte(bits as i8),
            BasicType::Short => Value::Short(bits as i16),
            BasicType::Int => Value::Int(bits as i32),
            BasicType::Long => Value::Long(bits as i64),
        })
    }
}

/// The basic type of a code of the interface; `None` also for 0, a plain object.
#[must_use]
pub fn basic_type(code: u8) -> Option<BasicType> {
    Some(match code {
        2 => BasicType::Object,
        4 => BasicType::Boolean,
        5 => BasicType::Char,
        6 => BasicType::Float,
        7 => BasicType::Double,
        8 => BasicType::Byte,
        9 => BasicType::Short,
        10 => BasicType::Int,
        11 => BasicType::Long,
        _ => return None,
    })
}

/// Appends a value in the format of dumps.
pub(crate) fn put_value(out: &mut Vec<u8>, layout: IdLayout, value: Value) {
    match value {
        Value::Object(object) => layout.put(out, object.0),
        Value::Boolean(x) => out.push(u8::from(x)),
        Value::Char(x) => out.extend_from_slice(&x.to_be_bytes()),
        Value::Float(x) => out.extend_from_slice(&x.to_bits().to_be_bytes()),
        Value::Double(x) => out.extend_from_slice(&x.to_bits().to_be_bytes()),
        Value::Byte(x) => out.push(x as u8),
        Value::Short(x) => out.extend_from_slice(&x.to_be_bytes()),
        Value::Int(x) => out.extend_from_slice(&x.to_be_bytes()),
        Value::Long(x) => out.extend_from_slice(&x.to_be_bytes()),
    }
}

/// The bytes of field values in a dump of a level: level 1 has references only.
#[must_use]
pub fn field_bytes(values: &[Value], references_only: bool, layout: IdLayout) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        if !references_only || matches!(value, Value::Object(_)) {
            put_value(&mut out, layout, *value);
        }
    }
    out
}

/// Elements of a primitive array of this process, `width` bytes each, in the format of dumps.
#[must_use]
pub fn element_bytes(native: &[u8], width: usize) -> Vec<u8> {
    if width == 1 || cfg!(target_endian = "big") {
        return native.to_vec();
    }
    let elements = native.chunks_exact(width.max(1));
    elements
        .flat_map(|bytes| bytes.iter().rev())
        .copied()
        .collect()
}

/// Field values from the bytes of an instance, given the types of the fields of its class first and then of its
/// superclasses. For a dump of level 1 pass one [`BasicType::Object`] per reference.
///
/// # Errors
/// The bytes are fewer or more than the types need.
pub fn field_values(
    bytes: &[u8],
    types: &[BasicType],
    layout: IdLayout,
) -> Result<Vec<Value>, Damage> {
    let mut cursor = Cursor::new(bytes, layout);
    let values = types
        .iter()
        .map(|kind| cursor.value(*kind))
        .collect::<Result<_, _>>()?;
    if cursor.is_done() {
        Ok(values)
    } else {
        Err(cursor.damage("the end of the fields", "more bytes"))
    }
}
