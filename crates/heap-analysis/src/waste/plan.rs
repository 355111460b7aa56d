//! What the walks over all objects do with the instances of each class.

use super::native::BufferShape;
use super::references::{ReferenceShape, WeakEntryShape};
use crate::collections::table::CollectionTable;
use crate::sets::object_set::Place;
use heap_graph::{ClassIdx, Heap, Slot, inherited};
use hprof::BasicType;

/// What to do with the instances of a class.
#[derive(Clone, Debug, Default)]
pub(super) struct Role {
    pub(super) boxed: Option<Place>,
    pub(super) reference: Option<ReferenceShape>,
    pub(super) weak_entry: Option<WeakEntryShape>,
    pub(super) buffer: Option<BufferShape>,
    /// Equal instances could be replaced by one: the class has fields, and identity does not matter.
    comparable: bool,
}

/// The roles of all classes.
pub(super) struct Plan {
    pub(super) roles: Vec<Role>,
    pub(super) slots: Vec<Vec<Slot>>,
}

const BOXES: [(&str, BasicType); 8] = [
    ("java.lang.Integer", BasicType::Int),
    ("java.lang.Long", BasicType::Long),
    ("java.lang.Short", BasicType::Short),
    ("java.lang.Byte", BasicType::Byte),
    ("java.lang.Character", BasicType::Char),
    ("java.lang.Boolean", BasicType::Boolean),
    ("java.lang.Float", BasicType::Float),
    ("java.lang.Double", BasicType::Double),
];

/// The primitive type of a box class.
pub(super) fn primitive_of(class: &str) -> Option<BasicType> {
    BOXES
        .iter()
        .find(|(name, _)| *name == class)
        .map(|found| found.1)
}

/// Classes (with subclasses) whose objects have an identity even if their fields are equal; strings and boxes have
/// tables of their own.
const IDENTITIES: [&str; 12] = [
    // These differ in fields that only the VM knows and no dump has.
    "jdk.internal.vm.StackChunk",
    "java.lang.invoke.MemberName",
    "java.lang.invoke.ResolvedMethodName",
    "java.lang.invoke.MethodHandleNatives$CallSiteContext",
    "java.lang.StackFrameInfo",
    "java.lang.Module",
    "java.lang.Thread",
    "java.lang.ClassLoader",
    "java.lang.ref.Reference",
    "java.lang.Enum",
    "java.lang.Class",
    "java.lang.String",
];

impl Plan {
    pub(super) fn new(heap: &Heap) -> Plan {
        let classes = (0..heap.classes().len() as u32).map(ClassIdx);
        let slots: Vec<Vec<Slot>> = classes.clone().map(|c| heap.slots(c)).collect();
        let named = |class: ClassIdx| heap.class(class).name.as_str();
        let weak_entries = inherited(heap.classes(), |class| {
            let known = &CollectionTable::of(heap).weak_entries;
            known.iter().find(|entry| entry.class == named(class))
        });
        let buffers = inherited(heap.classes(), |class| {
            (named(class) == "java.nio.DirectByteBuffer").then_some(())
        });
        let identities = inherited(heap.classes(), |class| {
            IDENTITIES.contains(&named(class)).then_some(())
        });
        let role = |class: ClassIdx| {
            let index = class.0 as usize;
            let slots = &slots[index];
            let is_box = primitive_of(named(class)).is_some();
            Role {
                boxed: if is_box {
                    Place::of(heap, slots, "value")
                } else {
                    None
                },
                reference: ReferenceShape::of(heap, class, slots),
                weak_entry: weak_entries[index]
                    .and_then(|spec| WeakEntryShape::of(heap, spec, slots)),
                buffer: buffers[index].and_then(|()| BufferShape::of(heap, slots)),
                comparable: !slots.is_empty() && !is_box && identities[index].is_none(),
            }
        };
        let roles = classes.map(role).collect();
        Plan { roles, slots }
    }

    /// Whether objects of a class are boxed numbers.
    pub(super) fn is_box(&self, class: ClassIdx) -> bool {
        self.roles[class.0 as usize].boxed.is_some()
    }

    /// Whether an instance may be compared with others of its class. An instance whose fields are all zero does not
    /// count as a copy: locks look like that.
    pub(super) fn comparable(&self, class: ClassIdx, fields: &[u8]) -> bool {
        self.roles[class.0 as usize].comparable && fields.iter().any(|b| *b != 0)
    }
}
