//! How big and how full objects are, by the rules of the Cougaar memory profiler: the size is what
//! a collection says it holds, the capacity what its arrays have room for. Read from a dump, so no
//! code of the program runs.

use heap_analysis::describe::Address;
use heap_analysis::fields::{field_int, field_ref};
use heap_analysis::group::loader_name;
use heap_graph::{Heap, ObjIdx, ObjectKind, ObjectView, Value};
use hprof::ObjectId;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Fields that hold a size, in the order in which they are looked for.
const SIZE_FIELDS: [&str; 3] = ["size", "elementCount", "count"];

/// Size and capacity of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Content {
    /// Elements it holds, if it says so.
    pub size: Option<u64>,
    /// Elements its arrays have room for, if it has arrays.
    pub capacity: Option<u64>,
    /// Bytes of these arrays.
    pub capacity_bytes: u64,
}

impl Content {
    /// Room that is not used.
    pub fn excess(&self) -> Option<u64> {
        Some(self.capacity?.saturating_sub(self.size?))
    }
}

/// Sum, maximum and number of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Sum.
    pub sum: u64,
    /// Greatest.
    pub max: u64,
    /// How many values.
    pub count: u64,
}

impl Spread {
    fn add(&mut self, value: u64) {
        self.sum += value;
        self.max = self.max.max(value);
        self.count += 1;
    }

    /// Mean value.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

/// The objects of a class in a dump, all loaders together unless they are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassContents {
    /// Class name.
    pub class: String,
    /// Its loader, where loaders are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loader: Option<String>,
    /// Reachable objects.
    pub objects: u64,
    /// Their shallow bytes.
    pub shallow: u64,
    /// Sizes.
    pub size: Spread,
    /// Capacities.
    pub capacity: Spread,
    /// Bytes of the arrays.
    pub capacity_bytes: u64,
}

/// Every class of a dump that has reachable objects, by falling shallow bytes; classes of one name
/// together, or those of each loader alone.
pub fn by_class(heap: &Heap, per_loader: bool) -> Vec<ClassContents> {
    let mut rows: FxHashMap<(&str, Option<ObjectId>), ClassContents> = FxHashMap::default();
    for (number, class) in heap.classes().iter().enumerate() {
        if class.reachable_objects == 0 {
            continue;
        }
        let loader = per_loader.then_some(class.loader);
        let row = rows
            .entry((&class.name, loader))
            .or_insert_with(|| ClassContents {
                class: class.name.clone(),
                loader: loader.map(|loader| loader_text(heap, loader)),
                ..ClassContents::default()
            });
        row.objects += class.reachable_objects;
        row.shallow += class.reachable_shallow.0;
        let index = heap_graph::ClassIdx(number as u32);
        if heap.class_class() == index {
            continue;
        }
        for object in heap
            .objects_of(index)
            .filter(|object| heap.is_reachable(*object))
        {
            let content = content(heap, object);
            if let Some(size) = content.size {
                row.size.add(size);
            }
            if let Some(capacity) = content.capacity {
                row.capacity.add(capacity);
            }
            row.capacity_bytes += content.capacity_bytes;
        }
    }
    let mut rows: Vec<ClassContents> = rows.into_values().collect();
    rows.sort_by(|a, b| {
        b.shallow
            .cmp(&a.shallow)
            .then_with(|| (&a.class, &a.loader).cmp(&(&b.class, &b.loader)))
    });
    rows
}

/// A loader's class and address: a dump has no other name for most of them.
fn loader_text(heap: &Heap, loader: ObjectId) -> String {
    if loader.is_null() {
        return "(boot loader)".to_owned();
    }
    format!("{} @{}", loader_name(heap, loader), Address(loader))
}

/// Size and capacity of an object.
pub fn content(heap: &Heap, object: ObjIdx) -> Content {
    if let Some(length) = array_length(heap, object) {
        return Content {
            size: Some(length),
            capacity: Some(length),
            capacity_bytes: 0,
        };
    }
    if heap.kind(object) != ObjectKind::Instance {
        return Content::default();
    }
    let name = heap.class(heap.class_of(object)).name.as_str();
    // A set is the map behind it.
    if matches!(name, "java.util.HashSet" | "java.util.LinkedHashSet")
        && let Some(map) = field_ref(heap, object, "map")
    {
        return fields(heap, map, "java.util.HashMap");
    }
    fields(heap, object, name)
}

fn fields(heap: &Heap, object: ObjIdx, class: &str) -> Content {
    let Ok(ObjectView::Instance { fields, .. }) = heap.object(object) else {
        return Content::default();
    };
    let mut content = Content::default();
    for name in SIZE_FIELDS {
        let found = fields.iter().find(|field| field.name == name);
        if let Some(Value::Int(size)) = found.map(|field| &field.value) {
            content.size = u64::try_from(*size).ok();
            break;
        }
    }
    for field in &fields {
        let Value::Reference(id) = field.value else {
            continue;
        };
        let array = heap.find(id).filter(|_| !id.is_null());
        if let Some((array, length)) = array.and_then(|a| Some((a, array_length(heap, a)?))) {
            content.capacity = Some(content.capacity.unwrap_or(0) + length);
            content.capacity_bytes += heap.shallow(array).0;
        }
    }
    known(heap, object, class, &mut content);
    content
}

/// Classes of the JDK whose size is no field of the usual names.
fn known(heap: &Heap, object: ObjIdx, class: &str, content: &mut Content) {
    match class {
        "java.util.ArrayDeque" => {
            let (head, tail) = (
                field_int(heap, object, "head"),
                field_int(heap, object, "tail"),
            );
            if let (Some(head), Some(tail), Some(room)) = (head, tail, content.capacity)
                && let Ok(room) = i64::try_from(room)
                && room > 0
            {
                content.size = u64::try_from((tail - head).rem_euclid(room)).ok();
            }
        }
        "java.util.concurrent.ConcurrentHashMap" => {
            let base = field_int(heap, object, "baseCount").unwrap_or(0);
            let cells = field_ref(heap, object, "counterCells");
            let cells = cells.map_or_else(Vec::new, |cells| {
                heap_analysis::fields::elements(heap, cells)
            });
            let more: i64 = cells
                .iter()
                .filter_map(|cell| field_int(heap, *cell, "value"))
                .sum();
            content.size = u64::try_from(base + more).ok();
            // The cells are counters, not room.
            if let Some(table) = field_ref(heap, object, "table") {
                content.capacity = array_length(heap, table);
                content.capacity_bytes = heap.shallow(table).0;
            }
        }
        "java.lang.String" => {
            let wide = field_int(heap, object, "coder") == Some(1);
            // `char[]` up to JDK 8 counts characters, `byte[]` with UTF-16 two bytes for one.
            content.size = content
                .capacity
                .map(|room| if wide { room / 2 } else { room });
            content.capacity = content.size;
        }
        _ => {}
    }
}

fn array_length(heap: &Heap, object: ObjIdx) -> Option<u64> {
    match heap.kind(object) {
        ObjectKind::ObjectArray | ObjectKind::PrimitiveArray => match heap.object(object).ok()? {
            ObjectView::ObjectArray { elements, .. } => Some(elements.len() as u64),
            ObjectView::PrimitiveArray { len, .. } => Some(u64::from(len)),
            _ => None,
        },
        _ => None,
    }
}
