//! The metadata event of a chunk: the types of its values and events.

use super::cursor::Cursor;
use super::values::string;
use rustc_hash::FxHashMap;

/// The most levels of elements: a class has fields, a field has annotations.
const DEPTH: usize = 16;

/// A type of values or events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
}

impl Type {
    /// The index of a field.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

/// A field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    /// Its type.
    pub(super) kind: u64,
    /// Whether it contains a key of the type's pool instead of the value.
    pub(super) is_pooled: bool,
    /// Whether it contains several values, preceded by their number.
    pub(super) is_array: bool,
    /// The unit of a time: `TICKS`, `NANOSECONDS`, ...; empty if it is not a time.
    pub(super) unit: String,
}

/// All types of a chunk by their numbers.
pub(super) type Types = FxHashMap<u64, Type>;

struct Element<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
    children: Vec<Element<'a>>,
}

impl<'a> Element<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        let found = self.attributes.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| *value)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }
}

/// Reads the event; the cursor is after its size and type.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Option<Types> {
    // Start, duration and number of the metadata.
    for _ in 0..3 {
        cursor.integer(8)?;
    }
    let count = cursor.count()?;
    let mut strings = Vec::new();
    for _ in 0..count {
        strings.push(string(cursor)?);
    }
    let root = element(cursor, &strings, 0)?;
    let metadata = root.children.iter().find(|one| one.name == "metadata")?;
    let classes = || metadata.children.iter().filter(|one| one.name == "class");
    let timespan = classes().find(|one| one.get("name") == Some("jdk.jfr.Timespan"));
    let timespan = timespan.and_then(|one| one.number("id"));
    let types = classes().filter_map(|class| {
        let fields = class.children.iter().filter(|one| one.name == "field");
        let fields = fields
            .map(|one| field(one, timespan))
            .collect::<Option<_>>();
        let name = class.get("name")?.to_owned();
        Some((
            class.number("id")?,
            Type {
                name,
                fields: fields?,
            },
        ))
    });
    Some(types.collect())
}

fn field(element: &Element<'_>, timespan: Option<u64>) -> Option<Field> {
    let notes = element
        .children
        .iter()
        .filter(|one| one.name == "annotation");
    let unit = notes
        .filter(|note| timespan.is_some() && note.number("class") == timespan)
        .find_map(|note| note.get("value"));
    Some(Field {
        name: element.get("name")?.to_owned(),
        kind: element.number("class")?,
        is_pooled: element.get("constantPool") == Some("true"),
        is_array: element
            .number("dimension")
            .is_some_and(|dimension| dimension > 0),
        unit: unit.unwrap_or_default().to_owned(),
    })
}

fn element<'a>(
    cursor: &mut Cursor<'_>,
    strings: &'a [String],
    depth: usize,
) -> Option<Element<'a>> {
    if depth > DEPTH {
        return None;
    }
    let text = |cursor: &mut Cursor<'_>| {
        let at = usize::try_from(cursor.integer(4)?).ok()?;
        strings.get(at).map(String::as_str)
    };
    let name = text(cursor)?;
    let mut attributes = Vec::new();
    for _ in 0..cursor.count()? {
        attributes.push((text(cursor)?, text(cursor)?));
    }
    let mut children = Vec::new();
    for _ in 0..cursor.count()? {
        children.push(element(cursor, strings, depth + 1)?);
    }
    Some(Element {
        name,
        attributes,
        children,
    })
}
