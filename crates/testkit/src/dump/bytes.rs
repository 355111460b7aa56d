//! Big-endian bytes with an id width, and the basic types of the format.

/// Width of an id in the file being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdSize {
    /// 4 bytes: 32-bit VMs, the JDK agent, ART.
    Four,
    /// 8 bytes: 64-bit VMs.
    Eight,
}

impl IdSize {
    /// Both widths, for tests that run once per width.
    pub const ALL: [IdSize; 2] = [IdSize::Four, IdSize::Eight];

    /// The number of bytes.
    pub const fn bytes(self) -> usize {
        match self {
            IdSize::Four => 4,
            IdSize::Eight => 8,
        }
    }
}

/// A type of a field, constant or array element ("Basic Type" of the format text).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    /// A reference.
    Object = 2,
    /// boolean, 1 byte.
    Boolean = 4,
    /// char, 2 bytes.
    Char = 5,
    /// float, 4 bytes.
    Float = 6,
    /// double, 8 bytes.
    Double = 7,
    /// byte, 1 byte.
    Byte = 8,
    /// short, 2 bytes.
    Short = 9,
    /// int, 4 bytes.
    Int = 10,
    /// long, 8 bytes.
    Long = 11,
}

impl Type {
    /// The eight types that are not references.
    pub const PRIMITIVES: [Type; 8] = [
        Type::Boolean,
        Type::Char,
        Type::Float,
        Type::Double,
        Type::Byte,
        Type::Short,
        Type::Int,
        Type::Long,
    ];

    /// Bytes of one value when a reference takes `reference` bytes.
    pub const fn size(self, reference: usize) -> usize {
        match self {
            Type::Object => reference,
            Type::Boolean | Type::Byte => 1,
            Type::Char | Type::Short => 2,
            Type::Float | Type::Int => 4,
            Type::Double | Type::Long => 8,
        }
    }
}

/// A typed value of a static field, an instance field or a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A reference; 0 is null.
    Object(u64),
    /// A boolean.
    Boolean(bool),
    /// A UTF-16 unit.
    Char(u16),
    /// A float.
    Float(f32),
    /// A double.
    Double(f64),
    /// A byte.
    Byte(i8),
    /// A short.
    Short(i16),
    /// An int.
    Int(i32),
    /// A long.
    Long(i64),
}

impl Value {
    /// The value's type.
    pub const fn ty(self) -> Type {
        match self {
            Value::Object(_) => Type::Object,
            Value::Boolean(_) => Type::Boolean,
            Value::Char(_) => Type::Char,
            Value::Float(_) => Type::Float,
            Value::Double(_) => Type::Double,
            Value::Byte(_) => Type::Byte,
            Value::Short(_) => Type::Short,
            Value::Int(_) => Type::Int,
            Value::Long(_) => Type::Long,
        }
    }
}

/// A growing piece of a file.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    pub(crate) id_size: IdSize,
    pub(crate) data: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(id_size: IdSize) -> Self {
        Bytes {
            id_size,
            data: Vec::new(),
        }
    }

    pub(crate) fn u1(&mut self, v: u8) -> &mut Self {
        self.data.push(v);
        self
    }

    pub(crate) fn u2(&mut self, v: u16) -> &mut Self {
        self.data.extend(v.to_be_bytes());
        self
    }

    pub(crate) fn u4(&mut self, v: u32) -> &mut Self {
        self.data.extend(v.to_be_bytes());
        self
    }

    pub(crate) fn u8(&mut self, v: u64) -> &mut Self {
        self.data.extend(v.to_be_bytes());
        self
    }

    /// Writes an id; a 4-byte file keeps the low half, and an id that does not fit is a test bug.
    pub(crate) fn id(&mut self, v: u64) -> &mut Self {
        match self.id_size {
            IdSize::Four => {
                let narrow = u32::try_from(v).unwrap_or_else(|_| panic!("id {v:#x} needs 8 bytes"));
                self.u4(narrow)
            }
            IdSize::Eight => self.u8(v),
        }
    }

    pub(crate) fn raw(&mut self, v: &[u8]) -> &mut Self {
        self.data.extend_from_slice(v);
        self
    }

    pub(crate) fn value(&mut self, v: Value) -> &mut Self {
        match v {
            Value::Object(id) => self.id(id),
            Value::Boolean(b) => self.u1(u8::from(b)),
            Value::Char(c) => self.u2(c),
            Value::Float(f) => self.u4(f.to_bits()),
            Value::Double(f) => self.u8(f.to_bits()),
            Value::Byte(b) => self.raw(&b.to_be_bytes()),
            Value::Short(s) => self.raw(&s.to_be_bytes()),
            Value::Int(i) => self.raw(&i.to_be_bytes()),
            Value::Long(l) => self.raw(&l.to_be_bytes()),
        }
    }
}

/// A count as the format's u4; a test that builds more is a test bug.
pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or_else(|_| panic!("{n} does not fit a u4"))
}

/// A count as the format's u2.
pub(crate) fn count2(n: usize) -> u16 {
    u16::try_from(n).unwrap_or_else(|_| panic!("{n} does not fit a u2"))
}
