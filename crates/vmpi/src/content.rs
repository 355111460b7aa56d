//! How large and how full an object is, by the rules of the Cougaar memory profiler: the size is the element count in a
//! collection's own field, the capacity is the number of elements for which its arrays have space. The rules are the
//! same for objects of a heap dump and of a running VM; no code of the program runs.

/// Fields that contain a size, in the order in which they are searched.
const SIZE_FIELDS: [&str; 3] = ["size", "elementCount", "count"];

/// An array: elements and bytes.
pub type Array = (u64, u64);

/// Objects whose fields can be read. A field name refers to the field of the nearest class in the hierarchy.
pub trait Fields {
    /// An object.
    type Object: Copy;

    /// An `int` field.
    fn int(&self, object: Self::Object, name: &str) -> Option<i64>;
    /// A `long` field.
    fn long(&self, object: Self::Object, name: &str) -> Option<i64>;
    /// A `byte` field.
    fn byte(&self, object: Self::Object, name: &str) -> Option<i64>;
    /// The object that a field with this descriptor refers to.
    fn reference(&self, object: Self::Object, name: &str, descriptor: &str)
    -> Option<Self::Object>;
    /// Elements and bytes, if the object is an array.
    fn array(&self, object: Self::Object) -> Option<Array>;
    /// The arrays that instance fields refer to, including fields of superclasses.
    fn arrays(&self, object: Self::Object) -> Vec<Array>;
    /// The elements of an array of references.
    fn elements(&self, object: Self::Object) -> Vec<Self::Object>;
}

/// Size and capacity of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// The number of its elements, if it has a field for that.
    pub size: Option<u64>,
    /// The number of elements for which its arrays have space, if it has arrays.
    pub capacity: Option<u64>,
    /// Bytes of these arrays.
    pub capacity_bytes: u64,
}

/// Size and capacity of an object of a class, which is named as in Java source.
pub fn fill<F: Fields>(fields: &F, object: F::Object, class: &str) -> Fill {
    if let Some((length, _)) = fields.array(object) {
        return Fill {
            size: Some(length),
            capacity: Some(length),
            capacity_bytes: 0,
        };
    }
    // A set delegates to a map.
    if is_set(class)
        && let Some(map) = fields.reference(object, "map", "Ljava/util/HashMap;")
    {
        return plain(fields, map);
    }
    let mut fill = plain(fields, object);
    known(fields, object, class, &mut fill);
    fill
}

fn is_set(class: &str) -> bool {
    matches!(class, "java.util.HashSet" | "java.util.LinkedHashSet")
}

/// Whether objects of a class, except arrays, may have a size or a capacity: `int_field` returns whether they have such
/// a field, `has_arrays` whether their fields may refer to arrays.
pub fn may_be_filled(class: &str, has_arrays: bool, int_field: impl Fn(&str) -> bool) -> bool {
    has_arrays || is_set(class) || SIZE_FIELDS.iter().any(|name| int_field(name))
}

fn plain<F: Fields>(fields: &F, object: F::Object) -> Fill {
    let mut fill = Fill::default();
    let size = SIZE_FIELDS.iter().find_map(|name| fields.int(object, name));
    fill.size = size.and_then(|size| u64::try_from(size).ok());
    for (length, bytes) in fields.arrays(object) {
        fill.capacity = Some(fill.capacity.unwrap_or(0) + length);
        fill.capacity_bytes += bytes;
    }
    fill
}

/// Handles classes of the JDK whose size is not in a field of the usual names.
fn known<F: Fields>(fields: &F, object: F::Object, class: &str, fill: &mut Fill) {
    match class {
        "java.util.ArrayDeque" => {
            let (head, tail) = (fields.int(object, "head"), fields.int(object, "tail"));
            if let (Some(head), Some(tail), Some(room)) = (head, tail, fill.capacity)
                && let Ok(room) = i64::try_from(room)
                && room > 0
            {
                fill.size = u64::try_from((tail - head).rem_euclid(room)).ok();
            }
        }
        "java.util.concurrent.ConcurrentHashMap" => {
            const INSIDE: &str = "java/util/concurrent/ConcurrentHashMap";
            let base = fields.long(object, "baseCount").unwrap_or(0);
            let cells = format!("[L{INSIDE}$CounterCell;");
            let cells = fields.reference(object, "counterCells", &cells);
            let cells = cells.map_or_else(Vec::new, |cells| fields.elements(cells));
            let cells = cells.iter().filter_map(|cell| fields.long(*cell, "value"));
            fill.size = u64::try_from(cells.fold(base, i64::wrapping_add)).ok();
            // The cells are counters, not capacity.
            let table = fields.reference(object, "table", &format!("[L{INSIDE}$Node;"));
            let table = table.and_then(|table| fields.array(table));
            (fill.capacity, fill.capacity_bytes) =
                table.map_or((None, 0), |(length, bytes)| (Some(length), bytes));
        }
        "java.lang.String" => {
            let wide = fields.byte(object, "coder") == Some(1);
            // `char[]` up to JDK 8 counts characters; `byte[]` with UTF-16 has two bytes per character.
            fill.size = fill.capacity.map(|room| if wide { room / 2 } else { room });
            fill.capacity = fill.size;
        }
        _ => {}
    }
}
