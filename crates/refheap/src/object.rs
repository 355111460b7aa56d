//! Objects and classes of the reference VM.

use vmpi::{ArenaId, BasicType, ClassLoad, FieldDef, JMethodId, MethodDef, ObjectHandle, TraceId};

/// An object by its index in the table: the VM's own id for it, which no collection changes. A profiler receives its
/// address instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjIdx(pub u32);

/// A class by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassIdx(pub u32);

/// The kind of an allocated object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An instance of a class.
    Instance(ClassIdx),
    /// An array of this many references to objects of a class.
    Array(ClassIdx, u32),
    /// An array of this many primitive values.
    Primitive(BasicType, u32),
}

/// A class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Reference slots of an instance.
    pub slots: u32,
    /// Bytes of primitive data of an instance.
    pub data: u32,
    /// Its methods, which stacks refer to.
    pub methods: Vec<(JMethodId, String)>,
}

const HEADER: u64 = 16;
const ARRAY_HEADER: u64 = 24;
const REFERENCE: u64 = 8;

/// The id of the first class. Classes are not objects of this heap: their ids are below all arenas.
const FIRST_CLASS: u64 = 0x1000;

impl ClassIdx {
    /// The id in events.
    #[must_use]
    pub fn handle(self) -> ObjectHandle {
        ObjectHandle(FIRST_CLASS + u64::from(self.0) * 16)
    }

    /// The class with an id.
    #[must_use]
    pub fn of(handle: ObjectHandle) -> Option<Self> {
        let distance = handle.0.checked_sub(FIRST_CLASS)?;
        let number = u32::try_from(distance / 16).ok()?;
        (distance % 16 == 0).then_some(Self(number))
    }
}

impl Class {
    /// The event that defines it.
    pub(crate) fn load(&self, class: ClassIdx) -> ClassLoad {
        let field = |name: String, signature: &str| FieldDef {
            name,
            signature: signature.into(),
        };
        let references = (0..self.slots).map(|at| field(format!("slot{at}"), "Ljava/lang/Object;"));
        let data = (0..self.data).map(|at| field(format!("byte{at}"), "B"));
        let methods = self.methods.iter().map(|(method, name)| MethodDef {
            name: name.clone(),
            signature: "()V".into(),
            start_line: -1,
            end_line: -1,
            method: *method,
        });
        ClassLoad {
            class: class.handle(),
            name: self.name.clone(),
            source: String::new(),
            interfaces: 0,
            methods: methods.collect(),
            statics: Vec::new(),
            instances: references.chain(data).collect(),
        }
    }
}

/// An object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its kind.
    pub shape: Shape,
    /// Its address, which is its id in events.
    pub address: u64,
    /// Its arena.
    pub arena: ArenaId,
    /// Its bytes, header included, a multiple of 8.
    pub size: u64,
    /// Its references.
    pub slots: Vec<Option<ObjIdx>>,
    /// The stack that allocated it.
    pub trace: TraceId,
    /// Collections it has survived in its generation.
    pub(crate) age: u32,
    /// References to it, which only the counting collector counts.
    pub(crate) count: u64,
}

impl Object {
    /// Its current id for a profiler.
    #[must_use]
    pub fn handle(&self) -> ObjectHandle {
        ObjectHandle(self.address)
    }
}

/// All objects that have not been freed.
#[derive(Debug, Default)]
pub struct ObjectTable {
    objects: Vec<Option<Object>>,
    free: Vec<u32>,
    live: u64,
    bytes: u64,
}

impl ObjectTable {
    pub(crate) fn insert(&mut self, object: Object) -> ObjIdx {
        self.live += 1;
        self.bytes += object.size;
        if let Some(at) = self.free.pop() {
            self.objects[at as usize] = Some(object);
            ObjIdx(at)
        } else {
            self.objects.push(Some(object));
            ObjIdx(self.objects.len() as u32 - 1)
        }
    }

    pub(crate) fn remove(&mut self, at: ObjIdx) -> Object {
        let object = self.objects[at.0 as usize].take().expect("a live object");
        self.free.push(at.0);
        self.live -= 1;
        self.bytes -= object.size;
        object
    }

    /// An object.
    ///
    /// # Panics
    /// It has been freed, which is a fault of a collector, never of a script.
    #[must_use]
    pub fn get(&self, at: ObjIdx) -> &Object {
        self.objects[at.0 as usize].as_ref().expect("a live object")
    }

    pub(crate) fn get_mut(&mut self, at: ObjIdx) -> &mut Object {
        self.objects[at.0 as usize].as_mut().expect("a live object")
    }

    /// Every object, by table index.
    pub fn iter(&self) -> impl Iterator<Item = (ObjIdx, &Object)> {
        let numbered = self.objects.iter().enumerate();
        numbered.filter_map(|(at, object)| Some((ObjIdx(at as u32), object.as_ref()?)))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.live
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Their bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Bytes of an object.
pub(crate) fn size_of(shape: Shape, classes: &[Class]) -> u64 {
    let bytes = match shape {
        Shape::Instance(class) => {
            let class = &classes[class.0 as usize];
            HEADER + u64::from(class.slots) * REFERENCE + u64::from(class.data)
        }
        Shape::Array(_, len) => ARRAY_HEADER + u64::from(len) * REFERENCE,
        Shape::Primitive(kind, len) => {
            ARRAY_HEADER + u64::from(len) * kind.width().unwrap_or(8) as u64
        }
    };
    bytes.next_multiple_of(8)
}

/// References of an object.
pub(crate) fn slots_of(shape: Shape, classes: &[Class]) -> usize {
    match shape {
        Shape::Instance(class) => classes[class.0 as usize].slots as usize,
        Shape::Array(_, len) => len as usize,
        Shape::Primitive(..) => 0,
    }
}
