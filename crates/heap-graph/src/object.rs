//! One object of the dump: fields, elements, values, references.

use crate::{ClassIdx, Heap, HeapError, LayoutModel, ObjIdx, ObjectKind};
use hprof::{BasicType, HeapTag, IdSize, ObjectId, SubRecord, read_id};
use std::fmt;

/// A value of a field or array element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A reference, possibly null.
    Reference(ObjectId),
    /// boolean.
    Boolean(bool),
    /// char, a UTF-16 unit.
    Char(u16),
    /// float.
    Float(f32),
    /// double.
    Double(f64),
    /// byte.
    Byte(i8),
    /// short.
    Short(i16),
    /// int.
    Int(i32),
    /// long.
    Long(i64),
}

impl Value {
    /// A value from the bits in a [`StaticInfo`](crate::StaticInfo).
    pub fn from_bits(kind: BasicType, bits: u64) -> Value {
        match kind {
            BasicType::Object => Value::Reference(ObjectId(bits)),
            BasicType::Boolean => Value::Boolean(bits != 0),
            BasicType::Char => Value::Char(bits as u16),
            BasicType::Float => Value::Float(f32::from_bits(bits as u32)),
            BasicType::Double => Value::Double(f64::from_bits(bits)),
            BasicType::Byte => Value::Byte(bits as i8),
            BasicType::Short => Value::Short(bits as i16),
            BasicType::Int => Value::Int(bits as i32),
            BasicType::Long => Value::Long(bits as i64),
        }
    }

    fn read(kind: BasicType, bytes: &[u8], ids: IdSize) -> Value {
        let bits = match kind {
            BasicType::Object => read_id(bytes, ids).0,
            _ => bytes
                .iter()
                .take(kind.size(8))
                .fold(0, |n, b| n << 8 | u64::from(*b)),
        };
        Value::from_bits(kind, bits)
    }
}

/// A field of an instance with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldValue<'a> {
    /// The class that declares it.
    pub declared_in: ClassIdx,
    /// Name.
    pub name: &'a str,
    /// Value.
    pub value: Value,
}

/// An object with its contents.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectView<'a> {
    /// A class object; its statics are in the class table.
    Class {
        /// Which class.
        class: ClassIdx,
    },
    /// An instance.
    Instance {
        /// Its class.
        class: ClassIdx,
        /// Fields, those of the class itself first, then those of the superclass, and so on.
        fields: Vec<FieldValue<'a>>,
    },
    /// An array of references.
    ObjectArray {
        /// Its class.
        class: ClassIdx,
        /// Elements.
        elements: Vec<ObjectId>,
    },
    /// An array of primitives.
    PrimitiveArray {
        /// Element type.
        element: BasicType,
        /// Number of elements.
        len: u32,
        /// Elements, big-endian; empty when the producer left them out.
        data: &'a [u8],
    },
}

/// How one object refers to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// To its class.
    Class,
    /// A class to its superclass.
    Super,
    /// A class to its loader.
    Loader,
    /// A class to its signers.
    Signers,
    /// A class to its protection domain.
    Domain,
    /// By an instance field.
    Field {
        /// Its name.
        name: String,
    },
    /// By a static field.
    Static {
        /// Its name.
        name: String,
    },
    /// By an array element.
    Element(u32),
    /// By a constant pool entry.
    Constant(u32),
    /// A thread to an object that its stack refers to.
    ThreadLocal {
        /// Kind of root record.
        kind: HeapTag,
        /// Frame number, `u32::MAX` for none.
        frame: u32,
    },
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Via::Class => f.write_str("<class>"),
            Via::Super => f.write_str("<super>"),
            Via::Loader => f.write_str("<classloader>"),
            Via::Signers => f.write_str("<signers>"),
            Via::Domain => f.write_str("<domain>"),
            Via::Field { name } => f.write_str(name),
            Via::Static { name } => write!(f, "static {name}"),
            Via::Element(n) => write!(f, "[{n}]"),
            Via::Constant(n) => write!(f, "<constant {n}>"),
            Via::ThreadLocal {
                kind: HeapTag::RootJavaFrame,
                frame,
            } if *frame != u32::MAX => {
                write!(f, "<local in frame {frame}>")
            }
            Via::ThreadLocal { kind, .. } => write!(f, "<{}>", kind.name()),
        }
    }
}

impl Via {
    /// The name of the field or element alone: `next`, `[3]`, `<class>`; of a static field
    /// without the word `static`.
    pub fn field(&self) -> String {
        match self {
            Via::Static { name } => name.clone(),
            other => other.to_string(),
        }
    }

    /// The kind of reference in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Via::Field { .. } => "field",
            Via::Static { .. } => "static",
            Via::Element(_) => "element",
            Via::ThreadLocal { .. } => "local",
            Via::Class => "class",
            Via::Super | Via::Loader | Via::Signers | Via::Domain | Via::Constant(_) => {
                "class_part"
            }
        }
    }
}

impl RefStrength {
    /// The strength in a word.
    pub fn name(self) -> &'static str {
        match self {
            RefStrength::Strong => "strong",
            RefStrength::Soft => "soft",
            RefStrength::Weak => "weak",
            RefStrength::Phantom => "phantom",
            RefStrength::Final => "final",
        }
    }
}

/// Strength of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefStrength {
    /// An ordinary reference.
    Strong,
    /// The referent of a SoftReference.
    Soft,
    /// The referent of a WeakReference.
    Weak,
    /// The referent of a PhantomReference.
    Phantom,
    /// The referent of a FinalReference.
    Final,
}

/// A reference to an object of the dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The object referred to.
    pub target: ObjIdx,
    /// How.
    pub via: Via,
    /// How strongly.
    pub strength: RefStrength,
}

/// The contents of an object as the dump has them, not decoded.
enum Contents<'a> {
    Class(ClassIdx),
    /// The bytes of the fields.
    Instance(&'a [u8]),
    /// The bytes of the elements.
    ObjectArray(&'a [u8]),
    PrimitiveArray {
        element: BasicType,
        len: u32,
        data: &'a [u8],
    },
}

impl Heap {
    /// Reads an object from the dump.
    pub fn object(&self, object: ObjIdx) -> Result<ObjectView<'_>, HeapError> {
        let ids = self.id_size();
        Ok(match self.contents(object)? {
            Contents::Class(class) => ObjectView::Class { class },
            Contents::Instance(bytes) => {
                let class = self.class_of(object);
                ObjectView::Instance {
                    class,
                    fields: self.fields(class, bytes),
                }
            }
            Contents::ObjectArray(bytes) => ObjectView::ObjectArray {
                class: self.class_of(object),
                elements: bytes
                    .chunks_exact(ids.bytes())
                    .map(|e| read_id(e, ids))
                    .collect(),
            },
            Contents::PrimitiveArray { element, len, data } => {
                ObjectView::PrimitiveArray { element, len, data }
            }
        })
    }

    fn contents(&self, object: ObjIdx) -> Result<Contents<'_>, HeapError> {
        if self.kind(object) == ObjectKind::Class
            && let Some(class) = self.class_by_object(object)
        {
            return Ok(Contents::Class(class));
        }
        Ok(match self.record(object)? {
            SubRecord::Instance(instance) => Contents::Instance(instance.fields),
            SubRecord::ObjectArray(array) => Contents::ObjectArray(array.elements),
            SubRecord::PrimitiveArray(array) => Contents::PrimitiveArray {
                element: array.element,
                len: array.len,
                data: array.data,
            },
            _ => Contents::Class(self.class_of(object)),
        })
    }

    /// Decodes field bytes; fields that the bytes do not reach are left out.
    fn fields(&self, class: ClassIdx, bytes: &[u8]) -> Vec<FieldValue<'_>> {
        let ids = self.id_size();
        let mut fields = Vec::new();
        let mut at = 0;
        let mut next = Some(class);
        while let Some(declared_in) = next {
            let info = self.class(declared_in);
            for field in &info.fields {
                let end = at + field.kind.size(ids.bytes());
                let Some(value) = bytes.get(at..end) else {
                    return fields;
                };
                let value = Value::read(field.kind, value, ids);
                fields.push(FieldValue {
                    declared_in,
                    name: &field.name,
                    value,
                });
                at = end;
            }
            next = info.super_class;
        }
        fields
    }

    /// All references of an object to objects of the dump, in the order of the record. Referents that the chosen
    /// strength ignores are listed, too, with their strength.
    pub fn outbound(&self, object: ObjIdx) -> Result<Vec<Reference>, HeapError> {
        let mut out = Vec::new();
        self.each_outbound(object, |reference| {
            out.push(reference);
            Ok::<(), HeapError>(())
        })?;
        Ok(out)
    }

    /// Calls `each` with the references of [`outbound`](Heap::outbound), one at a time, so that a large array takes no
    /// memory.
    ///
    /// # Errors
    /// The first error of `each`, or one of reading the object.
    pub fn each_outbound<E: From<HeapError>>(
        &self,
        object: ObjIdx,
        mut each: impl FnMut(Reference) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut add = |target: ObjectId, via: Via, strength: RefStrength| match self.find(target) {
            Some(target) => each(Reference {
                target,
                via,
                strength,
            }),
            None => Ok(()),
        };
        let strong = RefStrength::Strong;
        let plain = self.summary().layout.model == LayoutModel::Plain;
        match self.contents(object)? {
            Contents::Class(class) => {
                let info = self.class(class);
                if !plain {
                    add(self.class(self.class_of(object)).id, Via::Class, strong)?;
                }
                if let Some(above) = info.super_class {
                    add(self.class(above).id, Via::Super, strong)?;
                }
                add(info.loader, Via::Loader, strong)?;
                if self.summary().layout.model != LayoutModel::Mat {
                    add(info.signers, Via::Signers, strong)?;
                    add(info.domain, Via::Domain, strong)?;
                    for (n, id) in info.constants.iter().enumerate() {
                        add(*id, Via::Constant(n as u32), strong)?;
                    }
                }
                for field in info.statics.iter().filter(|s| s.kind == BasicType::Object) {
                    add(
                        ObjectId(field.bits),
                        Via::Static {
                            name: field.name.clone(),
                        },
                        strong,
                    )?;
                }
            }
            Contents::Instance(bytes) => {
                let class = self.class_of(object);
                add(self.class(class).id, Via::Class, strong)?;
                let referent = self.reference_strength(class);
                for field in self.fields(class, bytes) {
                    if let Value::Reference(id) = field.value {
                        let declared_in = self.class(field.declared_in);
                        let is_referent = declared_in.is_referent(field.name);
                        let strength = referent.filter(|_| is_referent).unwrap_or(strong);
                        add(
                            id,
                            Via::Field {
                                name: field.name.to_owned(),
                            },
                            strength,
                        )?;
                    }
                }
            }
            Contents::ObjectArray(bytes) => {
                add(self.class(self.class_of(object)).id, Via::Class, strong)?;
                let ids = self.id_size();
                for (n, element) in bytes.chunks_exact(ids.bytes()).enumerate() {
                    add(read_id(element, ids), Via::Element(n as u32), strong)?;
                }
            }
            Contents::PrimitiveArray { .. } => {
                if self.summary().layout.model == LayoutModel::Mat {
                    add(self.class(self.class_of(object)).id, Via::Class, strong)?;
                }
            }
        }
        for (_, target, kind, frame) in self.locals_of(object) {
            let via = Via::ThreadLocal {
                kind: *kind,
                frame: *frame,
            };
            each(Reference {
                target: ObjIdx(*target),
                via,
                strength: strong,
            })?;
        }
        Ok(())
    }

    /// References that are in no record of an instance or array, so that [`walk_contents`](Heap::walk_contents) does
    /// not show them: those of class objects, except the one to their class, and those from the stacks of threads.
    pub fn references_beside_records(&self) -> Result<Vec<(ObjIdx, Reference)>, HeapError> {
        let mut found = Vec::new();
        let classes = (0..self.classes().len() as u32).map(ClassIdx);
        let objects = classes.filter_map(|c| Some((c, self.class_object(c)?)));
        for (_, object) in objects.filter(|(c, o)| self.class_by_object(*o) == Some(*c)) {
            let of = self.outbound(object)?.into_iter();
            found.extend(of.filter(|r| r.via != Via::Class).map(|r| (object, r)));
        }
        let threads = self.threads().iter().filter_map(|t| t.object);
        let threads: std::collections::BTreeSet<ObjIdx> = threads.collect();
        for object in threads {
            let of = self.outbound(object)?.into_iter();
            let local = |r: &Reference| matches!(r.via, Via::ThreadLocal { .. });
            found.extend(of.filter(local).map(|r| (object, r)));
        }
        Ok(found)
    }
}
