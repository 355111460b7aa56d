//! Values of a running query, and operations on them.

use crate::cell::Cell;
use crate::describe::{cell_of, readable};
use crate::shared::Env;
use heap_graph::{ClassIdx, Heap, ObjIdx};
use hprof::ObjectId;
use std::rc::Rc;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Char(u16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    Str(String),
    /// An object of the heap.
    Object(ObjIdx),
    /// A reference to an object that is not in the dump.
    Lost(ObjectId),
    /// A class that has no class object in the dump.
    Class(ClassIdx),
    /// A Java list or array.
    List(Rc<Vec<Value>>),
    /// Numbers of objects, the result of `dominators(o)`.
    Ids(Rc<Vec<ObjIdx>>),
    /// Addresses, the result of `@referenceArray`.
    Addresses(Rc<Vec<ObjectId>>),
    /// A row of a sub-query, or another value with named parts.
    Row(Rc<Vec<(String, Value)>>),
    /// `${snapshot}`.
    Snapshot,
}

/// A number, whole or not.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    pub(super) fn real(self) -> f64 {
        match self {
            Number::Whole(n) => n as f64,
            Number::Real(n) => n,
        }
    }
}

impl Value {
    /// The object of an id, or a lost reference; null ids are null.
    pub(super) fn of_id(heap: &Heap, id: ObjectId) -> Value {
        if id.is_null() {
            return Value::Null;
        }
        heap.find(id).map_or(Value::Lost(id), Value::Object)
    }

    /// The number of an object: an int as in MAT, a long if an int is too small.
    pub(super) fn of_number(object: ObjIdx) -> Value {
        i32::try_from(object.0).map_or(Value::Long(object.0 as i64), Value::Int)
    }

    /// The object of a class, if it has one.
    pub(super) fn of_class(heap: &Heap, class: ClassIdx) -> Value {
        heap.class_object(class)
            .map_or(Value::Class(class), Value::Object)
    }

    /// A field's value.
    pub(super) fn of_field(heap: &Heap, value: heap_graph::Value) -> Value {
        use heap_graph::Value as V;
        match value {
            V::Reference(id) => Value::of_id(heap, id),
            V::Boolean(v) => Value::Bool(v),
            V::Char(v) => Value::Char(v),
            V::Float(v) => Value::Float(v),
            V::Double(v) => Value::Double(v),
            V::Byte(v) => Value::Int(i32::from(v)),
            V::Short(v) => Value::Int(i32::from(v)),
            V::Int(v) => Value::Int(v),
            V::Long(v) => Value::Long(v),
        }
    }

    /// The value as a number, if it is one. Characters are not numbers.
    pub(super) fn number(&self) -> Option<Number> {
        Some(match self {
            Value::Int(n) => Number::Whole(i64::from(*n)),
            Value::Long(n) => Number::Whole(*n),
            Value::Float(n) => Number::Real(f64::from(*n)),
            Value::Double(n) => Number::Real(*n),
            _ => return None,
        })
    }

    /// The value as a whole number.
    pub(super) fn whole(&self) -> Option<i64> {
        match self.number()? {
            Number::Whole(n) => Some(n),
            Number::Real(_) => None,
        }
    }

    pub(super) fn list(values: impl IntoIterator<Item = Value>) -> Value {
        Value::List(Rc::new(values.into_iter().collect()))
    }

    /// `=`: numbers are compared by value, other values by identity or content.
    pub(super) fn equals(&self, other: &Value) -> bool {
        match (self.number(), other.number()) {
            (Some(Number::Whole(a)), Some(Number::Whole(b))) => a == b,
            (Some(a), Some(b)) => a.real() == b.real(),
            _ => self == other,
        }
    }

    /// The elements, if it is a list of any kind.
    pub(super) fn elements(&self, env: &Env) -> Option<Vec<Value>> {
        Some(match self {
            Value::List(list) => list.to_vec(),
            Value::Ids(list) => list.iter().map(|o| Value::of_number(*o)).collect(),
            Value::Addresses(list) => list.iter().map(|id| Value::Long(id.0 as i64)).collect(),
            Value::Row(row) => row.iter().map(|(_, v)| v.clone()).collect(),
            Value::Object(o) => super::model::elements(env, *o)?,
            _ => return None,
        })
    }

    /// The text for LIKE and concatenation.
    pub(super) fn text(&self, heap: &Heap) -> String {
        match self {
            Value::Null => "null".to_owned(),
            Value::Bool(v) => v.to_string(),
            Value::Char(c) => String::from_utf16_lossy(&[*c]),
            Value::Int(n) => n.to_string(),
            Value::Long(n) => n.to_string(),
            Value::Float(n) => format!("{n:?}"),
            Value::Double(n) => format!("{n:?}"),
            Value::Str(text) => text.clone(),
            Value::Object(o) => readable(heap, *o).unwrap_or_else(|| technical(heap, *o)),
            Value::Lost(id) => id.to_string(),
            Value::Class(class) => heap.class(*class).name.clone(),
            Value::Snapshot => "snapshot".to_owned(),
            Value::List(_) | Value::Ids(_) | Value::Addresses(_) | Value::Row(_) => {
                self.cell(heap).to_string()
            }
        }
    }

    /// The value as a cell of the result.
    pub(super) fn cell(&self, heap: &Heap) -> Cell {
        match self {
            Value::Null => Cell::Null,
            Value::Bool(v) => Cell::Bool(*v),
            Value::Int(n) => Cell::Int(i64::from(*n)),
            Value::Long(n) => Cell::Int(*n),
            Value::Float(n) => Cell::Real(f64::from(*n)),
            Value::Double(n) => Cell::Real(*n),
            Value::Object(o) => Cell::Object(heap.id(*o)),
            Value::Lost(id) => Cell::Object(*id),
            Value::Char(_) | Value::Str(_) | Value::Class(_) | Value::Snapshot => {
                Cell::Text(self.text(heap))
            }
            Value::List(list) => Cell::List(list.iter().map(|v| v.cell(heap)).collect()),
            Value::Ids(list) => {
                Cell::List(list.iter().map(|o| Cell::Object(heap.id(*o))).collect())
            }
            Value::Addresses(list) => {
                let cell = |id: &ObjectId| cell_of(heap_graph::Value::Reference(*id));
                Cell::List(list.iter().map(cell).collect())
            }
            Value::Row(row) => Cell::List(row.iter().map(|(_, v)| v.cell(heap)).collect()),
        }
    }
}

/// `class @ 0xaddress`.
pub(super) fn technical(heap: &Heap, o: ObjIdx) -> String {
    let class = match heap.class_by_object(o) {
        Some(class) => format!("class {}", heap.class(class).name),
        None => heap.class(heap.class_of(o)).name.clone(),
    };
    format!("{class} @ {}", heap.id(o))
}
