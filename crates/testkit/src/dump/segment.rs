//! Heap sub-records, one method each, byte for byte as the format text lists them. The Android
//! tags follow ART's writer.

use super::bytes::{Bytes, IdSize, Type, Value, count, count2};

/// The body of a HEAP DUMP or HEAP DUMP SEGMENT record.
#[derive(Clone, Debug)]
pub struct Segment {
    bytes: Bytes,
}

/// Kind of a GC root, with what the record carries besides the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// 0xff.
    Unknown,
    /// 0x01 with the id of the JNI global reference.
    JniGlobal {
        /// Id of the reference itself.
        reference: u64,
    },
    /// 0x02.
    JniLocal {
        /// Thread serial number.
        thread: u32,
        /// Index of the frame in the stack trace, `u32::MAX` for none.
        frame: u32,
    },
    /// 0x03.
    JavaFrame {
        /// Thread serial number.
        thread: u32,
        /// Index of the frame in the stack trace, `u32::MAX` for none.
        frame: u32,
    },
    /// 0x04.
    NativeStack {
        /// Thread serial number.
        thread: u32,
    },
    /// 0x05.
    StickyClass,
    /// 0x06.
    ThreadBlock {
        /// Thread serial number.
        thread: u32,
    },
    /// 0x07.
    MonitorUsed,
    /// 0x08.
    ThreadObject {
        /// Thread serial number.
        thread: u32,
        /// Stack trace serial number.
        trace: u32,
    },
    /// 0x89, Android.
    InternedString,
    /// 0x8a, Android.
    Finalizing,
    /// 0x8b, Android.
    Debugger,
    /// 0x8c, Android.
    ReferenceCleanup,
    /// 0x8d, Android.
    VmInternal,
    /// 0x8e, Android.
    JniMonitor {
        /// Thread serial number.
        thread: u32,
        /// Depth in the stack.
        depth: u32,
    },
    /// 0x90, Android: an object found unreachable; keeps nothing alive.
    Unreachable,
}

impl Root {
    /// One of every kind.
    pub const ALL: [Root; 16] = [
        Root::Unknown,
        Root::JniGlobal { reference: 0x77 },
        Root::JniLocal {
            thread: 1,
            frame: 0,
        },
        Root::JavaFrame {
            thread: 1,
            frame: 0,
        },
        Root::NativeStack { thread: 1 },
        Root::StickyClass,
        Root::ThreadBlock { thread: 1 },
        Root::MonitorUsed,
        Root::ThreadObject {
            thread: 1,
            trace: 1,
        },
        Root::InternedString,
        Root::Finalizing,
        Root::Debugger,
        Root::ReferenceCleanup,
        Root::VmInternal,
        Root::JniMonitor {
            thread: 1,
            depth: 0,
        },
        Root::Unreachable,
    ];

    /// The sub-record's tag byte.
    pub const fn tag(self) -> u8 {
        match self {
            Root::Unknown => 0xff,
            Root::JniGlobal { .. } => 0x01,
            Root::JniLocal { .. } => 0x02,
            Root::JavaFrame { .. } => 0x03,
            Root::NativeStack { .. } => 0x04,
            Root::StickyClass => 0x05,
            Root::ThreadBlock { .. } => 0x06,
            Root::MonitorUsed => 0x07,
            Root::ThreadObject { .. } => 0x08,
            Root::InternedString => 0x89,
            Root::Finalizing => 0x8a,
            Root::Debugger => 0x8b,
            Root::ReferenceCleanup => 0x8c,
            Root::VmInternal => 0x8d,
            Root::JniMonitor { .. } => 0x8e,
            Root::Unreachable => 0x90,
        }
    }
}

/// Everything a CLASS DUMP sub-record holds.
#[derive(Clone, Debug, Default)]
pub struct ClassDump {
    /// Class object id.
    pub id: u64,
    /// Stack trace serial number.
    pub trace: u32,
    /// Super class object id, 0 for none.
    pub super_class: u64,
    /// Class loader object id, 0 for the boot loader.
    pub loader: u64,
    /// Signers object id.
    pub signers: u64,
    /// Protection domain object id.
    pub protection_domain: u64,
    /// Instance size as the producer claims it.
    pub instance_size: u32,
    /// Constant pool entries: index and value.
    pub constants: Vec<(u16, Value)>,
    /// Static fields: name string id and value.
    pub statics: Vec<(u64, Value)>,
    /// Instance fields of this class alone: name string id and type.
    pub fields: Vec<(u64, Type)>,
}

/// Elements of a primitive array.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// boolean[].
    Boolean(Vec<bool>),
    /// char[].
    Char(Vec<u16>),
    /// float[].
    Float(Vec<f32>),
    /// double[].
    Double(Vec<f64>),
    /// byte[].
    Byte(Vec<u8>),
    /// short[].
    Short(Vec<i16>),
    /// int[].
    Int(Vec<i32>),
    /// long[].
    Long(Vec<i64>),
}

impl Elements {
    /// `len` zeros of a type. References have no zeros here: they are an object array.
    pub fn zeros(ty: Type, len: usize) -> Elements {
        match ty {
            Type::Boolean => Elements::Boolean(vec![false; len]),
            Type::Char => Elements::Char(vec![0; len]),
            Type::Float => Elements::Float(vec![0.0; len]),
            Type::Double => Elements::Double(vec![0.0; len]),
            Type::Byte => Elements::Byte(vec![0; len]),
            Type::Short => Elements::Short(vec![0; len]),
            Type::Int => Elements::Int(vec![0; len]),
            Type::Long => Elements::Long(vec![0; len]),
            Type::Object => panic!("an array of references is an object array"),
        }
    }

    /// Element type.
    pub fn ty(&self) -> Type {
        match self {
            Elements::Boolean(_) => Type::Boolean,
            Elements::Char(_) => Type::Char,
            Elements::Float(_) => Type::Float,
            Elements::Double(_) => Type::Double,
            Elements::Byte(_) => Type::Byte,
            Elements::Short(_) => Type::Short,
            Elements::Int(_) => Type::Int,
            Elements::Long(_) => Type::Long,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Elements::Boolean(v) => v.len(),
            Elements::Char(v) => v.len(),
            Elements::Float(v) => v.len(),
            Elements::Double(v) => v.len(),
            Elements::Byte(v) => v.len(),
            Elements::Short(v) => v.len(),
            Elements::Int(v) => v.len(),
            Elements::Long(v) => v.len(),
        }
    }

    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn write(&self, out: &mut Bytes) {
        match self {
            Elements::Boolean(v) => each(out, v.iter().map(|x| Value::Boolean(*x))),
            Elements::Char(v) => each(out, v.iter().map(|x| Value::Char(*x))),
            Elements::Float(v) => each(out, v.iter().map(|x| Value::Float(*x))),
            Elements::Double(v) => each(out, v.iter().map(|x| Value::Double(*x))),
            Elements::Byte(v) => {
                out.raw(v);
            }
            Elements::Short(v) => each(out, v.iter().map(|x| Value::Short(*x))),
            Elements::Int(v) => each(out, v.iter().map(|x| Value::Int(*x))),
            Elements::Long(v) => each(out, v.iter().map(|x| Value::Long(*x))),
        }
    }
}

fn each(out: &mut Bytes, values: impl Iterator<Item = Value>) {
    for v in values {
        out.value(v);
    }
}

impl Segment {
    /// An empty body.
    pub fn new(id_size: IdSize) -> Self {
        Segment {
            bytes: Bytes::new(id_size),
        }
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.data.len()
    }

    /// True before the first sub-record.
    pub fn is_empty(&self) -> bool {
        self.bytes.data.is_empty()
    }

    /// The body.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.data
    }

    /// A root of any kind.
    pub fn root(&mut self, kind: Root, object: u64) -> &mut Self {
        let b = self.bytes.u1(kind.tag()).id(object);
        match kind {
            Root::JniGlobal { reference } => b.id(reference),
            Root::JniLocal { thread, frame } | Root::JavaFrame { thread, frame } => {
                b.u4(thread).u4(frame)
            }
            Root::NativeStack { thread } | Root::ThreadBlock { thread } => b.u4(thread),
            Root::ThreadObject { thread, trace } => b.u4(thread).u4(trace),
            Root::JniMonitor { thread, depth } => b.u4(thread).u4(depth),
            Root::Unknown
            | Root::StickyClass
            | Root::MonitorUsed
            | Root::InternedString
            | Root::Finalizing
            | Root::Debugger
            | Root::ReferenceCleanup
            | Root::VmInternal
            | Root::Unreachable => b,
        };
        self
    }

    /// 0x20 CLASS DUMP.
    pub fn class_dump(&mut self, c: &ClassDump) -> &mut Self {
        let b = self.bytes.u1(0x20).id(c.id).u4(c.trace);
        b.id(c.super_class).id(c.loader).id(c.signers);
        b.id(c.protection_domain).id(0).id(0).u4(c.instance_size);
        b.u2(count2(c.constants.len()));
        for (index, value) in &c.constants {
            b.u2(*index).u1(value.ty() as u8).value(*value);
        }
        b.u2(count2(c.statics.len()));
        for (name, value) in &c.statics {
            b.id(*name).u1(value.ty() as u8).value(*value);
        }
        b.u2(count2(c.fields.len()));
        for (name, ty) in &c.fields {
            b.id(*name).u1(*ty as u8);
        }
        self
    }

    /// 0x21 INSTANCE DUMP; `values` are the fields of the class, then of its super class, and so on.
    pub fn instance_dump(
        &mut self,
        id: u64,
        trace: u32,
        class: u64,
        values: &[Value],
    ) -> &mut Self {
        let mut fields = Bytes::new(self.bytes.id_size);
        for v in values {
            fields.value(*v);
        }
        self.instance_bytes(id, trace, class, &fields.data)
    }

    /// 0x21 INSTANCE DUMP with its field bytes as they are.
    pub fn instance_bytes(&mut self, id: u64, trace: u32, class: u64, fields: &[u8]) -> &mut Self {
        let b = self.bytes.u1(0x21).id(id).u4(trace).id(class);
        b.u4(count(fields.len())).raw(fields);
        self
    }

    /// 0x22 OBJECT ARRAY DUMP.
    pub fn object_array(&mut self, id: u64, trace: u32, class: u64, elements: &[u64]) -> &mut Self {
        let b = self.bytes.u1(0x22).id(id).u4(trace);
        b.u4(count(elements.len())).id(class);
        for e in elements {
            b.id(*e);
        }
        self
    }

    /// 0x23 PRIMITIVE ARRAY DUMP.
    pub fn primitive_array(&mut self, id: u64, trace: u32, elements: &Elements) -> &mut Self {
        let b = self.bytes.u1(0x23).id(id).u4(trace);
        b.u4(count(elements.len())).u1(elements.ty() as u8);
        elements.write(b);
        self
    }

    /// 0xc3, Android: a primitive array whose contents were left out.
    pub fn primitive_array_no_data(
        &mut self,
        id: u64,
        trace: u32,
        ty: Type,
        len: u32,
    ) -> &mut Self {
        self.bytes.u1(0xc3).id(id).u4(trace).u4(len).u1(ty as u8);
        self
    }

    /// 0xfe, Android: the heap (app, zygote, image) of the objects that follow.
    pub fn heap_info(&mut self, heap: u32, name: u64) -> &mut Self {
        self.bytes.u1(0xfe).u4(heap).id(name);
        self
    }

    /// Bytes of any content: an unknown tag, half a record.
    pub fn raw(&mut self, data: &[u8]) -> &mut Self {
        self.bytes.raw(data);
        self
    }
}
