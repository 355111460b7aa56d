//! Values of a chunk, read as its metadata describe them; values of the constant pools are read only when a reference
//! is resolved.

use super::cursor::Cursor;
use super::metadata::{Field, Types};
use rustc_hash::FxHashMap;

/// The most levels of values inside values.
const DEPTH: usize = 8;

/// The pools that relevant events refer to. Others are skipped.
const POOLS: [&str; 10] = [
    "java.lang.Class",
    "java.lang.String",
    "java.lang.Thread",
    "java.lang.ThreadGroup",
    "jdk.types.StackTrace",
    "jdk.types.Method",
    "jdk.types.Symbol",
    "jdk.types.FrameType",
    "jdk.types.ThreadState",
    "jdk.types.OldObject",
];

/// A value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Value {
    /// No value, or an irrelevant one.
    #[default]
    Null,
    Number(u64),
    Text(String),
    /// The fields of a type.
    Fields(u64, Vec<Value>),
    Array(Vec<Value>),
    /// A key in the pool of a type.
    Pooled(u64, u64),
}

/// A string stored in place. A key of the pool of strings counts as no text here.
pub(super) fn string(cursor: &mut Cursor<'_>) -> Option<String> {
    match text(cursor)? {
        Value::Text(text) => Some(text),
        _ => Some(String::new()),
    }
}

/// A string by its encoding: null, empty, in the pool, UTF-8, UTF-16 or Latin-1.
fn text(cursor: &mut Cursor<'_>) -> Option<Value> {
    let kind = cursor.byte()?;
    Some(match kind {
        0 => Value::Null,
        1 => Value::Text(String::new()),
        // Only the caller knows the type and so the pool.
        2 => Value::Pooled(0, cursor.integer(8)?),
        3 | 5 => {
            let length = cursor.count()?;
            let bytes = cursor.bytes(length)?;
            Value::Text(match kind {
                3 => String::from_utf8_lossy(bytes).into_owned(),
                _ => bytes.iter().map(|byte| char::from(*byte)).collect(),
            })
        }
        4 => {
            let mut units = Vec::new();
            for _ in 0..cursor.count()? {
                units.push(cursor.integer(2)? as u16);
            }
            Value::Text(String::from_utf16_lossy(&units))
        }
        _ => return None,
    })
}

/// The values of a chunk.
#[derive(Debug, Default)]
pub(super) struct Values<'a> {
    pub(super) types: Types,
    /// The position of the value of each key.
    pools: FxHashMap<(u64, u64), Cursor<'a>>,
}

impl<'a> Values<'a> {
    /// Stores the positions of the values of a checkpoint; the cursor is after its size and type.
    pub(super) fn add_checkpoint(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        // Start, duration and the distance to the previous checkpoint; then whether it is flushed.
        for _ in 0..3 {
            cursor.integer(8)?;
        }
        cursor.byte()?;
        for _ in 0..cursor.integer(4)? {
            let kind = cursor.integer(8)?;
            let name = &self.types.get(&kind)?.name;
            let is_wanted = POOLS.contains(&name.as_str());
            for _ in 0..cursor.integer(4)? {
                let key = cursor.integer(8)?;
                if is_wanted {
                    self.pools.insert((kind, key), *cursor);
                }
                self.value(cursor, kind, false, 0)?;
            }
        }
        Some(())
    }

    /// The fields of a value or event of a type.
    pub(super) fn fields(&self, cursor: &mut Cursor<'_>, kind: u64) -> Option<Vec<Value>> {
        match self.value(cursor, kind, true, 0)? {
            Value::Fields(_, values) => Some(values),
            _ => None,
        }
    }

    /// A value with all keys resolved.
    pub(super) fn follow(&self, value: &Value) -> Value {
        let mut value = value.clone();
        for _ in 0..DEPTH {
            let Value::Pooled(kind, key) = value else {
                return value;
            };
            let entry = self.pools.get(&(kind, key));
            value = entry
                .and_then(|entry| self.value(&mut entry.clone(), kind, true, 0))
                .unwrap_or_default();
        }
        Value::Null
    }

    /// A field of a value as it is stored; a key is not resolved.
    pub(super) fn raw(&self, value: &Value, name: &str) -> Value {
        let Value::Fields(kind, values) = value else {
            return Value::Null;
        };
        let place = self.types.get(kind).and_then(|kind| kind.place(name));
        let value = place.and_then(|place| values.get(place));
        value.cloned().unwrap_or_default()
    }

    /// A field of a value, resolved.
    pub(super) fn field(&self, value: &Value, name: &str) -> Value {
        self.follow(&self.raw(value, name))
    }

    pub(super) fn number(&self, value: &Value, name: &str) -> u64 {
        match self.field(value, name) {
            Value::Number(number) => number,
            _ => 0,
        }
    }

    /// A text: a string, or a symbol that contains one.
    pub(super) fn text(&self, value: &Value, name: &str) -> String {
        match self.field(value, name) {
            Value::Text(text) => text,
            symbol @ Value::Fields(..) => match self.field(&symbol, "string") {
                Value::Text(text) => text,
                _ => String::new(),
            },
            _ => String::new(),
        }
    }

    /// Reads a value; without `keeps` it is only skipped.
    fn value(
        &self,
        cursor: &mut Cursor<'_>,
        kind: u64,
        keeps: bool,
        depth: usize,
    ) -> Option<Value> {
        let type_ = self.types.get(&kind)?;
        if depth > DEPTH {
            return None;
        }
        if type_.fields.is_empty() {
            return match type_.name.as_str() {
                "boolean" | "byte" => cursor.byte().map(|byte| Value::Number(byte.into())),
                "short" | "char" => cursor.integer(2).map(Value::Number),
                "int" => cursor.integer(4).map(Value::Number),
                "long" => cursor.integer(8).map(Value::Number),
                "float" => cursor.fixed(4).map(|_| Value::Null),
                "double" => cursor.fixed(8).map(|_| Value::Null),
                "java.lang.String" => text(cursor).map(|text| match text {
                    Value::Pooled(_, key) => Value::Pooled(kind, key),
                    text => text,
                }),
                // For a type without any bytes, a few bytes could claim any number of values.
                _ => None,
            };
        }
        let mut values = Vec::new();
        for field in &type_.fields {
            let value = self.field_value(cursor, field, keeps, depth)?;
            if keeps {
                values.push(value);
            }
        }
        Some(Value::Fields(kind, values))
    }

    fn field_value(
        &self,
        cursor: &mut Cursor<'_>,
        field: &Field,
        keeps: bool,
        depth: usize,
    ) -> Option<Value> {
        let one = |cursor: &mut Cursor<'_>| match field.is_pooled {
            true => cursor.integer(8).map(|key| Value::Pooled(field.kind, key)),
            false => self.value(cursor, field.kind, keeps, depth + 1),
        };
        if !field.is_array {
            return one(cursor);
        }
        let mut values = Vec::new();
        for _ in 0..cursor.count()? {
            let value = one(cursor)?;
            if keeps {
                values.push(value);
            }
        }
        Some(Value::Array(values))
    }
}
