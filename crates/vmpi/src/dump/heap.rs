//! Records of heap and object dumps (sections 4.2 and 4.3).

use super::{Cursor, IdLayout, Shapes, basic_type, put_value};
use crate::heap::Value;
use crate::ids::ObjectHandle;
use crate::info::BasicType;
use crate::vm_event::{DumpLevel, EnvId, RefId};
use crate::wire::Damage;

const ROOT_UNKNOWN: u8 = 0xff;
const ROOT_JNI_GLOBAL: u8 = 1;
const ROOT_JNI_LOCAL: u8 = 2;
const ROOT_JAVA_FRAME: u8 = 3;
const ROOT_NATIVE_STACK: u8 = 4;
const ROOT_STICKY_CLASS: u8 = 5;
const ROOT_THREAD_BLOCK: u8 = 6;
const ROOT_MONITOR_USED: u8 = 7;
const CLASS_DUMP: u8 = 0x20;
const INSTANCE_DUMP: u8 = 0x21;
const OBJ_ARRAY_DUMP: u8 = 0x22;
const PRIM_ARRAY_DUMP: u8 = 0x23;

/// A record of a dump of level 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRecord {
    /// The object.
    pub object: ObjectHandle,
    /// The element type, if it is an array.
    pub array: Option<BasicType>,
}

/// Why an object is a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootKind {
    /// No reason given.
    Unknown,
    /// A JNI global reference.
    JniGlobal(RefId),
    /// A JNI local reference; the frame counts from the top, -1 for none.
    JniLocal(EnvId, i32),
    /// A local variable; the frame likewise.
    JavaFrame(EnvId, i32),
    /// A native stack.
    NativeStack(EnvId),
    /// A system class.
    StickyClass,
    /// A thread block.
    ThreadBlock(EnvId),
    /// An entered monitor.
    MonitorUsed,
}

/// A class object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassDump {
    /// The class.
    pub class: ObjectHandle,
    /// Its superclass, null for none.
    pub superclass: ObjectHandle,
    /// Its loader.
    pub loader: ObjectHandle,
    /// Its signers.
    pub signers: ObjectHandle,
    /// Its protection domain.
    pub protection_domain: ObjectHandle,
    /// Bytes of an instance.
    pub instance_size: u32,
    /// Its interfaces.
    pub interfaces: Vec<ObjectHandle>,
    /// Values in its constant pool by index.
    pub constants: Vec<(u16, Value)>,
    /// Static values in the order of its declaration; in a dump of level 1 the
    /// references only.
    pub statics: Vec<Value>,
}

/// A record of a dump of level 1 or 2, or of an object dump.
#[derive(Clone, Debug, PartialEq)]
pub enum HeapRecord {
    /// A root.
    Root {
        /// The object that is kept alive.
        object: ObjectHandle,
        /// Why.
        why: RootKind,
    },
    /// A class.
    Class(ClassDump),
    /// A plain object.
    Instance {
        /// The object.
        object: ObjectHandle,
        /// Its class.
        class: ObjectHandle,
        /// Its fields, to be read with [`field_values`](super::field_values).
        fields: Vec<u8>,
    },
    /// An array of references.
    ObjectArray {
        /// The array.
        object: ObjectHandle,
        /// The class of its elements, null if not known.
        element_class: ObjectHandle,
        /// Its elements.
        elements: Vec<ObjectHandle>,
    },
    /// An array of primitive values.
    PrimitiveArray {
        /// The array.
        object: ObjectHandle,
        /// The type of its elements.
        element: BasicType,
        /// How many there are.
        len: u32,
        /// The elements in big-endian order; empty in a dump of level 1.
        data: Vec<u8>,
    },
}

/// The bytes of a dump of level 0.
#[must_use]
pub fn encode_ids(records: &[IdRecord], layout: IdLayout) -> Vec<u8> {
    let mut out = Vec::with_capacity(records.len() * 9);
    for record in records {
        out.push(record.array.map_or(0, |kind| kind as u8));
        layout.put(&mut out, record.object.0);
    }
    out
}

/// The records of a dump of level 0; if it is damaged, those before the damage.
#[must_use]
pub fn decode_ids(bytes: &[u8], layout: IdLayout) -> (Vec<IdRecord>, Option<Damage>) {
    let mut cursor = Cursor::new(bytes, layout);
    collect(&mut cursor, |cursor| {
        let at = *cursor;
        let code = cursor.u1("a type")?;
        let array = match code {
            0 => None,
            code => Some(basic_type(code).ok_or_else(|| at.damage("a type", code))?),
        };
        let object = cursor.object("an object")?;
        Ok(IdRecord { object, array })
    })
}

/// Appends one record to a dump of level 1 or 2. For level 1, a complete record is reduced to its references, but the
/// caller must reduce instance bytes ([`field_bytes`](super::field_bytes)).
pub fn encode(out: &mut Vec<u8>, record: &HeapRecord, level: DumpLevel, layout: IdLayout) {
    let full = level == DumpLevel::Values;
    match record {
        HeapRecord::Root { object, why } => encode_root(out, *object, *why, layout),
        HeapRecord::Class(class) => {
            out.push(CLASS_DUMP);
            for id in [class.class, class.superclass, class.loader, class.signers] {
                layout.put(out, id.0);
            }
            for id in [class.protection_domain.0, 0, 0] {
                layout.put(out, id);
            }
            out.extend_from_slice(&class.instance_size.to_be_bytes());
            for interface in &class.interfaces {
                layout.put(out, interface.0);
            }
            let kept = |value: &Value| full || matches!(value, Value::Object(_));
            out.extend_from_slice(&(class.constants.len() as u16).to_be_bytes());
            for (index, value) in &class.constants {
                out.extend_from_slice(&index.to_be_bytes());
                out.push(value.basic_type() as u8);
                put_value(out, layout, *value);
            }
            for value in class.statics.iter().filter(|value| kept(value)) {
                put_value(out, layout, *value);
            }
        }
        HeapRecord::Instance {
            object,
            class,
            fields,
        } => {
            out.push(INSTANCE_DUMP);
            layout.put(out, object.0);
            layout.put(out, class.0);
            out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
            out.extend_from_slice(fields);
        }
        HeapRecord::ObjectArray {
            object,
            element_class,
            elements,
        } => {
            out.push(OBJ_ARRAY_DUMP);
            layout.put(out, object.0);
            out.extend_from_slice(&(elements.len() as u32).to_be_bytes());
            layout.put(out, element_class.0);
            for element in elements {
                layout.put(out, element.0);
            }
        }
        HeapRecord::PrimitiveArray {
            object,
            element,
            len,
            data,
        } => {
            out.push(PRIM_ARRAY_DUMP);
            layout.put(out, object.0);
            out.extend_from_slice(&len.to_be_bytes());
            out.push(*element as u8);
            if full {
                out.extend_from_slice(data);
            }
        }
    }
}

fn encode_root(out: &mut Vec<u8>, object: ObjectHandle, why: RootKind, layout: IdLayout) {
    let (tag, pointer, frame) = match why {
        RootKind::Unknown => (ROOT_UNKNOWN, None, None),
        RootKind::JniGlobal(reference) => (ROOT_JNI_GLOBAL, Some(reference.0), None),
        RootKind::JniLocal(env, frame) => (ROOT_JNI_LOCAL, Some(env.0), Some(frame)),
        RootKind::JavaFrame(env, frame) => (ROOT_JAVA_FRAME, Some(env.0), Some(frame)),
        RootKind::NativeStack(env) => (ROOT_NATIVE_STACK, Some(env.0), None),
        RootKind::StickyClass => (ROOT_STICKY_CLASS, None, None),
        RootKind::ThreadBlock(env) => (ROOT_THREAD_BLOCK, Some(env.0), None),
        RootKind::MonitorUsed => (ROOT_MONITOR_USED, None, None),
    };
    out.push(tag);
    layout.put(out, object.0);
    if let Some(pointer) = pointer {
        layout.put(out, pointer);
    }
    if let Some(frame) = frame {
        out.extend_from_slice(&frame.to_be_bytes());
    }
}

/// The records of a dump of level 1 or 2, or of an object dump (which is of level 2); if it is damaged, those before
/// the damage.
#[must_use]
pub fn decode(
    bytes: &[u8],
    level: DumpLevel,
    layout: IdLayout,
    shapes: &dyn Shapes,
) -> (Vec<HeapRecord>, Option<Damage>) {
    let mut cursor = Cursor::new(bytes, layout);
    collect(&mut cursor, |cursor| one(cursor, level, shapes))
}

fn collect<'a, T>(
    cursor: &mut Cursor<'a>,
    mut one: impl FnMut(&mut Cursor<'a>) -> Result<T, Damage>,
) -> (Vec<T>, Option<Damage>) {
    let mut records = Vec::new();
    while !cursor.is_done() {
        match one(cursor) {
            Ok(record) => records.push(record),
            Err(damage) => return (records, Some(damage)),
        }
    }
    (records, None)
}

fn one(
    cursor: &mut Cursor<'_>,
    level: DumpLevel,
    shapes: &dyn Shapes,
) -> Result<HeapRecord, Damage> {
    let start = *cursor;
    let tag = cursor.u1("a record type")?;
    let object = cursor.object("an object");
    let why = match tag {
        ROOT_UNKNOWN => RootKind::Unknown,
        ROOT_JNI_GLOBAL => {
            let object = object?;
            let why = RootKind::JniGlobal(RefId(cursor.id("a reference")?));
            return Ok(HeapRecord::Root { object, why });
        }
        ROOT_JNI_LOCAL | ROOT_JAVA_FRAME => {
            let object = object?;
            let env = EnvId(cursor.id("a thread")?);
            let frame = cursor.u4("a frame")? as i32;
            let why = if tag == ROOT_JNI_LOCAL {
                RootKind::JniLocal(env, frame)
            } else {
                RootKind::JavaFrame(env, frame)
            };
            return Ok(HeapRecord::Root { object, why });
        }
        ROOT_NATIVE_STACK | ROOT_THREAD_BLOCK => {
            let object = object?;
            let env = EnvId(cursor.id("a thread")?);
            let why = if tag == ROOT_NATIVE_STACK {
                RootKind::NativeStack(env)
            } else {
                RootKind::ThreadBlock(env)
            };
            return Ok(HeapRecord::Root { object, why });
        }
        ROOT_STICKY_CLASS => RootKind::StickyClass,
        ROOT_MONITOR_USED => RootKind::MonitorUsed,
        CLASS_DUMP => return class(cursor, object?, level, shapes).map(HeapRecord::Class),
        INSTANCE_DUMP => {
            let (object, class) = (object?, cursor.object("a class")?);
            let len = cursor.u4("a length")?;
            let fields = cursor.take(len as usize, "fields")?.to_vec();
            return Ok(HeapRecord::Instance {
                object,
                class,
                fields,
            });
        }
        OBJ_ARRAY_DUMP => {
            let (object, len) = (object?, cursor.u4("a length")?);
            let element_class = cursor.object("a class")?;
            let elements = cursor.ids(len, "elements")?;
            let elements = elements.into_iter().map(ObjectHandle).collect();
            return Ok(HeapRecord::ObjectArray {
                object,
                element_class,
                elements,
            });
        }
        PRIM_ARRAY_DUMP => {
            let (object, len) = (object?, cursor.u4("a length")?);
            let element = cursor.basic_type()?;
            let width = element
                .width()
                .ok_or_else(|| start.damage("a primitive type", 2))?;
            let bytes = if level == DumpLevel::Values {
                len as usize
            } else {
                0
            };
            let data = cursor
                .take(bytes.saturating_mul(width), "elements")?
                .to_vec();
            return Ok(HeapRecord::PrimitiveArray {
                object,
                element,
                len,
                data,
            });
        }
        other => return Err(start.damage("a record type", format!("{other:#04x}"))),
    };
    let object = object?;
    Ok(HeapRecord::Root { object, why })
}

fn class(
    cursor: &mut Cursor<'_>,
    class: ObjectHandle,
    level: DumpLevel,
    shapes: &dyn Shapes,
) -> Result<ClassDump, Damage> {
    let unknown = |cursor: &Cursor<'_>| {
        cursor.damage(
            "a class whose CLASS_LOAD came before",
            format!("{:#x}", class.0),
        )
    };
    let superclass = cursor.object("a superclass")?;
    let loader = cursor.object("a loader")?;
    let signers = cursor.object("signers")?;
    let protection_domain = cursor.object("a protection domain")?;
    cursor.id("a reserved word")?;
    cursor.id("a reserved word")?;
    let instance_size = cursor.u4("an instance size")?;
    let count = shapes.interfaces(class).ok_or_else(|| unknown(cursor))?;
    let interfaces = cursor.ids(count, "interfaces")?;
    let pool = cursor.number(2, "a constant count")?;
    let mut constants = Vec::new();
    for _ in 0..pool {
        let index = cursor.number(2, "a constant index")? as u16;
        let kind = cursor.basic_type()?;
        constants.push((index, cursor.value(kind)?));
    }
    let mut statics = Vec::new();
    if level == DumpLevel::Values {
        for kind in shapes.statics(class).ok_or_else(|| unknown(cursor))? {
            let kind = kind.ok_or_else(|| unknown(cursor))?;
            statics.push(cursor.value(kind)?);
        }
    } else {
        let count = shapes.static_references(class);
        for _ in 0..count.ok_or_else(|| unknown(cursor))? {
            statics.push(cursor.value(BasicType::Object)?);
        }
    }
    Ok(ClassDump {
        class,
        superclass,
        loader,
        signers,
        protection_domain,
        instance_size,
        interfaces: interfaces.into_iter().map(ObjectHandle).collect(),
        constants,
        statics,
    })
}
