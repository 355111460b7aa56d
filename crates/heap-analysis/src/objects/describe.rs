//! How an object is named in every answer: address, class, and a readable value where there is
//! one (`"main"` for a thread, the text of a string, the size of a collection).

use crate::collections::held::quick_size;
use crate::objects::fields::{field_ref, is_subclass_of, text_length, text_prefix};
use heap_graph::{ClassIdx, Heap, ObjIdx, ObjectKind, ObjectView, Value};
use hprof::{BasicType, Bytes, ObjectId};
use serde::{Serialize, Serializer};
use std::fmt;

/// An object id as users write it, `0x7f001000`; serialized as that text because JSON numbers
/// lose digits above 2^53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub ObjectId);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An object: its id for further queries, and what a reader needs to recognise it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectRef {
    /// Its id.
    pub object: Address,
    /// Its class; for class objects `java.lang.Class`.
    pub class: String,
    /// The kind of object.
    pub kind: ObjectKind,
    /// A readable value: the text of a string, the name of a thread, the size of a collection; for a class object the
    /// class that it represents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Its shallow size.
    pub shallow: Bytes,
    /// Its retained size: the bytes that would be freed with it; 0 if it is unreachable.
    pub retained: Bytes,
}

impl ObjectRef {
    /// The class name, or `class X` for the class object of X.
    pub fn title(&self) -> String {
        match (&self.kind, &self.value) {
            (ObjectKind::Class, Some(name)) => format!("class {name}"),
            _ => self.class.clone(),
        }
    }

    /// The value to show beside the title, if it adds anything.
    pub fn detail(&self) -> Option<&str> {
        match self.kind {
            ObjectKind::Class => None,
            _ => self.value.as_deref(),
        }
    }
}

/// Longest readable value, in characters.
pub const MAX_VALUE: usize = 80;

/// Longest text of a string in an answer, in characters.
pub const MAX_TEXT: usize = 1 << 16;

/// Names an object.
pub fn describe(heap: &Heap, object: ObjIdx) -> ObjectRef {
    ObjectRef {
        object: Address(heap.id(object)),
        class: heap.class(heap.class_of(object)).name.clone(),
        kind: heap.kind(object),
        value: value_of(heap, object),
        shallow: heap.shallow(object),
        retained: heap.retained(object),
    }
}

/// `class X` for class objects, the class name for everything else.
pub fn title(heap: &Heap, object: ObjIdx) -> String {
    match heap.class_by_object(object) {
        Some(class) => format!("class {}", heap.class(class).name),
        None => heap.class(heap.class_of(object)).name.clone(),
    }
}

/// The kinds of the root records of an object, each once.
pub fn root_kinds(heap: &Heap, object: ObjIdx) -> Vec<String> {
    let mut kinds: Vec<String> = heap
        .roots_of(object)
        .map(|r| r.kind.name().to_owned())
        .collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// The readable value of an object, at most [`MAX_VALUE`] characters long.
pub fn value_of(heap: &Heap, object: ObjIdx) -> Option<String> {
    match heap.kind(object) {
        ObjectKind::Class => heap
            .class_by_object(object)
            .map(|c| heap.class(c).name.clone()),
        ObjectKind::ObjectArray => match heap.object(object).ok()? {
            ObjectView::ObjectArray { elements, .. } => Some(format!("length {}", elements.len())),
            _ => None,
        },
        ObjectKind::PrimitiveArray => match heap.object(object).ok()? {
            ObjectView::PrimitiveArray { element, len, data } => {
                Some(primitive_preview(element, len, data))
            }
            _ => None,
        },
        ObjectKind::Instance => instance_value(heap, object).map(|text| shorten(&text)),
    }
}

/// Cuts a text to [`MAX_VALUE`] characters and marks the cut.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn primitive_preview(element: BasicType, len: u32, data: &[u8]) -> String {
    let text: Option<String> = match element {
        BasicType::Char => {
            let units = data
                .chunks_exact(2)
                .take(MAX_VALUE + 1)
                .map(|c| u16::from_be_bytes([c[0], c[1]]));
            char::decode_utf16(units)
                .map(|c| c.ok().filter(|c| !c.is_control() || *c == '\n'))
                .collect()
        }
        BasicType::Byte => data
            .iter()
            .take(MAX_VALUE + 1)
            .map(|b| (b.is_ascii_graphic() || *b == b' ' || *b == b'\n').then_some(*b as char))
            .collect(),
        _ => None,
    };
    match text {
        Some(text) if !text.is_empty() => format!("length {len}, {}", shorten(&text)),
        _ => format!("length {len}"),
    }
}

fn instance_value(heap: &Heap, object: ObjIdx) -> Option<String> {
    let class = heap.class_of(object);
    let name = heap.class(class).name.as_str();
    match name {
        "java.lang.String" => text_prefix(heap, object, MAX_VALUE + 1),
        "java.lang.Integer"
        | "java.lang.Long"
        | "java.lang.Short"
        | "java.lang.Byte"
        | "java.lang.Boolean"
        | "java.lang.Character"
        | "java.lang.Double"
        | "java.lang.Float"
        | "java.util.concurrent.atomic.AtomicInteger"
        | "java.util.concurrent.atomic.AtomicLong"
        | "java.util.concurrent.atomic.AtomicBoolean" => scalar_field(heap, object, "value"),
        "java.io.File" => text_field(heap, object, "path"),
        "java.net.URI" => text_field(heap, object, "string"),
        "java.net.URL" => url(heap, object),
        "java.lang.reflect.Method" | "java.lang.reflect.Field" | "java.lang.Module" => {
            text_field(heap, object, "name")
        }
        _ => crate::objects::readable::value(heap, object, name)
            .or_else(|| value_by_ancestry(heap, object, class)),
    }
}

fn value_by_ancestry(heap: &Heap, object: ObjIdx, class: ClassIdx) -> Option<String> {
    if is_subclass_of(heap, class, "java.lang.Thread") {
        return text_field(heap, object, "name");
    }
    if is_subclass_of(heap, class, "java.lang.Enum") {
        return text_field(heap, object, "name");
    }
    if is_subclass_of(heap, class, "java.lang.ClassLoader") {
        return text_field(heap, object, "name");
    }
    if is_subclass_of(heap, class, "java.lang.Throwable") {
        return text_field(heap, object, "detailMessage");
    }
    quick_size(heap, object).map(|size| format!("size {size}"))
}

/// The name of a thread, at most [`MAX_TEXT`] characters: a String since JDK 8u, a `char[]` before.
pub fn thread_name(heap: &Heap, thread: ObjIdx) -> Option<String> {
    text_prefix(heap, field_ref(heap, thread, "name")?, MAX_TEXT)
}

/// The text of a string or `char[]`, at most [`MAX_TEXT`] characters, and the length of the whole text if it is longer.
pub(crate) fn text_of(heap: &Heap, object: ObjIdx) -> Option<(String, Option<u64>)> {
    let mut text = text_prefix(heap, object, MAX_TEXT + 1)?;
    let Some((end, _)) = text.char_indices().nth(MAX_TEXT) else {
        return Some((text, None));
    };
    text.truncate(end);
    Some((text, text_length(heap, object)))
}

/// The text in a field, as far as a readable value shows it.
fn text_field(heap: &Heap, object: ObjIdx, name: &str) -> Option<String> {
    text_prefix(heap, field_ref(heap, object, name)?, MAX_VALUE + 1)
}

fn url(heap: &Heap, object: ObjIdx) -> Option<String> {
    let part = |name| text_field(heap, object, name).unwrap_or_default();
    let (protocol, host, file) = (part("protocol"), part("host"), part("file"));
    if protocol.is_empty() {
        return None;
    }
    let slashes = if host.is_empty() { "" } else { "//" };
    Some(format!("{protocol}:{slashes}{host}{file}"))
}

fn scalar_field(heap: &Heap, object: ObjIdx, name: &str) -> Option<String> {
    let ObjectView::Instance { fields, .. } = heap.object(object).ok()? else {
        return None;
    };
    let field = fields.iter().find(|f| f.name == name)?;
    scalar_text(&field.value)
}

/// A primitive value as Java source would write it; `None` for references.
pub fn scalar_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Reference(_) => return None,
        Value::Boolean(v) => v.to_string(),
        Value::Char(v) => match char::from_u32(u32::from(*v)) {
            Some(c) if !c.is_control() => format!("'{c}'"),
            _ => format!("'\\u{v:04x}'"),
        },
        Value::Float(v) => v.to_string(),
        Value::Double(v) => v.to_string(),
        Value::Byte(v) => v.to_string(),
        Value::Short(v) => v.to_string(),
        Value::Int(v) => v.to_string(),
        Value::Long(v) => v.to_string(),
    })
}
