//! The system properties and environment variables of the program, read from its heap.

use crate::collections::held::held;
use crate::objects::describe::Address;
use crate::objects::fields::{class_named, field_ref, static_ref};
use crate::pace::Pace;
use heap_graph::{Control, Heap, ObjIdx, ObjectView};
use serde::Serialize;

/// A limit that no program reaches.
const LIMIT: usize = 100_000;

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Property {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// System properties and environment variables in a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Properties {
    /// Id of the `java.util.Properties` object that `System.getProperties` returns; 0 if it was not found.
    pub object: Address,
    /// The system properties, by name.
    pub properties: Vec<Property>,
    /// The environment variables, by name.
    pub environment: Vec<Property>,
}

/// Reads `java.lang.System.props` (Android: the same, or `unchangeableSystemProperties`) and
/// `java.lang.ProcessEnvironment`.
pub fn properties(heap: &Heap) -> Properties {
    let mut found = Properties::default();
    if let Some(system) = class_named(heap, "java.lang.System") {
        let map = ["props", "systemProperties", "unchangeableSystemProperties"]
            .iter()
            .find_map(|name| static_ref(heap, system, name));
        if let Some(map) = map {
            found.object = Address(heap.id(map));
            found.properties = entries(heap, map, |o| heap.string(o));
        }
    }
    if let Some(class) = class_named(heap, "java.lang.ProcessEnvironment") {
        let map = static_ref(heap, class, "theEnvironment")
            .or_else(|| static_ref(heap, class, "theUnmodifiableEnvironment"));
        if let Some(map) = map {
            found.environment = entries(heap, map, |o| external(heap, o));
        }
    }
    found
}

fn entries(heap: &Heap, map: ObjIdx, text: impl Fn(ObjIdx) -> Option<String>) -> Vec<Property> {
    let quiet = Control::quiet();
    let mut pace = Pace::new(&quiet, "properties", LIMIT as u64);
    let held = held(heap, map, LIMIT, &mut pace).map(|held| held.entries());
    let mut list: Vec<Property> = held
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(key, value)| {
            Some(Property {
                name: text(key?)?,
                value: value.and_then(&text).unwrap_or_default(),
            })
        })
        .collect();
    list.sort();
    list.dedup();
    list
}

/// `ProcessEnvironment$Variable` and `$Value` keep the text in a field, Windows uses Strings.
fn external(heap: &Heap, object: ObjIdx) -> Option<String> {
    if let Some(text) = heap.string(object) {
        return Some(text);
    }
    let text = field_ref(heap, object, "str")?;
    heap.string(text).or_else(|| match heap.object(text).ok()? {
        ObjectView::PrimitiveArray { data, .. } => Some(String::from_utf8_lossy(data).into_owned()),
        _ => None,
    })
}
