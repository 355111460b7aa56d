//! The `@property` and `method()` of MAT's model of a heap: a fixed table, because no Java code can be called. A
//! property `@x` is the method `getX` or `isX`.

use super::value::{Value, technical};
use crate::describe::{array_length, element, field_value, readable};
use crate::error::QueryError;
use crate::shared::Env;
use heap_analysis::collections::held::{self, Form};
use heap_analysis::objects::fields::{is_subclass_of, lineage};
use heap_analysis::pace::Pace;
use heap_graph::{ClassIdx, Dominator, Heap, ObjIdx, ObjectKind, ObjectView};
use hprof::{BasicType, ObjectId};
use std::rc::Rc;

/// The most elements that are read from one collection.
const LIMIT: usize = 10_000_000;

/// The result of a method: `None` when the value has no such method.
pub(super) type Found = Result<Option<Value>, QueryError>;

/// Calls a method.
pub(super) fn call(env: &Env, on: &Value, name: &str, arguments: &[Value]) -> Found {
    match on {
        Value::Object(o) => match env.heap.class_by_object(*o) {
            Some(class) => match class_method(env, class, name, arguments)? {
                Some(value) => Ok(Some(value)),
                None => object_method(env, *o, name, arguments),
            },
            None => object_method(env, *o, name, arguments),
        },
        Value::Class(class) => class_method(env, *class, name, arguments),
        Value::Str(text) => Ok(string_method(text, name, arguments)),
        Value::Snapshot => snapshot_method(env, name, arguments),
        Value::Row(row) => Ok(row_method(row, name, on, env)),
        Value::List(_) | Value::Ids(_) | Value::Addresses(_) => {
            Ok(list_method(env, on, name, arguments))
        }
        _ => Ok(any_method(env, on, name, arguments)),
    }
}

/// Reads a property.
pub(super) fn property(env: &Env, on: &Value, name: &str) -> Found {
    let mut upper = name.to_owned();
    if let Some(first) = upper.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    for getter in [format!("get{upper}"), format!("is{upper}"), name.to_owned()] {
        if let Some(value) = call(env, on, &getter, &[])? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn text(text: impl Into<String>) -> Value {
    Value::Str(text.into())
}

fn long(n: u64) -> Value {
    Value::Long(i64::try_from(n).unwrap_or(i64::MAX))
}

fn int(n: usize) -> Value {
    i32::try_from(n).map_or(Value::Long(n as i64), Value::Int)
}

/// Methods that every value has.
fn any_method(env: &Env, on: &Value, name: &str, arguments: &[Value]) -> Option<Value> {
    let heap = &env.heap;
    Some(match (name, arguments) {
        ("toString", []) => text(on.text(heap)),
        ("equals", [other]) => Value::Bool(on == other),
        ("hashCode", []) => Value::Int(java_hash(&on.text(heap))),
        ("intValue" | "shortValue" | "byteValue", []) => Value::Int(on.number()?.real() as i32),
        ("longValue", []) => match on.whole() {
            Some(n) => Value::Long(n),
            None => Value::Long(on.number()?.real() as i64),
        },
        ("doubleValue", []) => Value::Double(on.number()?.real()),
        ("floatValue", []) => Value::Float(on.number()?.real() as f32),
        ("compareTo", [other]) => {
            let ordering = super::eval::compare(on, other)?;
            Value::Int(ordering as i32)
        }
        _ => return None,
    })
}

fn java_hash(text: &str) -> i32 {
    text.encode_utf16()
        .fold(0i32, |h, u| h.wrapping_mul(31).wrapping_add(i32::from(u)))
}

fn string_method(on: &str, name: &str, arguments: &[Value]) -> Option<Value> {
    let units: Vec<u16> = on.encode_utf16().collect();
    let part = |from: i64, to: i64| {
        let from = usize::try_from(from).ok()?;
        let to = usize::try_from(to).ok()?;
        Some(text(String::from_utf16_lossy(units.get(from..to)?)))
    };
    // Offsets are in UTF-16 units, as in Java.
    let index = |found: Option<usize>| match found {
        Some(bytes) => int(on[..bytes].encode_utf16().count()),
        None => Value::Int(-1),
    };
    Some(match (name, arguments) {
        ("length" | "getLength", []) => int(units.len()),
        ("isEmpty", []) => Value::Bool(on.is_empty()),
        ("charAt", [n]) => Value::Char(*units.get(usize::try_from(n.whole()?).ok()?)?),
        ("substring", [from]) => part(from.whole()?, units.len() as i64)?,
        ("substring", [from, to]) => part(from.whole()?, to.whole()?)?,
        ("startsWith", [Value::Str(s)]) => Value::Bool(on.starts_with(s.as_str())),
        ("endsWith", [Value::Str(s)]) => Value::Bool(on.ends_with(s.as_str())),
        ("contains", [Value::Str(s)]) => Value::Bool(on.contains(s.as_str())),
        ("indexOf", [Value::Str(s)]) => index(on.find(s.as_str())),
        ("lastIndexOf", [Value::Str(s)]) => index(on.rfind(s.as_str())),
        ("indexOf", [Value::Char(c)]) => {
            index(char::from_u32(u32::from(*c)).and_then(|c| on.find(c)))
        }
        ("equals", [other]) => Value::Bool(matches!(other, Value::Str(s) if s == on)),
        ("equalsIgnoreCase", [Value::Str(s)]) => Value::Bool(s.to_lowercase() == on.to_lowercase()),
        ("toLowerCase", []) => text(on.to_lowercase()),
        ("toUpperCase", []) => text(on.to_uppercase()),
        ("trim", []) => text(on.trim()),
        ("concat", [Value::Str(s)]) => text(format!("{on}{s}")),
        ("replace", [Value::Str(a), Value::Str(b)]) => text(on.replace(a.as_str(), b)),
        ("matches", [Value::Str(pattern)]) => {
            let pattern = regex::Regex::new(&format!("^(?s:{pattern})$")).ok()?;
            Value::Bool(pattern.is_match(on))
        }
        ("compareTo", [Value::Str(s)]) => Value::Int(on.cmp(s.as_str()) as i32),
        ("hashCode", []) => Value::Int(java_hash(on)),
        ("toString", []) => text(on),
        _ => return None,
    })
}

fn row_method(row: &Rc<Vec<(String, Value)>>, name: &str, on: &Value, env: &Env) -> Option<Value> {
    let bean = name.strip_prefix("get").filter(|n| !n.is_empty());
    let named = |wanted: &str| {
        let found = row.iter().find(|(n, _)| n.eq_ignore_ascii_case(wanted));
        found.map(|(_, v)| v.clone())
    };
    named(name)
        .or_else(|| named(bean?))
        .or_else(|| any_method(env, on, name, &[]))
}

fn list_method(env: &Env, on: &Value, name: &str, arguments: &[Value]) -> Option<Value> {
    let elements = on.elements(env)?;
    let at = |v: &Value| usize::try_from(v.whole()?).ok();
    Some(match (name, arguments) {
        ("size" | "length" | "getLength" | "getSize", []) => int(elements.len()),
        ("isEmpty", []) => Value::Bool(elements.is_empty()),
        ("get", [n]) => elements.get(at(n)?).cloned().unwrap_or(Value::Null),
        ("subList", [from, to]) => Value::list(elements.get(at(from)?..at(to)?)?.to_vec()),
        ("contains", [value]) => Value::Bool(elements.iter().any(|e| e.equals(value))),
        ("indexOf", [value]) => {
            let found = elements.iter().position(|e| e.equals(value));
            found.map_or(Value::Int(-1), int)
        }
        _ => return any_method(env, on, name, arguments),
    })
}

/// Elements of an array or known collection of the heap; entries of a map.
pub(super) fn elements(env: &Env, o: ObjIdx) -> Option<Vec<Value>> {
    let heap = &*env.heap;
    match heap.object(o).ok()? {
        ObjectView::ObjectArray { elements, .. } => {
            return Some(
                elements
                    .into_iter()
                    .map(|id| Value::of_id(heap, id))
                    .collect(),
            );
        }
        ObjectView::PrimitiveArray { element, data, .. } => {
            return Some(primitives(element, data).collect());
        }
        ObjectView::Class { .. } => return None,
        ObjectView::Instance { .. } => {}
    }
    let found = env.stop.within(|control| {
        let mut pace = Pace::new(control, "reading a collection", heap.len());
        held::held(heap, o, LIMIT, &mut pace)
    });
    let found = found.ok()?;
    let value = |o: Option<ObjIdx>| o.map_or(Value::Null, Value::Object);
    match found.form {
        Form::Other => None,
        Form::Map => {
            let entry = |(k, v)| {
                let parts = vec![("key".to_owned(), value(k)), ("value".to_owned(), value(v))];
                Value::Row(Rc::new(parts))
            };
            Some(found.entries().into_iter().map(entry).collect())
        }
        Form::List | Form::Set => Some(found.values().into_iter().map(Value::Object).collect()),
    }
}

/// Values of a primitive array from its big-endian bytes.
fn primitives(element: BasicType, data: &[u8]) -> impl Iterator<Item = Value> + '_ {
    data.chunks_exact(element.size(8)).map(move |bytes| {
        let bits = bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        match heap_graph::Value::from_bits(element, bits) {
            heap_graph::Value::Boolean(v) => Value::Bool(v),
            heap_graph::Value::Char(v) => Value::Char(v),
            heap_graph::Value::Float(v) => Value::Float(v),
            heap_graph::Value::Double(v) => Value::Double(v),
            heap_graph::Value::Byte(v) => Value::Int(i32::from(v)),
            heap_graph::Value::Short(v) => Value::Int(i32::from(v)),
            heap_graph::Value::Int(v) => Value::Int(v),
            heap_graph::Value::Long(v) => Value::Long(v),
            heap_graph::Value::Reference(_) => Value::Null,
        }
    })
}

/// Whether an object has this interface of MAT's model.
pub(super) fn implements(env: &Env, on: &Value, interface: &str) -> Option<bool> {
    let simple = interface.strip_prefix("org.eclipse.mat.snapshot.model.")?;
    let kind = match on {
        Value::Object(o) => env.heap.kind(*o),
        Value::Class(_) => ObjectKind::Class,
        _ => return Some(false),
    };
    let is_loader = || match on {
        Value::Object(o) => {
            is_subclass_of(&env.heap, env.heap.class_of(*o), "java.lang.ClassLoader")
        }
        _ => false,
    };
    Some(match simple {
        "IObject" => true,
        "IClass" => kind == ObjectKind::Class,
        "IInstance" => kind == ObjectKind::Instance,
        "IArray" => matches!(kind, ObjectKind::ObjectArray | ObjectKind::PrimitiveArray),
        "IObjectArray" => kind == ObjectKind::ObjectArray,
        "IPrimitiveArray" => kind == ObjectKind::PrimitiveArray,
        "IClassLoader" => is_loader(),
        _ => return None,
    })
}

/// The text that is shown beside an object's technical name; the complete text for character arrays.
pub(super) fn specific(heap: &Heap, o: ObjIdx) -> Option<String> {
    match heap.kind(o) {
        ObjectKind::Class => None,
        ObjectKind::Instance | ObjectKind::ObjectArray => readable(heap, o),
        ObjectKind::PrimitiveArray => readable(heap, o),
    }
}

fn object_method(env: &Env, o: ObjIdx, name: &str, arguments: &[Value]) -> Found {
    let heap = &env.heap;
    let class = heap.class_of(o);
    Ok(Some(match (name, arguments) {
        ("getObjectId", []) => Value::of_number(o),
        ("getObjectAddress", []) => Value::Long(heap.id(o).0 as i64),
        ("getClazz", []) => Value::of_class(heap, class),
        ("getUsedHeapSize", []) => long(heap.shallow(o).0),
        ("getRetainedHeapSize", []) => long(heap.retained(o).0),
        ("getTechnicalName", []) => text(technical(heap, o)),
        ("getClassSpecificName", []) => specific(heap, o).map_or(Value::Null, Value::Str),
        ("getDisplayName", []) => text(match specific(heap, o) {
            Some(value) => format!("{}  {value}", technical(heap, o)),
            None => technical(heap, o),
        }),
        ("toString", []) => text(specific(heap, o).unwrap_or_else(|| technical(heap, o))),
        ("getClass", []) => text(format!("class {}", model_class(heap, o))),
        ("getOutboundReferences", []) => {
            let named = |r: heap_graph::Reference| {
                Value::Row(Rc::new(vec![
                    ("name".to_owned(), text(r.via.to_string())),
                    ("object".to_owned(), Value::Object(r.target)),
                    (
                        "objectAddress".to_owned(),
                        Value::Long(heap.id(r.target).0 as i64),
                    ),
                ]))
            };
            Value::list(heap.outbound(o)?.into_iter().map(named))
        }
        ("getGCRootInfo", []) => {
            if env.gc_roots().binary_search(&o).is_ok() {
                let roots = heap.roots_of(o).filter(|r| !heap.is_held_by_thread(r));
                Value::list(roots.map(|r| text(r.kind.name())))
            } else {
                Value::Null
            }
        }
        ("resolveValue", [Value::Str(path)]) => {
            let mut here = Value::Object(o);
            for step in path.split('.') {
                here = field(heap, &here, step);
            }
            here
        }
        ("getField", [Value::Str(name)]) => match field_value(heap, o, name) {
            Some(value) => named_field(heap, name, value),
            None => Value::Null,
        },
        ("getFields", []) => match heap.object(o)? {
            ObjectView::Instance { fields, .. } => Value::list(
                fields
                    .into_iter()
                    .map(|f| named_field(heap, f.name, f.value)),
            ),
            _ => return Ok(None),
        },
        ("getDefinedClasses", []) if is_subclass_of(heap, class, "java.lang.ClassLoader") => {
            let id = heap.id(o);
            let all = (0..heap.classes().len() as u32).map(ClassIdx);
            let mine = all.filter(|c| heap.class(*c).loader == id);
            Value::list(mine.map(|c| Value::of_class(heap, c)))
        }
        ("hashCode", []) => Value::Int(o.0 as i32),
        ("equals", [other]) => Value::Bool(*other == Value::Object(o)),
        _ => return array_method(env, o, name, arguments),
    }))
}

fn named_field(heap: &Heap, name: &str, value: heap_graph::Value) -> Value {
    Value::Row(Rc::new(vec![
        ("name".to_owned(), text(name)),
        ("value".to_owned(), Value::of_field(heap, value)),
    ]))
}

/// The name of MAT's class for an object.
fn model_class(heap: &Heap, o: ObjIdx) -> &'static str {
    match heap.kind(o) {
        ObjectKind::Class => "org.eclipse.mat.parser.model.ClassImpl",
        ObjectKind::Instance => "org.eclipse.mat.parser.model.InstanceImpl",
        ObjectKind::ObjectArray => "org.eclipse.mat.parser.model.ObjectArrayImpl",
        ObjectKind::PrimitiveArray => "org.eclipse.mat.parser.model.PrimitiveArrayImpl",
    }
}

fn array_method(env: &Env, o: ObjIdx, name: &str, arguments: &[Value]) -> Found {
    let heap = &env.heap;
    let Some(length) = array_length(heap, o) else {
        return Ok(collection_method(env, o, name, arguments));
    };
    let at = |v: &Value| v.whole().and_then(|n| usize::try_from(n).ok());
    let part = |list: Vec<Value>| Value::list(list);
    Ok(Some(match (name, arguments, heap.object(o)?) {
        ("getLength" | "length" | "size", [], _) => int(length),
        ("getReferenceArray", [], ObjectView::ObjectArray { elements, .. }) => {
            Value::Addresses(Rc::new(elements))
        }
        ("getReferenceArray", [from, count], ObjectView::ObjectArray { elements, .. }) => {
            let (Some(from), Some(count)) = (at(from), at(count)) else {
                return Ok(None);
            };
            let slice: Vec<ObjectId> = elements.into_iter().skip(from).take(count).collect();
            Value::Addresses(Rc::new(slice))
        }
        ("getValueArray", [], ObjectView::PrimitiveArray { element, data, .. }) => {
            part(primitives(element, data).collect())
        }
        ("getValueArray", [from, count], ObjectView::PrimitiveArray { element, data, .. }) => {
            let (Some(from), Some(count)) = (at(from), at(count)) else {
                return Ok(None);
            };
            part(primitives(element, data).skip(from).take(count).collect())
        }
        ("getValueAt", [n], ObjectView::PrimitiveArray { element, data, .. }) => at(n)
            .and_then(|n| primitives(element, data).nth(n))
            .unwrap_or(Value::Null),
        ("get", [n], ObjectView::PrimitiveArray { element, data, .. }) => at(n)
            .and_then(|n| primitives(element, data).nth(n))
            .unwrap_or(Value::Null),
        ("get", [n], ObjectView::ObjectArray { .. }) => {
            match at(n).and_then(|n| element(heap, o, n)) {
                Some(crate::Cell::Object(id)) => Value::of_id(heap, id),
                _ => Value::Null,
            }
        }
        ("getType", [], ObjectView::PrimitiveArray { element, .. }) => Value::Int(element as i32),
        ("getComponentType", [], ObjectView::PrimitiveArray { .. }) => {
            text(heap.class(heap.class_of(o)).name.trim_end_matches("[]"))
        }
        _ => return Ok(None),
    }))
}

fn collection_method(env: &Env, o: ObjIdx, name: &str, arguments: &[Value]) -> Option<Value> {
    let heap = &env.heap;
    match (name, arguments) {
        ("size", []) => {
            let found = env.stop.within(|control| {
                let mut pace = Pace::new(control, "reading a collection", heap.len());
                held::size(heap, o, &mut pace)
            });
            Some(int(usize::try_from(found.ok()??).ok()?))
        }
        ("get", [n]) => {
            let n = usize::try_from(n.whole()?).ok()?;
            Some(elements(env, o)?.get(n).cloned().unwrap_or(Value::Null))
        }
        _ => None,
    }
}

/// A field of a value: an instance field, a static field of a class, a column of a row.
pub(super) fn field(heap: &Heap, on: &Value, name: &str) -> Value {
    match on {
        Value::Object(o) => {
            field_value(heap, *o, name).map_or(Value::Null, |v| Value::of_field(heap, v))
        }
        Value::Class(class) => crate::describe::static_value(heap, *class, name)
            .map_or(Value::Null, |v| Value::of_field(heap, v)),
        Value::Row(row) => {
            let found = row.iter().find(|(n, _)| n == name);
            found.map_or(Value::Null, |(_, v)| v.clone())
        }
        _ => Value::Null,
    }
}

fn class_method(env: &Env, class: ClassIdx, name: &str, arguments: &[Value]) -> Found {
    let heap = &env.heap;
    let info = heap.class(class);
    let classes = |list: &[ClassIdx]| Value::list(list.iter().map(|c| Value::of_class(heap, *c)));
    Ok(Some(match (name, arguments) {
        ("getName", []) => text(&info.name),
        ("getClassLoaderId", []) => match heap.find(info.loader) {
            Some(loader) => Value::of_number(loader),
            None => Value::Int(-1),
        },
        ("getClassLoaderAddress", []) => Value::Long(info.loader.0 as i64),
        ("hasSuperClass", []) => Value::Bool(info.super_class.is_some()),
        ("getSuperClass", []) => info
            .super_class
            .map_or(Value::Null, |c| Value::of_class(heap, c)),
        ("getSuperClassId", []) => match info.super_class.and_then(|c| heap.class_object(c)) {
            Some(o) => Value::of_number(o),
            None => Value::Int(-1),
        },
        ("isArrayType", []) => Value::Bool(info.name.ends_with("[]")),
        ("doesExtend", [Value::Str(name)]) => Value::Bool(is_subclass_of(heap, class, name)),
        ("getSubclasses", []) => classes(env.subclasses(class)),
        ("getAllSubclasses", []) => {
            let mut all = env.with_subclasses(&[class]);
            all.retain(|c| *c != class);
            classes(&all)
        }
        ("getNumberOfObjects", []) => long(if env.unreachable {
            info.objects
        } else {
            info.reachable_objects
        }),
        ("getHeapSizePerInstance", []) => long(info.instance_size.0),
        ("getRetainedHeapSizeOfObjects", ..) => long(info.retained.0),
        ("getObjectIds", []) => {
            let objects = env.objects_of(&[class])?.collect::<Result<Vec<_>, _>>()?;
            Value::Ids(Rc::new(objects))
        }
        ("getStaticFields", []) => Value::list(
            info.statics
                .iter()
                .map(|s| named_field(heap, &s.name, heap_graph::Value::from_bits(s.kind, s.bits))),
        ),
        ("getFieldDescriptors", []) => Value::list(info.fields.iter().map(|f| {
            let kind = crate::describe::type_name(f.kind);
            Value::Row(Rc::new(vec![
                ("name".to_owned(), text(&f.name)),
                ("type".to_owned(), text(kind)),
            ]))
        })),
        ("getClassLoader", []) => Value::of_id(heap, info.loader),
        ("getHierarchy", []) => classes(&lineage(heap, class).collect::<Vec<_>>()),
        ("toString", []) if !info.dumped => text(&info.name),
        _ => return Ok(None),
    }))
}

/// The object that an argument refers to: an object, or its number.
pub(super) fn object_argument(env: &Env, value: &Value) -> Option<ObjIdx> {
    match value {
        Value::Object(o) => Some(*o),
        Value::Class(class) => env.heap.class_object(*class),
        other => {
            let n = u64::try_from(other.whole()?).ok()?;
            (n < env.heap.len()).then_some(ObjIdx(n))
        }
    }
}

fn snapshot_method(env: &Env, name: &str, arguments: &[Value]) -> Found {
    let heap = &env.heap;
    let class_list =
        |list: Vec<ClassIdx>| Value::list(list.into_iter().map(|c| Value::of_class(heap, c)));
    let object = arguments.first().and_then(|v| object_argument(env, v));
    Ok(Some(match (name, arguments, object) {
        ("getClasses", [], _) => {
            class_list((0..heap.classes().len() as u32).map(ClassIdx).collect())
        }
        ("getClassesByName", [Value::Str(name), Value::Bool(subclasses)], _) => {
            let named = env.classes_named(name);
            class_list(if *subclasses {
                env.with_subclasses(named)
            } else {
                named.to_vec()
            })
        }
        ("getObject", [_], Some(o)) => Value::Object(o),
        ("getClassOf", [_], Some(o)) => Value::of_class(heap, heap.class_of(o)),
        ("getHeapSize", [_], Some(o)) => long(heap.shallow(o).0),
        ("getRetainedHeapSize", [_], Some(o)) => long(heap.retained(o).0),
        ("getInboundRefererIds", [_], Some(o)) => Value::Ids(Rc::new(inbound_ids(env, o)?)),
        ("getOutboundReferentIds", [_], Some(o)) => Value::Ids(Rc::new(outbound_ids(env, o)?)),
        ("getImmediateDominatedIds", [_], Some(o)) => {
            Value::Ids(Rc::new(heap.dominated(Some(o)).collect()))
        }
        ("getImmediateDominatorId", [_], Some(o)) => match heap.dominator(o) {
            Dominator::Object(above) => Value::of_number(above),
            Dominator::Root | Dominator::Unreachable => Value::Int(-1),
        },
        ("mapIdToAddress", [_], Some(o)) => Value::Long(heap.id(o).0 as i64),
        ("mapAddressToId", [address], _) => {
            let id = address.whole().map(|n| ObjectId(n as u64));
            let found = id.and_then(|id| heap.find(id));
            found.map_or(Value::Null, Value::of_number)
        }
        ("isClass", [_], Some(o)) => Value::Bool(heap.kind(o) == ObjectKind::Class),
        ("isArray", [_], Some(o)) => Value::Bool(array_length(heap, o).is_some()),
        ("isGCRoot", [_], Some(o)) => Value::Bool(env.gc_roots().binary_search(&o).is_ok()),
        ("getGCRoots", [], _) => Value::Ids(Rc::new(env.gc_roots().to_vec())),
        ("getSnapshotInfo", [], _) => Value::Row(Rc::new(snapshot_info(env))),
        _ => return Ok(None),
    }))
}

fn snapshot_info(env: &Env) -> Vec<(String, Value)> {
    let heap = &env.heap;
    let summary = heap.summary();
    vec![
        ("usedHeapSize".to_owned(), long(summary.reachable_shallow.0)),
        (
            "numberOfObjects".to_owned(),
            long(summary.reachable_objects),
        ),
        ("numberOfClasses".to_owned(), int(heap.classes().len())),
        ("numberOfGCRoots".to_owned(), int(env.gc_roots().len())),
        (
            "identifierSize".to_owned(),
            Value::Int(summary.id_size as i32),
        ),
        ("creationDate".to_owned(), long(summary.timestamp_ms)),
    ]
}

/// The objects that hold an object, without those that OQL does not include.
pub(super) fn inbound_ids(env: &Env, o: ObjIdx) -> Result<Vec<ObjIdx>, QueryError> {
    let mut found = env.stop.within(|c| env.heap.inbound_with(o, c))?;
    found.retain(|holder| env.is_visible(*holder));
    Ok(found)
}

/// The objects that an object refers to, each once, by number.
pub(super) fn outbound_ids(env: &Env, o: ObjIdx) -> Result<Vec<ObjIdx>, QueryError> {
    let mut found: Vec<ObjIdx> = env
        .heap
        .outbound(o)?
        .into_iter()
        .map(|r| r.target)
        .collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}
