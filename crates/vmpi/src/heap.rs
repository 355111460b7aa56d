//! A walk over all objects, in the order that an HPROF writer needs.

use crate::ids::{ClassId, ObjectHandle, ThreadId, TraceId};
use crate::info::{BasicType, FieldInfo};

/// A field or element value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A reference, possibly null.
    Object(ObjectHandle),
    /// A `boolean`.
    Boolean(bool),
    /// A `char`.
    Char(u16),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A `byte`.
    Byte(i8),
    /// A `short`.
    Short(i16),
    /// An `int`.
    Int(i32),
    /// A `long`.
    Long(i64),
}

impl Value {
    /// The type of this value.
    #[must_use]
    pub fn basic_type(self) -> BasicType {
        match self {
            Self::Object(_) => BasicType::Object,
            Self::Boolean(_) => BasicType::Boolean,
            Self::Char(_) => BasicType::Char,
            Self::Float(_) => BasicType::Float,
            Self::Double(_) => BasicType::Double,
            Self::Byte(_) => BasicType::Byte,
            Self::Short(_) => BasicType::Short,
            Self::Int(_) => BasicType::Int,
            Self::Long(_) => BasicType::Long,
        }
    }
}

/// Why an object is a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The VM gives no reason.
    Unknown,
    /// A global reference of native code.
    JniGlobal,
    /// A local reference of native code in a thread's frame.
    JniLocal {
        /// The thread.
        thread: ThreadId,
        /// Frames from the innermost, if known.
        depth: Option<u32>,
    },
    /// A local variable of a thread's frame.
    JavaFrame {
        /// The thread.
        thread: ThreadId,
        /// Frames from the innermost, if known.
        depth: Option<u32>,
    },
    /// An object referenced from a thread's native stack.
    NativeStack {
        /// The thread.
        thread: ThreadId,
    },
    /// A system class, which the VM never unloads.
    StickyClass,
    /// An object referenced from the block of a blocked or running thread.
    ThreadBlock {
        /// The thread.
        thread: ThreadId,
    },
    /// A monitor in use.
    MonitorUsed,
    /// A thread object.
    ThreadObject {
        /// The thread.
        thread: ThreadId,
        /// The stack of the thread.
        trace: TraceId,
    },
}

/// A class with its statics.
#[derive(Clone, Debug)]
pub struct ClassRecord<'a> {
    /// The class object.
    pub object: ObjectHandle,
    /// The class.
    pub class: ClassId,
    /// The stack that loaded it.
    pub trace: TraceId,
    /// The superclass's object, null for none.
    pub superclass: ObjectHandle,
    /// The loader, null for the boot loader.
    pub loader: ObjectHandle,
    /// The signers array, null for none.
    pub signers: ObjectHandle,
    /// The protection domain, null for none.
    pub protection_domain: ObjectHandle,
    /// Static fields with their values.
    pub statics: &'a [(FieldInfo, Value)],
    /// Instance fields this class adds, in the order of [`Instance::values`].
    pub fields: &'a [FieldInfo],
    /// Bytes of one instance as the VM lays it out, 0 if not known.
    pub instance_size: u64,
}

/// An object that is neither an array nor a class.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    /// The object.
    pub object: ObjectHandle,
    /// Its class.
    pub class: ClassId,
    /// Its class's object.
    pub class_object: ObjectHandle,
    /// The stack that allocated it, [`TraceId::EMPTY`] if not known.
    pub trace: TraceId,
    /// Bytes in the heap.
    pub size: u64,
    /// Values: the fields of the class itself first, then those of its superclass, and so on, as in HPROF.
    pub values: &'a [Value],
}

/// An array of references.
#[derive(Clone, Debug)]
pub struct ObjectArray<'a> {
    /// The array.
    pub object: ObjectHandle,
    /// The class of the array (not of its elements).
    pub class: ClassId,
    /// The array class's object.
    pub class_object: ObjectHandle,
    /// The stack that allocated it.
    pub trace: TraceId,
    /// Bytes in the heap.
    pub size: u64,
    /// All elements, nulls included.
    pub elements: &'a [ObjectHandle],
}

/// An array of primitive values.
#[derive(Clone, Debug)]
pub struct PrimitiveArray<'a> {
    /// The array.
    pub object: ObjectHandle,
    /// The class of the array.
    pub class: ClassId,
    /// The stack that allocated it.
    pub trace: TraceId,
    /// Bytes in the heap.
    pub size: u64,
    /// The element type.
    pub element: BasicType,
    /// How many elements.
    pub len: u32,
    /// The elements in the byte order of this machine.
    pub bytes: &'a [u8],
}

/// A tracked object in a dump that the VM wrote itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedObject {
    /// Its id in the dump.
    pub address: u64,
    /// Its class.
    pub class: ClassId,
    /// The stack that allocated it.
    pub trace: TraceId,
}

/// The objects at the addresses of a dump that the VM wrote itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeDump {
    /// Tracked objects that did not move while the dump was written, by address.
    pub objects: Vec<PlacedObject>,
    /// Live tracked objects for which this is unknown.
    pub moved: u64,
    /// Class objects.
    pub classes: Vec<(u64, ClassId)>,
    /// Thread objects.
    pub threads: Vec<(u64, ThreadId)>,
    /// Other objects that have a handle outside of dumps.
    pub handles: Vec<(u64, ObjectHandle)>,
    /// Objects of the profiler, which must be left out of dumps.
    pub own: Vec<u64>,
}

/// Receives a heap walk. Order: roots, then objects in any order, then classes. All handles remain valid during the
/// whole walk.
pub trait HeapVisitor {
    /// A root and its kind. An object may be passed several times.
    fn root(&mut self, object: ObjectHandle, why: Root);
    /// A plain object.
    fn instance(&mut self, record: &Instance<'_>);
    /// An array of references.
    fn object_array(&mut self, record: &ObjectArray<'_>);
    /// An array of primitives.
    fn primitive_array(&mut self, record: &PrimitiveArray<'_>);
    /// A class.
    fn class(&mut self, record: &ClassRecord<'_>);
    /// Whether to continue; called between objects.
    fn keep_going(&self) -> bool {
        true
    }
}
