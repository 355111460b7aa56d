//! Fields of single objects by name, and the class hierarchy. A damaged or hostile dump may contain anything,
//! including a cycle of superclasses, so every walk is bounded.

use heap_graph::{
    ClassIdx, Heap, ObjIdx, ObjectView, Value, string_text_length, string_text_prefix,
};
use hprof::{BasicType, ObjectId};

/// No real hierarchy is deeper; a longer one is a cycle in a damaged dump.
pub(crate) const MAX_DEPTH: usize = 4096;

/// The class and its superclasses, the class first.
pub fn lineage(heap: &Heap, class: ClassIdx) -> impl Iterator<Item = ClassIdx> + '_ {
    std::iter::successors(Some(class), |c| heap.class(*c).super_class).take(MAX_DEPTH)
}

/// True when the class or one of its superclasses has this name.
pub fn is_subclass_of(heap: &Heap, class: ClassIdx, ancestor: &str) -> bool {
    lineage(heap, class).any(|c| heap.class(c).name == ancestor)
}

/// The objects of all classes below one of this name.
pub(crate) fn instances<'h>(
    heap: &'h Heap,
    ancestor: &'static str,
) -> impl Iterator<Item = ObjIdx> + 'h {
    let classes = (0..heap.classes().len() as u32).map(ClassIdx);
    classes
        .filter(move |c| heap.class(*c).reachable_objects > 0 && is_subclass_of(heap, *c, ancestor))
        .flat_map(|c| heap.objects_of(c))
        .filter(|o| heap.is_reachable(*o) && heap.class_by_object(*o).is_none())
}

/// The class of this name, the first one in class order when several loaders have one.
pub fn class_named(heap: &Heap, name: &str) -> Option<ClassIdx> {
    heap.classes()
        .iter()
        .position(|c| c.name == name)
        .map(|n| ClassIdx(n as u32))
}

/// The first characters of a string or `char[]`, at most `characters`.
pub(crate) fn text_prefix(heap: &Heap, object: ObjIdx, characters: usize) -> Option<String> {
    heap.string_prefix(object, characters)
        .or_else(|| string_text_prefix(BasicType::Char, None, chars_of(heap, object)?, characters))
}

/// The number of characters of a string or `char[]`.
pub(crate) fn text_length(heap: &Heap, object: ObjIdx) -> Option<u64> {
    heap.string_length(object)
        .or_else(|| string_text_length(BasicType::Char, None, chars_of(heap, object)?))
}

/// The contents of a `char[]`.
fn chars_of(heap: &Heap, object: ObjIdx) -> Option<&[u8]> {
    match heap.object(object).ok()? {
        ObjectView::PrimitiveArray {
            element: BasicType::Char,
            data,
            ..
        } => Some(data),
        _ => None,
    }
}

/// An instance field of this name, the most derived one.
pub fn field(heap: &Heap, object: ObjIdx, name: &str) -> Option<Value> {
    match heap.object(object).ok()? {
        ObjectView::Instance { fields, .. } => {
            fields.into_iter().find(|f| f.name == name).map(|f| f.value)
        }
        _ => None,
    }
}

/// The object in a reference field.
pub fn field_ref(heap: &Heap, object: ObjIdx, name: &str) -> Option<ObjIdx> {
    match field(heap, object, name)? {
        Value::Reference(id) => heap.find(id),
        _ => None,
    }
}

/// The value of a whole-number field.
pub fn field_int(heap: &Heap, object: ObjIdx, name: &str) -> Option<i64> {
    match field(heap, object, name)? {
        Value::Int(n) => Some(i64::from(n)),
        Value::Long(n) => Some(n),
        Value::Short(n) => Some(i64::from(n)),
        Value::Byte(n) => Some(i64::from(n)),
        _ => None,
    }
}

/// The object in a static reference field.
pub fn static_ref(heap: &Heap, class: ClassIdx, name: &str) -> Option<ObjIdx> {
    heap.class(class)
        .statics
        .iter()
        .find(|s| s.name == name && s.kind == BasicType::Object)
        .and_then(|s| heap.find(ObjectId(s.bits)))
}

/// The elements of an object array that are in the dump.
pub fn elements(heap: &Heap, array: ObjIdx) -> Vec<ObjIdx> {
    match heap.object(array) {
        Ok(ObjectView::ObjectArray { elements, .. }) => elements
            .into_iter()
            .filter(|id| !id.is_null())
            .filter_map(|id| heap.find(id))
            .collect(),
        _ => Vec::new(),
    }
}
