//! How large and how full objects are, by the rules of the Cougaar memory profiler: the size is the element count in a
//! collection's own field, the capacity is the number of elements for which its arrays have space. Both are read from a
//! dump, so no code of the program runs.

use heap_analysis::objects::describe::Address;
use heap_analysis::objects::fields::field_ref;
use heap_analysis::tables::group::loader_name;
use heap_graph::{Heap, ObjIdx, ObjectKind, ObjectView, Value};
use hprof::ObjectId;
use rustc_hash::FxHashMap;
use serde::Serialize;
use vmpi::ClassOptions;
use vmpi::content::{Array, Fields, Fill, fill};

/// Size and capacity of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The number of its elements, if it has a field for that.
    pub size: Option<u64>,
    /// The number of elements for which its arrays have space, if it has arrays.
    pub capacity: Option<u64>,
    /// Bytes of these arrays.
    pub capacity_bytes: u64,
}

impl Content {
    /// Unused capacity.
    pub fn excess(&self) -> Option<u64> {
        Some(self.capacity?.saturating_sub(self.size?))
    }

    /// Without the values that the class filters exclude.
    pub fn cut(self, options: &ClassOptions) -> Content {
        Content {
            size: self.size.filter(|_| options.size),
            capacity: self.capacity.filter(|_| options.capacity),
            capacity_bytes: match options.capacity {
                true => self.capacity_bytes,
                false => 0,
            },
        }
    }
}

impl From<Fill> for Content {
    fn from(fill: Fill) -> Content {
        Content {
            size: fill.size,
            capacity: fill.capacity,
            capacity_bytes: fill.capacity_bytes,
        }
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

/// The objects of a class in a dump, all loaders together unless they are distinguished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassContents {
    /// Class name.
    pub class: String,
    /// Its loader, where loaders are distinguished.
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

/// Every class of a dump that has reachable objects, by descending shallow bytes. Classes with the same name are
/// merged, unless `per_loader` is set.
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

/// A loader's class and address, because most loaders have no other name in a dump.
fn loader_text(heap: &Heap, loader: ObjectId) -> String {
    if loader.is_null() {
        return "(boot loader)".to_owned();
    }
    format!("{} @{}", loader_name(heap, loader), Address(loader))
}

/// Size and capacity of an object.
pub fn content(heap: &Heap, object: ObjIdx) -> Content {
    let kind = heap.kind(object);
    if kind == ObjectKind::Instance || array(heap, object).is_some() {
        let name = heap.class(heap.class_of(object)).name.as_str();
        return fill(&Dumped(heap), object, name).into();
    }
    Content::default()
}

/// The objects of a dump, as input for the rules of size and capacity.
struct Dumped<'a>(&'a Heap);

impl Dumped<'_> {
    fn value(&self, object: ObjIdx, name: &str) -> Option<Value> {
        heap_analysis::objects::fields::field(self.0, object, name)
    }
}

impl Fields for Dumped<'_> {
    type Object = ObjIdx;

    fn int(&self, object: ObjIdx, name: &str) -> Option<i64> {
        match self.value(object, name)? {
            Value::Int(number) => Some(i64::from(number)),
            _ => None,
        }
    }

    fn long(&self, object: ObjIdx, name: &str) -> Option<i64> {
        match self.value(object, name)? {
            Value::Long(number) => Some(number),
            _ => None,
        }
    }

    fn byte(&self, object: ObjIdx, name: &str) -> Option<i64> {
        match self.value(object, name)? {
            Value::Byte(number) => Some(i64::from(number)),
            _ => None,
        }
    }

    fn reference(&self, object: ObjIdx, name: &str, _: &str) -> Option<ObjIdx> {
        field_ref(self.0, object, name)
    }

    fn array(&self, object: ObjIdx) -> Option<Array> {
        array(self.0, object)
    }

    fn arrays(&self, object: ObjIdx) -> Vec<Array> {
        let Ok(ObjectView::Instance { fields, .. }) = self.0.object(object) else {
            return Vec::new();
        };
        let reference = |value: &Value| match value {
            Value::Reference(id) if !id.is_null() => self.0.find(*id),
            _ => None,
        };
        let objects = fields.iter().filter_map(|field| reference(&field.value));
        objects.filter_map(|object| array(self.0, object)).collect()
    }

    fn elements(&self, object: ObjIdx) -> Vec<ObjIdx> {
        heap_analysis::objects::fields::elements(self.0, object)
    }
}

fn array(heap: &Heap, object: ObjIdx) -> Option<Array> {
    let length = match heap.kind(object) {
        ObjectKind::ObjectArray | ObjectKind::PrimitiveArray => match heap.object(object).ok()? {
            ObjectView::ObjectArray { elements, .. } => elements.len() as u64,
            ObjectView::PrimitiveArray { len, .. } => u64::from(len),
            _ => return None,
        },
        _ => return None,
    };
    Some((length, heap.shallow(object).0))
}
