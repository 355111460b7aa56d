//! Everything about one object: fields, statics, elements, text, who refers to it, what dominates
//! it, and the stack that allocated it.

use crate::objects::describe::{
    Address, ObjectRef, describe, root_kinds, scalar_text, text_of, value_of,
};
use crate::objects::fields::lineage;
use crate::paths::chain::{Step, dominators_of, steps};
use crate::tables::group::{loader_name, trace_frames};
use crate::tables::ranking::largest;
use heap_graph::{ClassIdx, Heap, HeapError, ObjIdx, ObjectView, Value};
use hprof::{BasicType, Bytes, ObjectId};
use serde::Serialize;

/// How much to include.
#[derive(Clone, Copy, Debug)]
pub struct ObjectOptions {
    /// The most elements, references and dominated objects, each.
    pub limit: usize,
    /// Look up who refers to it (needs inbound references).
    pub inbound: bool,
}

impl Default for ObjectOptions {
    fn default() -> Self {
        ObjectOptions {
            limit: 20,
            inbound: true,
        }
    }
}

/// A field, static field or array element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// Class that declares the field; absent for array elements.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub declared_in: String,
    /// Name of the field, or `[n]` for an array element.
    pub name: String,
    /// The primitive value as text; for a reference `null` or the readable value of the object, empty if it has none.
    pub value: String,
    /// The object that a reference refers to; absent for primitives, for `null`, and if it is not in the dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
}

/// An object that refers to this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Referrer {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// The field of that object that holds the reference.
    pub field: Option<String>,
}

/// The class of the object; for a class object, the class that it represents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassFacts {
    /// Name of the class.
    pub name: String,
    /// Id of the class object.
    pub class_id: Address,
    /// Names of its superclasses, the direct one first.
    pub superclasses: Vec<String>,
    /// Class of the loader with its name, or `<boot>`.
    pub loader: String,
    /// Id of the loader; 0 for the boot loader.
    pub loader_id: Address,
    /// Shallow size of an instance; 0 for array classes.
    pub instance_size: Bytes,
    /// Number of objects of the class in the dump, including unreachable ones.
    pub objects: u64,
}

/// Everything about one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectDetails {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// True if it is reachable from a GC root.
    pub reachable: bool,
    /// Kinds of the root records that refer to it.
    pub roots: Vec<String>,
    /// Name of its Android heap; absent in other dumps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<String>,
    /// Its class; for a class object, the class that it represents.
    pub of_class: ClassFacts,
    /// The text of a string or character array, at most its first 65,536 characters; absent for other objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Number of characters of the whole text; absent if `text` has all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_length: Option<u64>,
    /// Its fields, or the elements of an array.
    pub slots: Vec<Slot>,
    /// Number of fields or elements that `limit` cut off.
    pub omitted_slots: u64,
    /// For a class object: the static fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statics: Vec<Slot>,
    /// Objects that refer to it.
    pub inbound: Vec<Referrer>,
    /// Number of all objects that refer to it; `null` if they were not searched.
    pub inbound_count: Option<u64>,
    /// The path from the top of the dominator tree down to it; empty if it is unreachable. Of a path of more than 4096
    /// steps, the first and the last 2048.
    pub dominators: Vec<Step>,
    /// Number of steps between the first and the last half of `dominators` that were left out.
    pub omitted_dominators: u64,
    /// The largest objects that it dominates directly.
    pub dominated: Vec<ObjectRef>,
    /// Number of all objects that it dominates directly.
    pub dominated_count: u64,
    /// The stack that allocated it, innermost frame first; empty if it is not in the dump.
    pub allocated_at: Vec<String>,
}

/// Describes one object.
pub fn details(
    heap: &Heap,
    object: ObjIdx,
    options: &ObjectOptions,
) -> Result<ObjectDetails, HeapError> {
    let stands_for = heap.class_by_object(object);
    let class = stands_for.unwrap_or_else(|| heap.class_of(object));
    let (slots, omitted_slots) = slots(heap, object, options.limit)?;
    let (inbound, inbound_count) = if options.inbound {
        let all = heap.inbound(object)?;
        let count = all.len() as u64;
        (referrers(heap, object, all, options.limit)?, Some(count))
    } else {
        (Vec::new(), None)
    };
    let (chain, omitted_dominators) = dominators_of(heap, object);
    let dominators = steps(heap, &chain)?;
    let dominated = largest(heap, heap.dominated(Some(object)), options.limit);
    let reachable = heap.is_reachable(object);
    let (text, text_length) = text_of(heap, object).unzip();
    Ok(ObjectDetails {
        object: describe(heap, object),
        reachable,
        roots: root_kinds(heap, object),
        heap: heap.heap_name(object).map(str::to_owned),
        of_class: class_facts(heap, class),
        text,
        text_length: text_length.flatten(),
        slots,
        omitted_slots,
        statics: match stands_for {
            Some(class) => statics(heap, class),
            None => Vec::new(),
        },
        inbound,
        inbound_count,
        dominators: if reachable { dominators } else { Vec::new() },
        omitted_dominators,
        dominated: dominated.into_iter().map(|o| describe(heap, o)).collect(),
        dominated_count: heap.dominated_count(Some(object)),
        allocated_at: trace_frames(heap, heap.allocation_trace(object)),
    })
}

fn class_facts(heap: &Heap, class: ClassIdx) -> ClassFacts {
    let info = heap.class(class);
    ClassFacts {
        name: info.name.clone(),
        class_id: Address(info.id),
        superclasses: lineage(heap, class)
            .skip(1)
            .map(|c| heap.class(c).name.clone())
            .collect(),
        loader: loader_name(heap, info.loader),
        loader_id: Address(info.loader),
        instance_size: info.instance_size,
        objects: info.objects,
    }
}

fn reference_slot(heap: &Heap, declared_in: String, name: String, id: ObjectId) -> Slot {
    let object = heap.find(id);
    let value = match object {
        None if id.is_null() => "null".to_owned(),
        None => format!("{id} (not in the dump)"),
        Some(o) => value_of(heap, o).unwrap_or_default(),
    };
    Slot {
        declared_in,
        name,
        value,
        object: object.map(|o| describe(heap, o)),
    }
}

fn slots(heap: &Heap, object: ObjIdx, limit: usize) -> Result<(Vec<Slot>, u64), HeapError> {
    let mut slots = Vec::new();
    let mut total = 0usize;
    match heap.object(object)? {
        ObjectView::Class { .. } => {}
        ObjectView::Instance { fields, .. } => {
            total = fields.len();
            for field in fields {
                let declared_in = heap.class(field.declared_in).name.clone();
                let name = field.name.to_owned();
                slots.push(match field.value {
                    Value::Reference(id) => reference_slot(heap, declared_in, name, id),
                    value => Slot {
                        declared_in,
                        name,
                        value: scalar_text(&value).unwrap_or_default(),
                        object: None,
                    },
                });
            }
        }
        ObjectView::ObjectArray { elements, .. } => {
            total = elements.len();
            for (n, id) in elements.into_iter().enumerate().take(limit) {
                slots.push(reference_slot(heap, String::new(), format!("[{n}]"), id));
            }
        }
        ObjectView::PrimitiveArray { element, len, data } => {
            total = len as usize;
            let width = element.size(8).max(1);
            for (n, bytes) in data.chunks_exact(width).enumerate().take(limit) {
                slots.push(Slot {
                    declared_in: String::new(),
                    name: format!("[{n}]"),
                    value: scalar_bits(element, big_endian(bytes)),
                    object: None,
                });
            }
        }
    }
    let omitted = (total - slots.len().min(total)) as u64;
    Ok((slots, omitted))
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |bits, b| bits << 8 | u64::from(*b))
}

/// A primitive value from its bits, whether or not they are sign-extended.
fn scalar_bits(kind: BasicType, bits: u64) -> String {
    scalar_text(&Value::from_bits(kind, bits)).unwrap_or_default()
}

fn statics(heap: &Heap, class: ClassIdx) -> Vec<Slot> {
    let info = heap.class(class);
    info.statics
        .iter()
        .map(|s| match s.kind {
            BasicType::Object => {
                reference_slot(heap, info.name.clone(), s.name.clone(), ObjectId(s.bits))
            }
            kind => Slot {
                declared_in: info.name.clone(),
                name: s.name.clone(),
                value: scalar_bits(kind, s.bits),
                object: None,
            },
        })
        .collect()
}

fn referrers(
    heap: &Heap,
    object: ObjIdx,
    mut all: Vec<ObjIdx>,
    limit: usize,
) -> Result<Vec<Referrer>, HeapError> {
    all.sort_unstable();
    all.dedup();
    let mut found = Vec::new();
    for holder in largest(heap, all.into_iter(), limit) {
        found.push(Referrer {
            object: describe(heap, holder),
            field: crate::paths::chain::field_to(heap, holder, object)?,
        });
    }
    Ok(found)
}
