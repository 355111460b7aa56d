//! The plain data of a heap: classes, roots, threads, totals. No behaviour beyond lookups.

use hprof::{BasicType, Bytes, Diagnostics, HeapTag, ObjectId, Serial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Dense number of an object, in the order of object ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjIdx(pub u64);

/// Dense number of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClassIdx(pub u32);

/// What an object is.
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

/// How shallow sizes are computed (DESIGN section 4; analyzer-features section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutModel {
    /// Header, reference width, alignment and class sizes solved from the gaps between objects.
    #[default]
    Measured,
    /// Eclipse MAT's formula.
    Mat,
    /// Field bytes only; every root record is a root.
    Plain,
}

/// Which `java.lang.ref` referents count as references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// All of them, as MAT does.
    #[default]
    All,
    /// None.
    Strong,
    /// Only soft ones.
    StrongSoft,
}

/// An instance field, as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldInfo {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: BasicType,
}

/// A static field with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StaticInfo {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: BasicType,
    /// The value's bits: a reference id, or the primitive widened to 64 bits (sign-extended for
    /// byte, short and int; raw bits for float and double).
    pub bits: u64,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassInfo {
    /// The class object, or the id by which objects name it; 0 for a primitive array type that
    /// the dump has no class for.
    pub id: ObjectId,
    /// Readable name: `java.lang.String`, `int[]`.
    pub name: String,
    /// Superclass, if it is in the dump.
    pub super_class: Option<ClassIdx>,
    /// Class loader object; null for the boot loader.
    pub loader: ObjectId,
    /// Signers.
    pub signers: ObjectId,
    /// Protection domain.
    pub domain: ObjectId,
    /// Own instance fields in the order of the values in an INSTANCE_DUMP.
    pub fields: Vec<FieldInfo>,
    /// Static fields.
    pub statics: Vec<StaticInfo>,
    /// References in the constant pool (agent dumps only).
    pub constants: Vec<ObjectId>,
    /// Instance size as the dump states it.
    pub stated_size: u32,
    /// Shallow size of an instance in the chosen layout; 0 for array classes.
    pub instance_size: Bytes,
    /// Bytes of field values of an instance in the dump, superclasses included.
    pub field_bytes: u32,
    /// Bytes of field values that all its instances in the dump have together: a field behind them
    /// is in none of them, whatever the class says.
    pub instance_bytes: Bytes,
    /// Trace serial of the CLASS_DUMP.
    pub trace: Serial,
    /// Class serial of LOAD_CLASS, by which stack frames name it; 0 if unknown.
    pub serial: Serial,
    /// False when objects name this class but no CLASS_DUMP has it.
    pub dumped: bool,
    /// Element type for a primitive array class.
    pub element: Option<BasicType>,
    /// All objects of this class in the dump: number and shallow size.
    pub objects: u64,
    /// See `objects`.
    pub shallow: Bytes,
    /// Reachable objects of this class.
    pub reachable_objects: u64,
    /// Their shallow size.
    pub reachable_shallow: Bytes,
    /// Retained by all objects of this class and its class object (top-ancestor rule: the sum
    /// over members that no other member dominates).
    pub retained: Bytes,
}

/// A GC root record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootInfo {
    /// The object. Roots whose object is not in the dump are only counted.
    pub object: ObjIdx,
    /// Kind.
    pub kind: HeapTag,
    /// Thread serial, 0 for none.
    pub thread: Serial,
    /// Frame number in the thread's stack; `u32::MAX` for none.
    pub frame: u32,
}

/// A frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameInfo {
    /// Readable class name, empty if unknown.
    pub class: String,
    /// Method name.
    pub method: String,
    /// Method signature.
    pub signature: String,
    /// Source file, empty if unknown.
    pub source: String,
    /// Line; 0 none, -1 unknown, -2 compiled, -3 native.
    pub line: i32,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadInfo {
    /// Its object, if it is in the dump.
    pub object: Option<ObjIdx>,
    /// Thread serial.
    pub serial: Serial,
    /// Its stack trace.
    pub trace: Serial,
    /// True when no THREAD_OBJ root names it: a virtual thread found among the objects.
    pub unrooted: bool,
}

/// Numbers of objects by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectCounts {
    /// All.
    pub total: u64,
    /// Class objects.
    pub classes: u64,
    /// Instances.
    pub instances: u64,
    /// Object arrays.
    pub object_arrays: u64,
    /// Primitive arrays.
    pub primitive_arrays: u64,
}

/// The layout that sizes were computed with, and how sure it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayoutInfo {
    /// The model.
    pub model: LayoutModel,
    /// Object header in bytes.
    pub header: u32,
    /// Array header in bytes (before the first byte element).
    pub array_header: u32,
    /// Width of a reference in the heap.
    pub reference: u32,
    /// Object alignment.
    pub alignment: u32,
    /// Share (0..1) of the measured gaps that agree with the sizes used; 1 for formulas.
    pub confidence: f64,
    /// Gaps that were examined.
    pub samples: u64,
}

/// What groups of objects retain: the sum over members that no other member dominates. Counts of
/// the same groups are sums over [`ClassInfo`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupSums {
    /// A class with its subclasses, by class number.
    pub superclasses: Vec<Bytes>,
    /// Packages by name, class objects with the class that they are; empty when classes got other
    /// names than the dump has.
    pub packages: Vec<(String, Bytes)>,
    /// Defining loaders by id, class objects likewise.
    pub loaders: Vec<(ObjectId, Bytes)>,
    /// Allocation sites by trace serial; empty when all objects have the same.
    pub sites: Vec<SiteSums>,
    /// Of each class the objects that only the virtual root dominates, by class number.
    pub top_level: Vec<Sums>,
}

/// Objects that were added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Their number.
    pub objects: u64,
    /// Their own size.
    pub shallow: Bytes,
    /// The sum of their retained sizes.
    pub retained: Bytes,
}

/// The reachable objects of an allocation site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteSums {
    /// Its trace.
    pub trace: Serial,
    /// Number of objects.
    pub objects: u64,
    /// Their own size.
    pub shallow: Bytes,
    /// What they retain together.
    pub retained: Bytes,
}

/// What is known about a dump as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version string.
    pub format: String,
    /// 4 or 8.
    pub id_size: u32,
    /// Milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Bytes of the decoded dump.
    pub bytes: u64,
    /// Which snapshot of the file this is, from 1, and how many there are.
    pub snapshot: (u32, u32),
    /// Top-level records by name, of the whole file.
    pub records: BTreeMap<String, u64>,
    /// Sub-records by tag (`0x21`), of the snapshot.
    pub sub_records: BTreeMap<String, u64>,
    /// Root records by kind.
    pub gc_roots: BTreeMap<String, u64>,
    /// Root records whose object is not in the dump.
    pub dangling_roots: u64,
    /// The dump does not say what is alive: no root record names an object. Every object counts as
    /// reachable (except in the plain model), and retains nothing but itself.
    pub no_roots: bool,
    /// Object ids that occur more than once (the first one counts).
    pub duplicate_objects: u64,
    /// Objects in the dump.
    pub objects: ObjectCounts,
    /// Shallow size of all objects.
    pub shallow: Bytes,
    /// Reachable objects.
    pub reachable_objects: u64,
    /// Their shallow size.
    pub reachable_shallow: Bytes,
    /// The layout.
    pub layout: LayoutInfo,
    /// Which references count.
    pub strength: Strength,
    /// Android heaps by name: number of objects and shallow size.
    pub heaps: BTreeMap<String, (u64, Bytes)>,
    /// Parked virtual threads whose stacks the dump does not have.
    pub parked_virtual_threads: u64,
    /// Damage and notes.
    pub diagnostics: Diagnostics,
    /// Bytes that belong to no readable record.
    pub skipped: u64,
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
