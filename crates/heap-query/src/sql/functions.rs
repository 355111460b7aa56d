//! Functions over objects: as values, and as tables in FROM.

use super::listed::{Listed, RowIter};
use super::objects::named;
use super::table::Scan;
use super::tables::{class_name, object, size, via_cells};
use crate::cell::Cell;
use crate::describe::{array_length, characters, field_path, readable};
use crate::error::{QueryError, bad_pattern};
use crate::graph::{path_to_root, retained_set};
use crate::shared::{BLOCK, Env};
use heap_analysis::collections::held::{self, Held};
use heap_analysis::pace::Pace;
use heap_analysis::paths::chain::{dominators_above, field_to};
use heap_graph::{Dominator, ObjIdx};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, Error, Result};

/// The most entries that are read from one collection.
const COLLECTION_LIMIT: usize = 10_000_000;

/// Functions of an object for FROM; the first hidden column, `of`, is the argument.
pub(crate) fn tables() -> Vec<(&'static str, Listed)> {
    let related = "id:object field:text kind:text strength:text class:text shallow:int \
                   retained:int @of:object *this:object *name:text";
    let set = "id:object class:text shallow:int retained:int @of:object *this:object";
    let path = "position:int id:object class:text field:text shallow:int retained:int @of:object";
    let entries = "key:object value:object @of:object";
    vec![
        ("outbound", Listed::function(related, outbound)),
        ("inbound", Listed::function(related, inbound)),
        ("retained_set", Listed::function(set, retained)),
        ("dominators", Listed::function(set, dominated)),
        ("path_to_root", Listed::function(path, path_rows)),
        ("dominator_path", Listed::function(path, dominator_path)),
        ("get_values", Listed::function(set, values)),
        ("get_map_entries", Listed::function(entries, entry_rows)),
        ("getOutboundReferences", Listed::function(related, outbound)),
        ("getInboundReferences", Listed::function(related, inbound)),
        ("getRetainedSet", Listed::function(set, retained)),
        ("getValues", Listed::function(set, values)),
        ("getMapEntries", Listed::function(entries, entry_rows)),
    ]
}

/// The object that the function is called with.
fn argument(env: &Env, scan: &Scan) -> Option<ObjIdx> {
    // A function has one constraint: its argument.
    named(env, scan.constraints.first().map(|c| &c.value))
}

fn none() -> Result<RowIter, QueryError> {
    Ok(Box::new(std::iter::empty()))
}

fn outbound(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let Some(from) = argument(env, scan) else {
        return none();
    };
    let list = env.heap.outbound(from)?;
    let env = env.clone();
    Ok(Box::new(list.into_iter().map(move |reference| {
        let [field, kind, strength] = via_cells(&reference);
        Ok(related(&env, reference.target, field, kind, strength))
    })))
}

fn related(env: &Env, o: ObjIdx, name: Cell, kind: Cell, strength: Cell) -> Vec<Cell> {
    vec![
        object(env, o),
        name.clone(),
        kind,
        strength,
        class_name(env, o),
        size(env.heap.shallow(o).0),
        size(env.heap.retained(o).0),
        Cell::Null,
        object(env, o),
        name,
    ]
}

fn inbound(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let Some(to) = argument(env, scan) else {
        return none();
    };
    let sources = env.stop.within(|c| env.heap.inbound_with(to, c))?;
    let env = env.clone();
    Ok(Box::new(sources.into_iter().map(move |from| {
        let list = env.heap.outbound(from)?;
        let mut to_it = list.iter().filter(|r| r.target == to);
        let first = to_it.next();
        let best = first.into_iter().chain(to_it);
        // A field is more informative than the class.
        let best = best.min_by_key(|r| r.via == heap_graph::Via::Class);
        let [field, kind, strength] = match best {
            Some(reference) => via_cells(reference),
            None => [Cell::Null, Cell::Null, Cell::Null],
        };
        Ok(related(&env, from, field, kind, strength))
    })))
}

fn set_rows(env: &Env, objects: Vec<ObjIdx>) -> RowIter {
    let env = env.clone();
    Box::new(objects.into_iter().map(move |o| {
        Ok(vec![
            object(&env, o),
            class_name(&env, o),
            size(env.heap.shallow(o).0),
            size(env.heap.retained(o).0),
            Cell::Null,
            object(&env, o),
        ])
    }))
}

fn retained(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    match argument(env, scan) {
        Some(of) => Ok(set_rows(env, retained_set(env, &[of])?)),
        None => none(),
    }
}

fn dominated(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    match argument(env, scan) {
        Some(of) => Ok(set_rows(env, env.heap.dominated(Some(of)).collect())),
        None => none(),
    }
}

fn values(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let Some(of) = argument(env, scan) else {
        return none();
    };
    Ok(set_rows(env, held_by(env, of)?.values()))
}

/// The contents of a collection, within the limits of the query.
fn held_by(env: &Env, of: ObjIdx) -> Result<Held, QueryError> {
    env.stop.within(|control| {
        let mut pace = Pace::new(control, "reading a collection", env.heap.len());
        held::held(&env.heap, of, COLLECTION_LIMIT, &mut pace)
    })
}

/// The number of elements of a collection.
fn size_of(env: &Env, of: ObjIdx) -> Result<Cell, QueryError> {
    let found = env.stop.within(|control| {
        let mut pace = Pace::new(control, "reading a collection", env.heap.len());
        held::size(&env.heap, of, &mut pace)
    })?;
    Ok(found.map_or(Cell::Null, size))
}

fn entry_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let Some(map) = argument(env, scan) else {
        return none();
    };
    let entries = held_by(env, map)?.entries();
    let env = env.clone();
    let cell = move |o: Option<ObjIdx>| o.map_or(Cell::Null, |o| object(&env, o));
    Ok(Box::new(
        entries
            .into_iter()
            .map(move |(key, value)| Ok(vec![cell(key), cell(value)])),
    ))
}

fn chain_rows(env: &Env, chain: Vec<ObjIdx>) -> RowIter {
    let env = env.clone();
    Box::new((0..chain.len()).map(move |n| {
        let o = chain[n];
        let field = match chain.get(n + 1) {
            Some(next) => field_to(&env.heap, o, *next)?,
            None => None,
        };
        Ok(vec![
            size(n as u64),
            object(&env, o),
            class_name(&env, o),
            field.map_or(Cell::Null, Cell::Text),
            size(env.heap.shallow(o).0),
            size(env.heap.retained(o).0),
        ])
    }))
}

fn path_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    match argument(env, scan) {
        Some(of) => Ok(chain_rows(env, path_to_root(env, of)?)),
        None => none(),
    }
}

fn dominator_path(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    match argument(env, scan).filter(|o| env.heap.is_reachable(*o)) {
        Some(of) => {
            let mut chain = Vec::new();
            for object in dominators_above(&env.heap, of) {
                if chain.len().is_multiple_of(BLOCK) {
                    env.stop.check()?;
                }
                chain.push(object);
            }
            chain.reverse();
            Ok(chain_rows(env, chain))
        }
        None => none(),
    }
}

/// A cell as a value of SQLite.
fn value(cell: Cell) -> SqlValue {
    match cell {
        Cell::Null => SqlValue::Null,
        Cell::Bool(v) => SqlValue::Integer(i64::from(v)),
        Cell::Int(v) => SqlValue::Integer(v),
        Cell::Real(v) => SqlValue::Real(v),
        Cell::Text(text) => SqlValue::Text(text),
        Cell::Object(id) => SqlValue::Text(id.to_string()),
        Cell::List(_) => SqlValue::Text(cell.to_string()),
    }
}

/// The object that an argument refers to.
fn object_of(env: &Env, context: &Context<'_>, at: usize) -> Option<ObjIdx> {
    let id = match context.get_raw(at) {
        ValueRef::Integer(n) => hprof::ObjectId(n as u64),
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.parse().ok()?,
        _ => return None,
    };
    env.find(id)
}

/// A function of one object.
type One = fn(&Env, ObjIdx) -> Result<Cell, QueryError>;

/// Functions of one object, with their names in the MAT Calcite dialect beside those of Tenure.
const OF_OBJECT: &[(&str, One)] = &[
    ("to_string", |e, o| Ok(text_of(e, o))),
    ("toString", |e, o| Ok(text_of(e, o))),
    ("class_of", |e, o| Ok(class_name(e, o))),
    ("getType", |e, o| Ok(class_name(e, o))),
    ("shallow_size", |e, o| Ok(size(e.heap.shallow(o).0))),
    ("shallowSize", |e, o| Ok(size(e.heap.shallow(o).0))),
    ("retained_size", |e, o| Ok(size(e.heap.retained(o).0))),
    ("retainedSize", |e, o| Ok(size(e.heap.retained(o).0))),
    ("array_length", |e, o| Ok(count(array_length(&e.heap, o)))),
    ("collection_size", size_of),
    ("getSize", size_of),
    ("getId", |_, o| Ok(size(o.0))),
    ("address", |e, o| Ok(Cell::Int(e.heap.id(o).0 as i64))),
    ("getAddress", |e, o| Ok(Cell::Int(e.heap.id(o).0 as i64))),
    ("dominator", |e, o| {
        Ok(match e.heap.dominator(o) {
            Dominator::Object(above) => object(e, above),
            Dominator::Root | Dominator::Unreachable => Cell::Null,
        })
    }),
    ("outbound", |e, o| {
        let targets = e.heap.outbound(o)?.into_iter().map(|r| r.target);
        Ok(array(e, targets))
    }),
    ("inbound", |e, o| {
        Ok(array(
            e,
            e.stop.within(|c| e.heap.inbound_with(o, c))?.into_iter(),
        ))
    }),
    ("retained_set", |e, o| {
        Ok(array(e, retained_set(e, &[o])?.into_iter()))
    }),
    ("dominators", |e, o| Ok(array(e, e.heap.dominated(Some(o))))),
    ("path_to_root", |e, o| {
        Ok(array(e, path_to_root(e, o)?.into_iter()))
    }),
];

/// Readable text, or `class @ 0xaddress`.
pub(crate) fn text_of(env: &Env, o: ObjIdx) -> Cell {
    let readable = readable(&env.heap, o);
    Cell::Text(readable.unwrap_or_else(|| {
        let class = &env.heap.class(env.heap.class_of(o)).name;
        format!("{class} @ {}", env.heap.id(o))
    }))
}

fn count(n: Option<usize>) -> Cell {
    n.map_or(Cell::Null, |n| size(n as u64))
}

/// A JSON array of ids, for `json_each`.
fn array(env: &Env, objects: impl Iterator<Item = ObjIdx>) -> Cell {
    let ids: Vec<String> = objects.map(|o| format!("\"{}\"", env.heap.id(o))).collect();
    Cell::Text(format!("[{}]", ids.join(",")))
}

fn failed(error: QueryError) -> Error {
    Error::UserFunctionError(Box::new(error))
}

/// Registers the functions with SQLite.
pub(crate) fn register(db: &Connection, env: &Env) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    for (name, work) in OF_OBJECT {
        let env = env.clone();
        db.create_scalar_function(*name, 1, flags, move |context| {
            match object_of(&env, context, 0) {
                Some(o) => Ok(value(work(&env, o).map_err(failed)?)),
                None => Ok(SqlValue::Null),
            }
        })?;
    }
    for name in ["field", "getField"] {
        let env = env.clone();
        db.create_scalar_function(name, 2, flags, move |context| {
            let path: Option<String> = context.get(1)?;
            Ok(match (object_of(&env, context, 0), path) {
                (Some(o), Some(path)) => value(field_path(&env.heap, o, &path)),
                _ => SqlValue::Null,
            })
        })?;
    }
    let keyed = env.clone();
    db.create_scalar_function("getByKey", 2, flags, move |context| {
        let key: Option<String> = context.get(1)?;
        Ok(match (object_of(&keyed, context, 0), key) {
            (Some(map), Some(key)) => value(by_key(&keyed, map, &key)),
            _ => SqlValue::Null,
        })
    })?;
    // `length` of an array has the meaning of the MAT Calcite dialect; `length` of anything else that of SQL.
    let sized = env.clone();
    // A number has the length of its text, which only SQLite writes as SQLite does.
    let plain = Connection::open_in_memory()?;
    db.create_scalar_function("length", 1, flags, move |context| {
        let array = match context.get_raw(0) {
            ValueRef::Text(text) if text.starts_with(b"0x") => object_of(&sized, context, 0),
            _ => None,
        };
        let length = array.and_then(|a| array_length(&sized.heap, a));
        Ok(match (length, context.get_raw(0)) {
            (Some(n), _) => SqlValue::Integer(n as i64),
            (None, ValueRef::Null) => SqlValue::Null,
            (None, ValueRef::Blob(bytes)) => SqlValue::Integer(bytes.len() as i64),
            (None, ValueRef::Text(text)) => {
                SqlValue::Integer(String::from_utf8_lossy(text).chars().count() as i64)
            }
            (None, ValueRef::Integer(n)) => SqlValue::Integer(n.to_string().len() as i64),
            (None, ValueRef::Real(n)) => {
                let mut length = plain.prepare_cached("select length(?1)")?;
                length.query_row([n], |row| row.get(0))?
            }
        })
    })?;
    db.create_scalar_function("regexp", 2, flags, |context| {
        let pattern = context.get_or_create_aux(0, |v| -> std::result::Result<_, QueryError> {
            let text = v.as_str().unwrap_or_default();
            regex::Regex::new(text).map_err(|e| QueryError::Run(bad_pattern(text, &e)))
        })?;
        Ok(match context.get_raw(1) {
            ValueRef::Null => ToSqlOutput::Owned(SqlValue::Null),
            ValueRef::Text(text) => {
                let text = String::from_utf8_lossy(text);
                ToSqlOutput::Owned(SqlValue::Integer(i64::from(pattern.is_match(&text))))
            }
            _ => ToSqlOutput::Owned(SqlValue::Integer(0)),
        })
    })
}

/// The value of a map whose key has this text.
fn by_key(env: &Env, map: ObjIdx, wanted: &str) -> Cell {
    let heap = &env.heap;
    let reads_so = |key: ObjIdx| {
        readable(heap, key)
            .or_else(|| characters(heap, key))
            .as_deref()
            == Some(wanted)
    };
    let entries = held_by(env, map).map(Held::entries);
    entries
        .unwrap_or_default()
        .into_iter()
        .find(|(key, _)| key.is_some_and(reads_so))
        .and_then(|(_, v)| v)
        .map_or(Cell::Null, |v| object(env, v))
}

/// Names of all functions of objects, for completion.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let scalar = OF_OBJECT.iter().map(|f| f.0);
    scalar.chain(["field", "getField", "getByKey", "length", "regexp"])
}
