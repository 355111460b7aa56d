//! The sub-records of HEAP_DUMP and HEAP_DUMP_SEGMENT, borrowed from the file.

use crate::{BasicType, Cursor, FileOffset, HeapTag, IdSize, ObjectId, Serial, read_id};

/// A GC root sub-record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Which kind of root.
    pub kind: HeapTag,
    /// The object it keeps alive.
    pub object: ObjectId,
    /// Thread serial, for the kinds that belong to a thread.
    pub thread: Serial,
    /// Second word: frame number in the stack (JNI_LOCAL, JAVA_FRAME, JNI_MONITOR), or trace
    /// serial (THREAD_OBJ). `u32::MAX` means none.
    pub frame: u32,
    /// The JNI reference of a JNI_GLOBAL.
    pub reference: ObjectId,
}

/// INSTANCE_DUMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance<'a> {
    /// The object.
    pub id: ObjectId,
    /// Allocation trace.
    pub trace: Serial,
    /// Its class.
    pub class: ObjectId,
    /// Field values: those of its class, then those of the superclass, and so on.
    pub fields: &'a [u8],
}

/// OBJECT_ARRAY_DUMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectArray<'a> {
    /// The array.
    pub id: ObjectId,
    /// Allocation trace.
    pub trace: Serial,
    /// Its array class.
    pub class: ObjectId,
    /// Number of elements.
    pub len: u32,
    /// The elements, one id each.
    pub elements: &'a [u8],
}

/// PRIMITIVE_ARRAY_DUMP, or ART's variant without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrimitiveArray<'a> {
    /// The array.
    pub id: ObjectId,
    /// Allocation trace.
    pub trace: Serial,
    /// Number of elements.
    pub len: u32,
    /// Type of the elements.
    pub element: BasicType,
    /// The elements, big-endian; empty for the variant without data.
    pub data: &'a [u8],
    /// False for ART's variant without data.
    pub has_data: bool,
}

/// CLASS_DUMP. The three tables are checked when the record is read, and decoded on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassDump<'a> {
    /// The class object.
    pub id: ObjectId,
    /// Allocation trace.
    pub trace: Serial,
    /// Superclass, null for `java.lang.Object` (and for interfaces in agent files).
    pub super_class: ObjectId,
    /// Class loader, null for the boot loader.
    pub loader: ObjectId,
    /// Signers.
    pub signers: ObjectId,
    /// Protection domain.
    pub domain: ObjectId,
    /// The two reserved ids.
    pub reserved: [ObjectId; 2],
    /// Instance size as the producer states it (HotSpot: sum of the field bytes).
    pub instance_size: u32,
    /// Constant pool table.
    pub constants: Table<'a>,
    /// Static fields table.
    pub statics: Table<'a>,
    /// Instance fields table.
    pub fields: Table<'a>,
}

/// A counted table of a CLASS_DUMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table<'a> {
    /// Number of entries.
    pub len: u16,
    /// Their bytes.
    pub bytes: &'a [u8],
    ids: IdSize,
}

impl<'a> Table<'a> {
    /// A table of `len` entries that are encoded already.
    pub fn new(len: u16, bytes: &'a [u8], ids: IdSize) -> Table<'a> {
        Table { len, bytes, ids }
    }
}

/// A value in a constant pool or static field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// Its type.
    pub kind: BasicType,
    /// Its bytes, big-endian.
    pub bytes: &'a [u8],
}

impl Value<'_> {
    /// The reference, if it is one.
    pub fn as_id(&self) -> Option<ObjectId> {
        let ids = if self.bytes.len() == 8 {
            IdSize::Eight
        } else {
            IdSize::Four
        };
        (self.kind == BasicType::Object).then(|| read_id(self.bytes, ids))
    }
}

impl<'a> ClassDump<'a> {
    /// Constant pool entries: index and value.
    pub fn constants(&self) -> impl Iterator<Item = (u16, Value<'a>)> + use<'a> {
        let mut cursor = Cursor::new(self.constants.bytes, self.constants.ids);
        let ids = self.constants.ids;
        (0..self.constants.len).map_while(move |_| {
            let index = cursor.u2()?;
            Some((index, value(&mut cursor, ids)?))
        })
    }

    /// Static fields: name id and value.
    pub fn statics(&self) -> impl Iterator<Item = (ObjectId, Value<'a>)> + use<'a> {
        let mut cursor = Cursor::new(self.statics.bytes, self.statics.ids);
        let ids = self.statics.ids;
        (0..self.statics.len).map_while(move |_| {
            let name = cursor.id()?;
            Some((name, value(&mut cursor, ids)?))
        })
    }

    /// Instance fields of this class alone: name id and type, in the order of the values.
    pub fn fields(&self) -> impl Iterator<Item = (ObjectId, BasicType)> + use<'a> {
        let mut cursor = Cursor::new(self.fields.bytes, self.fields.ids);
        (0..self.fields.len).map_while(move |_| {
            let name = cursor.id()?;
            Some((name, BasicType::from_u8(cursor.u1()?)?))
        })
    }
}

fn value<'a>(cursor: &mut Cursor<'a>, ids: IdSize) -> Option<Value<'a>> {
    let kind = BasicType::from_u8(cursor.u1()?)?;
    Some(Value {
        kind,
        bytes: cursor.bytes(kind.size(ids.bytes()))?,
    })
}

/// Why a CLASS_DUMP could not be read.
pub(crate) enum ClassFault {
    /// The record is longer than the available bytes.
    Short,
    /// A type byte that does not exist.
    Type { found: u8 },
}

/// Reads the body of a CLASS_DUMP (without its tag); also returns its length.
pub(crate) fn parse_class(body: &[u8], ids: IdSize) -> Result<(ClassDump<'_>, usize), ClassFault> {
    let mut c = Cursor::new(body, ids);
    let head = (|| {
        Some(ClassDump {
            id: c.id()?,
            trace: Serial(c.u4()?),
            super_class: c.id()?,
            loader: c.id()?,
            signers: c.id()?,
            domain: c.id()?,
            reserved: [c.id()?, c.id()?],
            instance_size: c.u4()?,
            constants: Table {
                len: 0,
                bytes: &[],
                ids,
            },
            statics: Table {
                len: 0,
                bytes: &[],
                ids,
            },
            fields: Table {
                len: 0,
                bytes: &[],
                ids,
            },
        })
    })();
    let mut class = head.ok_or(ClassFault::Short)?;
    class.constants = table(body, &mut c, ids, 2, true)?;
    class.statics = table(body, &mut c, ids, ids.bytes(), true)?;
    class.fields = table(body, &mut c, ids, ids.bytes(), false)?;
    let len = c.pos();
    Ok((class, len))
}

/// One table: `key` bytes, a type, and a value of that type when `with_value`.
fn table<'a>(
    body: &'a [u8],
    c: &mut Cursor<'a>,
    ids: IdSize,
    key: usize,
    with_value: bool,
) -> Result<Table<'a>, ClassFault> {
    let len = c.u2().ok_or(ClassFault::Short)?;
    let start = c.pos();
    for _ in 0..len {
        c.bytes(key).ok_or(ClassFault::Short)?;
        let byte = c.u1().ok_or(ClassFault::Short)?;
        let kind = BasicType::from_u8(byte).ok_or(ClassFault::Type { found: byte })?;
        if with_value {
            c.bytes(kind.size(ids.bytes())).ok_or(ClassFault::Short)?;
        }
    }
    Ok(Table {
        len,
        bytes: &body[start..c.pos()],
        ids,
    })
}

/// Callbacks of a walk over heap sub-records. Every method has an empty default, so that an analysis pays only for the
/// sub-records that it uses. `at` is the offset of the sub-record's tag.
pub trait HeapVisitor {
    /// A root of any kind.
    fn root(&mut self, at: FileOffset, root: Root) {
        let _ = (at, root);
    }
    /// A class.
    fn class(&mut self, at: FileOffset, class: &ClassDump<'_>) {
        let _ = (at, class);
    }
    /// An instance.
    fn instance(&mut self, at: FileOffset, instance: Instance<'_>) {
        let _ = (at, instance);
    }
    /// An array of references.
    fn object_array(&mut self, at: FileOffset, array: ObjectArray<'_>) {
        let _ = (at, array);
    }
    /// An array of primitives.
    fn primitive_array(&mut self, at: FileOffset, array: PrimitiveArray<'_>) {
        let _ = (at, array);
    }
    /// ART: the following objects are in this heap (number, name id).
    fn heap_info(&mut self, at: FileOffset, heap: u32, name: ObjectId) {
        let _ = (at, heap, name);
    }
    /// Damage was skipped: the next sub-record does not directly follow the previous one.
    fn resync(&mut self) {}
}

/// Any sub-record, for callers that prefer values to callbacks. Code that rewrites a dump may match every kind: a new kind
/// is a new version of this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubRecord<'a> {
    /// A root.
    Root(Root),
    /// A class.
    Class(ClassDump<'a>),
    /// An instance.
    Instance(Instance<'a>),
    /// An array of references.
    ObjectArray(ObjectArray<'a>),
    /// An array of primitives.
    PrimitiveArray(PrimitiveArray<'a>),
    /// ART heap switch.
    HeapInfo {
        /// Heap number.
        heap: u32,
        /// Name id.
        name: ObjectId,
    },
}
