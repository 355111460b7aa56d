//! Properties of objects that all dialects use: readable text, field paths, sizes.

use crate::cell::Cell;
use heap_analysis::objects::describe::value_of;
use heap_analysis::objects::fields::{field_int, field_ref, lineage};
use heap_graph::{ClassIdx, Heap, ObjIdx, ObjectKind, ObjectView, Value};
use hprof::{BasicType, ObjectId};

/// The name of a kind in tables.
pub(crate) fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Class => "class",
        ObjectKind::Instance => "instance",
        ObjectKind::ObjectArray => "object_array",
        ObjectKind::PrimitiveArray => "primitive_array",
    }
}

/// A readable value: whole strings and character arrays; otherwise the value that `heap-analysis` shows.
pub(crate) fn readable(heap: &Heap, object: ObjIdx) -> Option<String> {
    if let Some(text) = heap.string(object) {
        return Some(text);
    }
    let name = heap.class(heap.class_of(object)).name.as_str();
    match name {
        "java.lang.StringBuilder" | "java.lang.StringBuffer" => builder_text(heap, object),
        "char[]" => characters(heap, object),
        _ => match heap.kind(object) {
            ObjectKind::Instance | ObjectKind::Class => value_of(heap, object),
            ObjectKind::ObjectArray | ObjectKind::PrimitiveArray => None,
        },
    }
}

/// The text in a `char[]`.
pub(crate) fn characters(heap: &Heap, object: ObjIdx) -> Option<String> {
    match heap.object(object).ok()? {
        ObjectView::PrimitiveArray {
            element: BasicType::Char,
            data,
            ..
        } => {
            let units = data
                .chunks_exact(2)
                .map(|c| u16::from_be_bytes([c[0], c[1]]));
            let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
            Some(text.collect())
        }
        _ => None,
    }
}

fn builder_text(heap: &Heap, object: ObjIdx) -> Option<String> {
    let count = usize::try_from(field_int(heap, object, "count")?).ok()?;
    let array = field_ref(heap, object, "value")?;
    match heap.object(array).ok()? {
        ObjectView::PrimitiveArray {
            element: BasicType::Byte,
            data,
            ..
        } => {
            if field_int(heap, object, "coder") == Some(1) {
                let units = data.chunks_exact(2).take(count);
                let units: Vec<u16> = units.map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
                return Some(String::from_utf16_lossy(&units));
            }
            Some(data.iter().take(count).map(|b| char::from(*b)).collect())
        }
        _ => Some(characters(heap, array)?.chars().take(count).collect()),
    }
}

/// A field's value as a cell; a null reference is no value.
pub(crate) fn cell_of(value: Value) -> Cell {
    match value {
        Value::Reference(id) if id.is_null() => Cell::Null,
        Value::Reference(id) => Cell::Object(id),
        Value::Boolean(v) => Cell::Bool(v),
        Value::Char(v) => Cell::Text(String::from_utf16_lossy(&[v])),
        Value::Float(v) => Cell::Real(f64::from(v)),
        Value::Double(v) => Cell::Real(v),
        Value::Byte(v) => Cell::Int(i64::from(v)),
        Value::Short(v) => Cell::Int(i64::from(v)),
        Value::Int(v) => Cell::Int(i64::from(v)),
        Value::Long(v) => Cell::Int(v),
    }
}

/// The value of a field: the most derived instance field of that name; otherwise, for a class object, a static field
/// of the class or a superclass.
pub(crate) fn field_value(heap: &Heap, object: ObjIdx, name: &str) -> Option<Value> {
    match heap.object(object).ok()? {
        ObjectView::Instance { fields, .. } => {
            fields.into_iter().find(|f| f.name == name).map(|f| f.value)
        }
        ObjectView::Class { class } => static_value(heap, class, name),
        ObjectView::ObjectArray { .. } | ObjectView::PrimitiveArray { .. } => None,
    }
}

/// A static field of a class, or of the nearest superclass that has one of that name.
pub(crate) fn static_value(heap: &Heap, class: ClassIdx, name: &str) -> Option<Value> {
    lineage(heap, class)
        .flat_map(|c| &heap.class(c).statics)
        .find(|s| s.name == name)
        .map(|s| Value::from_bits(s.kind, s.bits))
}

/// Follows `a.b[3].c`; an element of an array may also be written `a.3`.
pub(crate) fn field_path(heap: &Heap, object: ObjIdx, path: &str) -> Cell {
    let mut here = Cell::Object(heap.id(object));
    let steps = path.split(['.', '[']).map(|s| s.trim_end_matches(']'));
    for step in steps.filter(|s| !s.is_empty()) {
        let Cell::Object(id) = here else {
            return Cell::Null;
        };
        let Some(object) = heap.find(id) else {
            return Cell::Null;
        };
        here = match step.parse::<usize>() {
            Ok(index) => element(heap, object, index).unwrap_or(Cell::Null),
            Err(_) => field_value(heap, object, step).map_or(Cell::Null, cell_of),
        };
    }
    here
}

/// Number of elements of an array.
pub(crate) fn array_length(heap: &Heap, object: ObjIdx) -> Option<usize> {
    match heap.object(object).ok()? {
        ObjectView::ObjectArray { elements, .. } => Some(elements.len()),
        ObjectView::PrimitiveArray { len, .. } => Some(len as usize),
        ObjectView::Instance { .. } | ObjectView::Class { .. } => None,
    }
}

/// An element of an array.
pub(crate) fn element(heap: &Heap, array: ObjIdx, index: usize) -> Option<Cell> {
    match heap.object(array).ok()? {
        ObjectView::ObjectArray { elements, .. } => {
            let id: ObjectId = *elements.get(index)?;
            Some(cell_of(Value::Reference(id)))
        }
        ObjectView::PrimitiveArray { element, data, .. } => primitive(element, data, index),
        ObjectView::Instance { .. } | ObjectView::Class { .. } => None,
    }
}

/// An element of a primitive array, from its big-endian bytes.
pub(crate) fn primitive(element: BasicType, data: &[u8], index: usize) -> Option<Cell> {
    let size = element.size(8);
    let from = index.checked_mul(size)?;
    let bytes = data.get(from..from.checked_add(size)?)?;
    let bits = bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    Some(cell_of(Value::from_bits(element, bits)))
}

/// Types as Java writes them; references are `Object`, because the dump has no other type for them.
pub(crate) fn type_name(kind: BasicType) -> &'static str {
    match kind {
        BasicType::Object => "Object",
        BasicType::Boolean => "boolean",
        BasicType::Char => "char",
        BasicType::Float => "float",
        BasicType::Double => "double",
        BasicType::Byte => "byte",
        BasicType::Short => "short",
        BasicType::Int => "int",
        BasicType::Long => "long",
    }
}
