//! The plain data of a heap: classes, roots, threads, totals. No behaviour beyond lookups.

use crate::object::RefStrength;
use hprof::{BasicType, Bytes, Diagnostics, HeapTag, ObjectId, Serial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of an object, from 0, in the order of object ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjIdx(pub u64);

/// Index of a class in the list of all classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClassIdx(pub u32);

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    /// A class object.
    Class,
    /// An instance.
    Instance,
    /// An array of references.
    ObjectArray,
    /// An array of a primitive type.
    PrimitiveArray,
}

/// How shallow sizes are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutModel {
    /// Header, reference width, alignment and class sizes are inferred from the distances between the addresses of
    /// objects.
    #[default]
    Measured,
    /// By the formula of Eclipse MAT.
    Mat,
    /// Only the bytes of field values count. Every root record, also one of a local variable, is a root.
    Plain,
}

/// Which `java.lang.ref` references keep their referents alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// All of them, as in MAT.
    #[default]
    All,
    /// None of them: only ordinary references count.
    Strong,
    /// Only soft references.
    StrongSoft,
}

impl Strength {
    /// Whether a reference of this strength keeps its target alive.
    pub fn counts(self, reference: RefStrength) -> bool {
        match (self, reference) {
            (Strength::All, _) | (_, RefStrength::Strong) => true,
            (Strength::StrongSoft, RefStrength::Soft) => true,
            (Strength::Strong | Strength::StrongSoft, _) => false,
        }
    }
}

/// A declared instance field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldInfo {
    /// Name of the field.
    pub name: String,
    /// Type of the field.
    pub kind: BasicType,
}

/// A static field with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StaticInfo {
    /// Name of the field.
    pub name: String,
    /// Type of the field.
    pub kind: BasicType,
    /// The value's bits: a reference id, or the primitive widened to 64 bits (sign-extended for
    /// byte, short and int; raw bits for float and double).
    pub bits: u64,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassInfo {
    /// Id of the class object, or the id by which objects refer to a class that the dump does not describe; 0 for a
    /// primitive array class that is not in the dump.
    pub id: ObjectId,
    /// Name as in Java source: `java.lang.String`, `int[]`.
    pub name: String,
    /// Superclass; `None` if it is not in the dump.
    pub super_class: Option<ClassIdx>,
    /// Id of the class loader; 0 for the boot loader.
    pub loader: ObjectId,
    /// Id of the object with its signers; 0 for none.
    pub signers: ObjectId,
    /// Id of the protection domain; 0 for none.
    pub domain: ObjectId,
    /// The instance fields that the class itself declares, in the order of their values in an INSTANCE_DUMP.
    pub fields: Vec<FieldInfo>,
    /// Static fields.
    pub statics: Vec<StaticInfo>,
    /// Ids of the objects that the constant pool refers to; only dumps of an HPROF agent have them.
    pub constants: Vec<ObjectId>,
    /// Size of an instance in bytes, as the CLASS_DUMP states it; 0 if it does not.
    pub stated_size: u32,
    /// Shallow size of an instance in the chosen layout; 0 for array classes.
    pub instance_size: Bytes,
    /// Bytes of the field values of one instance in the dump, including those of superclasses.
    pub field_bytes: u32,
    /// Bytes of the field values of all instances in the dump together. In a damaged dump a class may declare more
    /// fields than that: no instance has a field whose offset is beyond this number.
    pub instance_bytes: Bytes,
    /// Trace serial that the CLASS_DUMP states.
    pub trace: Serial,
    /// Class serial of LOAD_CLASS, by which stack frames refer to the class; 0 if unknown.
    pub serial: Serial,
    /// False if the dump has no CLASS_DUMP of this class, only objects that refer to it.
    pub dumped: bool,
    /// Element type of a primitive array class; `None` for other classes.
    pub element: Option<BasicType>,
    /// Number of objects of this class in the dump, including unreachable ones.
    pub objects: u64,
    /// Shallow size of these objects.
    pub shallow: Bytes,
    /// Number of reachable objects of this class.
    pub reachable_objects: u64,
    /// Shallow size of the reachable objects.
    pub reachable_shallow: Bytes,
    /// Retained size of all objects of this class and its class object together: the sum over those that no other of
    /// them dominates.
    pub retained: Bytes,
}

impl ClassInfo {
    /// Whether a field that this class declares has the referent of a `java.lang.ref.Reference`.
    pub fn is_referent(&self, field: &str) -> bool {
        field == "referent" && self.name == "java.lang.ref.Reference"
    }
}

/// A GC root record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootInfo {
    /// The object. Root records whose object is not in the dump are counted in [`Summary::dangling_roots`] only.
    pub object: ObjIdx,
    /// Kind of the root.
    pub kind: HeapTag,
    /// Serial of the thread that the root belongs to; 0 for none.
    pub thread: Serial,
    /// Number of the frame in the thread's stack, from 0, the innermost; `u32::MAX` for none.
    pub frame: u32,
}

/// A frame of a stack trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameInfo {
    /// Class name as in Java source; empty if unknown.
    pub class: String,
    /// Method name.
    pub method: String,
    /// Method signature.
    pub signature: String,
    /// Name of the source file; empty if unknown.
    pub source: String,
    /// Line number; 0 if there is none, -1 unknown, -2 compiled method, -3 native method.
    pub line: i32,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadInfo {
    /// The thread object; `None` if it is not in the dump.
    pub object: Option<ObjIdx>,
    /// Thread serial.
    pub serial: Serial,
    /// Serial of its stack trace; of a mounted virtual thread without a root, that of its carrier.
    pub trace: Serial,
    /// True if no thread-object root refers to it: a virtual thread that was found among the objects.
    pub unrooted: bool,
}

/// Numbers of objects by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectCounts {
    /// All objects.
    pub total: u64,
    /// Class objects.
    pub classes: u64,
    /// Instances, without class objects.
    pub instances: u64,
    /// Arrays of references.
    pub object_arrays: u64,
    /// Arrays of primitives.
    pub primitive_arrays: u64,
}

/// The layout by which shallow sizes were computed, and how reliable it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayoutInfo {
    /// How sizes were computed.
    pub model: LayoutModel,
    /// Object header in bytes.
    pub header: u32,
    /// Array header in bytes: the offset of the first element of a `byte[]`.
    pub array_header: u32,
    /// Width of a reference in the heap, in bytes.
    pub reference: u32,
    /// Alignment of objects, in bytes.
    pub alignment: u32,
    /// Share (0 to 1) of the measured distances between objects that agree with the sizes; 1 if sizes follow from a
    /// formula.
    pub confidence: f64,
    /// Number of distances that were measured.
    pub samples: u64,
}

/// Retained sizes of groups of objects: the sum over the members that no other member dominates. The numbers of objects
/// and shallow sizes of the same groups are sums over [`ClassInfo`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupSums {
    /// By class number: each class together with its subclasses.
    pub superclasses: Vec<Bytes>,
    /// Packages by name; a class object belongs to the package of the class that it represents. Empty after classes
    /// were renamed, because these are the packages of the names in the dump.
    pub packages: Vec<(String, Bytes)>,
    /// Defining loaders by id; a class object belongs to the loader of the class that it represents.
    pub loaders: Vec<(ObjectId, Bytes)>,
    /// Allocation sites by trace serial; empty if all objects have the same trace serial.
    pub sites: Vec<SiteSums>,
    /// By class number: the objects of the class at the top of the dominator tree, which no other object dominates.
    pub top_level: Vec<Sums>,
}

/// Sums over some objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Number of objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
    /// Sum of their retained sizes.
    pub retained: Bytes,
}

/// The reachable objects of an allocation site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteSums {
    /// Trace serial of the site.
    pub trace: Serial,
    /// Number of objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
    /// The size that they retain together.
    pub retained: Bytes,
}

/// Facts about a dump as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version string of the file.
    pub format: String,
    /// Width of ids in bytes: 4 or 8.
    pub id_size: u32,
    /// When the dump was written, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Size of the file in bytes, decompressed.
    pub bytes: u64,
    /// Number of this snapshot in the file, from 1, and the number of snapshots in the file.
    pub snapshot: (u32, u32),
    /// Number of top-level records of the whole file, by the name of their tag.
    pub records: BTreeMap<String, u64>,
    /// Number of sub-records of the snapshot, by tag (`0x21`).
    pub sub_records: BTreeMap<String, u64>,
    /// Number of root records by kind.
    pub gc_roots: BTreeMap<String, u64>,
    /// Number of root records whose object is not in the dump.
    pub dangling_roots: u64,
    /// Number of references of objects to objects that are not in the dump.
    pub dangling_references: u64,
    /// True if no root record refers to an object of the dump, so the dump does not state which objects are live. Then
    /// every object counts as reachable (except in the plain model) and retains only itself.
    pub no_roots: bool,
    /// Number of object ids that occur more than once; only the first object with an id counts.
    pub duplicate_objects: u64,
    /// Objects in the dump, by kind.
    pub objects: ObjectCounts,
    /// Shallow size of all objects.
    pub shallow: Bytes,
    /// Number of reachable objects.
    pub reachable_objects: u64,
    /// Their shallow size.
    pub reachable_shallow: Bytes,
    /// The layout by which shallow sizes were computed.
    pub layout: LayoutInfo,
    /// Which references keep objects alive.
    pub strength: Strength,
    /// Number of objects and shallow size of each Android heap, by name; empty if the dump has none.
    pub heaps: BTreeMap<String, (u64, Bytes)>,
    /// Number of parked virtual threads whose stacks are not in the dump.
    pub parked_virtual_threads: u64,
    /// Whether the dump was read from memory: the words of stacks are conservative local variables.
    pub from_memory: bool,
    /// Damage and other findings about the file.
    pub diagnostics: Diagnostics,
    /// Bytes that belong to no readable record.
    pub skipped: u64,
}

impl Summary {
    /// Number of parked virtual threads that may keep objects alive that look unreachable: those whose stacks are not in the
    /// dump. A dump that was read from memory has what their stacks refer to.
    pub fn unknown_virtual_threads(&self) -> u64 {
        match self.from_memory {
            true => 0,
            false => self.parked_virtual_threads,
        }
    }
}

/// For every class what it has of its own, or else what its nearest superclass has. Each class is
/// examined once, because a chain of superclasses may be as long as there are classes.
pub fn inherited<T: Copy>(
    classes: &[ClassInfo],
    own: impl Fn(ClassIdx) -> Option<T>,
) -> Vec<Option<T>> {
    let mut known: Vec<Option<Option<T>>> = vec![None; classes.len()];
    let mut path = Vec::new();
    for start in 0..classes.len() as u32 {
        let (mut at, mut found) = (Some(ClassIdx(start)), None);
        while let Some(class) = at {
            let index = class.0 as usize;
            if let Some(value) = known[index] {
                found = value;
                break;
            }
            path.push(index);
            // A class that is met again on the way closes a circle, which inherits nothing.
            known[index] = Some(None);
            found = own(class);
            if found.is_some() {
                break;
            }
            at = classes[index].super_class;
        }
        path.drain(..).for_each(|index| known[index] = Some(found));
    }
    known.into_iter().map(Option::flatten).collect()
}
