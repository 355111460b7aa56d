//! The tables beside `objects`, `references` and `classes`: class_references, fields, strings, arrays, roots, threads,
//! frames, locals, sites.

use super::classes::class_range;
use super::listed::{Listed, RowIter};
use super::table::Scan;
use crate::cell::Cell;
use crate::describe::{array_length, cell_of, type_name};
use crate::error::QueryError;
use crate::shared::{Env, flags, of_classes};
use heap_analysis::objects::describe::thread_name;
use heap_analysis::tables::group::{GroupBy, GroupKey, frame_text};
use heap_analysis::tables::histogram::{HistogramOptions, histogram};
use heap_analysis::tables::threads::{is_daemon, is_virtual};
use heap_graph::{ClassIdx, ObjIdx, ObjectView, Reference, Value};
use hprof::{BasicType, HeapTag, ObjectId, Serial};

/// Every table of this module with its name.
pub(crate) fn all() -> Vec<(&'static str, Listed)> {
    let objects = |env: &Env| env.heap.len() as f64;
    let roots = |env: &Env| env.heap.roots().len() as f64;
    let threads = |env: &Env| env.heap.threads().len() as f64;
    vec![
        (
            "class_references",
            Listed::table(
                "from_class:text field:text kind:text to_class:text count:int \
                 *from_class_id:object *to_class_id:object",
                &[],
                |env| env.heap.classes().len() as f64 * 8.0,
                class_references,
            ),
        ),
        (
            "fields",
            Listed::table(
                "class:text class_id:object position:int name:text type:text static:int value:any",
                &[1],
                |env| env.heap.classes().len() as f64 * 6.0,
                fields,
            ),
        ),
        (
            "field_values",
            Listed::table(
                "id:object declared_in:text name:text type:text value:any",
                &[0],
                |env| env.heap.len() as f64 * 3.0,
                field_values,
            ),
        ),
        (
            "strings",
            Listed::table(
                "id:object value:text length:int shallow:int retained:int reachable:int",
                &[0],
                |env| env.heap.len() as f64 / 8.0,
                strings,
            ),
        ),
        (
            "arrays",
            Listed::table(
                "id:object class:text element_type:text length:int shallow:int retained:int \
                 reachable:int",
                &[0],
                |env| env.heap.len() as f64 / 4.0,
                arrays,
            ),
        ),
        (
            "roots",
            Listed::table(
                "id:object class:text type:text thread_serial:int frame:int",
                &[],
                roots,
                root_rows,
            ),
        ),
        (
            "threads",
            Listed::table(
                "id:object name:text serial:int class:text daemon:int virtual:int shallow:int \
                 retained:int trace:int",
                &[],
                threads,
                thread_rows,
            ),
        ),
        (
            "frames",
            Listed::table(
                "thread_id:object thread_serial:int depth:int frame:text class:text method:text \
                 signature:text source:text line:int",
                &[],
                |env| env.heap.threads().len() as f64 * 20.0,
                frames,
            ),
        ),
        (
            "locals",
            Listed::table(
                "thread_id:object thread_serial:int depth:int id:object class:text type:text",
                &[],
                roots,
                locals,
            ),
        ),
        (
            "sites",
            Listed::table(
                "trace:int frames:text objects:int shallow:int retained:int",
                &[],
                objects,
                sites,
            ),
        ),
    ]
}

/// The objects that a table must examine.
enum Which {
    All,
    One(ObjIdx),
    None,
}

fn which(env: &Env, scan: &Scan, column: usize) -> Which {
    match scan.equal(column) {
        None => Which::All,
        Some(value) => super::objects::named(env, Some(value)).map_or(Which::None, Which::One),
    }
}

/// Numbers of the objects to examine.
fn range(env: &Env, which: &Which) -> std::ops::Range<u64> {
    match which {
        Which::All => 0..env.heap.len(),
        Which::One(object) => object.0..object.0 + 1,
        Which::None => 0..0,
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

pub(super) fn size(n: u64) -> Cell {
    Cell::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

pub(super) fn object(env: &Env, object: ObjIdx) -> Cell {
    id_cell(env.heap.id(object))
}

pub(super) fn id_cell(id: ObjectId) -> Cell {
    cell_of(Value::Reference(id))
}

pub(super) fn class_name(env: &Env, object: ObjIdx) -> Cell {
    text(&env.heap.class(env.heap.class_of(object)).name)
}

/// The field name alone, the kind of reference, and its strength.
pub(super) fn via_cells(reference: &Reference) -> [Cell; 3] {
    [
        Cell::Text(reference.via.field()),
        text(reference.via.kind()),
        text(reference.strength.name()),
    ]
}

/// The references by class and field: computed in one pass over the dump for the first query, then cached.
fn class_references(env: &Env, _: &Scan) -> Result<RowIter, QueryError> {
    let all = env.class_references()?;
    let env = env.clone();
    Ok(Box::new((0..all.len()).map(move |n| {
        let row = &all[n];
        let (from, to) = (env.heap.class(row.from), env.heap.class(row.to));
        Ok(vec![
            text(&from.name),
            text(&row.field),
            text(row.kind),
            text(&to.name),
            size(row.count),
            id_cell(from.id),
            id_cell(to.id),
        ])
    })))
}

fn fields(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let wanted = class_range(env, scan.equal(1));
    let env = env.clone();
    Ok(Box::new(wanted.flat_map(move |n| {
        let class = env.heap.class(ClassIdx(n));
        let row = |at: usize, name: &str, kind, is_static, value| {
            Ok(vec![
                text(&class.name),
                id_cell(class.id),
                size(at as u64),
                text(name),
                text(type_name(kind)),
                Cell::Bool(is_static),
                value,
            ])
        };
        let mut rows = Vec::new();
        for (at, field) in class.fields.iter().enumerate() {
            rows.push(row(at, &field.name, field.kind, false, Cell::Null));
        }
        for (at, field) in class.statics.iter().enumerate() {
            let value = cell_of(Value::from_bits(field.kind, field.bits));
            rows.push(row(at, &field.name, field.kind, true, value));
        }
        rows
    })))
}

fn field_values(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let objects = range(env, &which(env, scan, 0));
    let env = env.clone();
    Ok(Box::new(objects.flat_map(move |n| {
        let view = match env.heap.object(ObjIdx(n)) {
            Ok(view) => view,
            Err(error) => return vec![Err(error.into())],
        };
        let ObjectView::Instance { fields, .. } = view else {
            return Vec::new();
        };
        let row = |f: heap_graph::FieldValue<'_>| {
            Ok(vec![
                object(&env, ObjIdx(n)),
                text(&env.heap.class(f.declared_in).name),
                text(f.name),
                text(type_name(type_of(f.value))),
                cell_of(f.value),
            ])
        };
        fields.into_iter().map(row).collect()
    })))
}

fn type_of(value: Value) -> BasicType {
    match value {
        Value::Reference(_) => BasicType::Object,
        Value::Boolean(_) => BasicType::Boolean,
        Value::Char(_) => BasicType::Char,
        Value::Float(_) => BasicType::Float,
        Value::Double(_) => BasicType::Double,
        Value::Byte(_) => BasicType::Byte,
        Value::Short(_) => BasicType::Short,
        Value::Int(_) => BasicType::Int,
        Value::Long(_) => BasicType::Long,
    }
}

fn strings(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let objects = range(env, &which(env, scan, 0));
    let is_string = flags(env, |c| env.heap.class(c).name == "java.lang.String");
    let found = of_classes(env, is_string, objects);
    let env = env.clone();
    Ok(Box::new(found.map(move |o| {
        let heap = &env.heap;
        let value = heap.string(o);
        let length = value.as_ref().map(|v| v.chars().count() as u64);
        Ok(vec![
            object(&env, o),
            value.map_or(Cell::Null, Cell::Text),
            length.map_or(Cell::Null, size),
            size(heap.shallow(o).0),
            size(heap.retained(o).0),
            Cell::Bool(heap.is_reachable(o)),
        ])
    })))
}

fn arrays(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let objects = range(env, &which(env, scan, 0));
    let is_array = flags(env, |c| env.heap.class(c).name.ends_with("[]"));
    let found = of_classes(env, is_array, objects);
    let env = env.clone();
    Ok(Box::new(found.map(move |o| {
        let heap = &env.heap;
        let class = heap.class(heap.class_of(o));
        let length = array_length(heap, o).map(|n| n as u64);
        Ok(vec![
            object(&env, o),
            text(&class.name),
            text(class.name.strip_suffix("[]").unwrap_or_default()),
            length.map_or(Cell::Null, size),
            size(heap.shallow(o).0),
            size(heap.retained(o).0),
            Cell::Bool(heap.is_reachable(o)),
        ])
    })))
}

/// A frame number or thread serial; null if the record does not have it.
fn known(n: u32, none: u32) -> Cell {
    if n == none {
        Cell::Null
    } else {
        Cell::Int(i64::from(n))
    }
}

fn root_rows(env: &Env, _: &Scan) -> Result<RowIter, QueryError> {
    let env = env.clone();
    Ok(Box::new((0..env.heap.roots().len()).map(move |n| {
        let root = &env.heap.roots()[n];
        Ok(vec![
            object(&env, root.object),
            class_name(&env, root.object),
            text(root.kind.name()),
            known(root.thread.0, 0),
            // In a THREAD_OBJ record this word is the stack trace.
            match root.kind {
                HeapTag::RootThreadObject => Cell::Null,
                _ => known(root.frame, u32::MAX),
            },
        ])
    })))
}

fn thread_rows(env: &Env, _: &Scan) -> Result<RowIter, QueryError> {
    let env = env.clone();
    Ok(Box::new((0..env.heap.threads().len()).map(move |n| {
        let (heap, thread) = (&env.heap, &env.heap.threads()[n]);
        let of = |cell: &dyn Fn(ObjIdx) -> Cell| thread.object.map_or(Cell::Null, cell);
        Ok(vec![
            of(&|o| object(&env, o)),
            of(&|o| thread_name(heap, o).map_or(Cell::Null, Cell::Text)),
            known(thread.serial.0, 0),
            of(&|o| class_name(&env, o)),
            of(&|o| Cell::Bool(is_daemon(heap, o))),
            of(&|o| Cell::Bool(is_virtual(heap, o))),
            of(&|o| size(heap.shallow(o).0)),
            of(&|o| size(heap.retained(o).0)),
            known(thread.trace.0, 0),
        ])
    })))
}

fn frames(env: &Env, _: &Scan) -> Result<RowIter, QueryError> {
    let env = env.clone();
    Ok(Box::new((0..env.heap.threads().len()).flat_map(move |n| {
        let thread = &env.heap.threads()[n];
        let id = thread.object.map_or(Cell::Null, |o| object(&env, o));
        let frames = env.heap.trace(thread.trace);
        let row = |(depth, f): (usize, &heap_graph::FrameInfo)| {
            Ok(vec![
                id.clone(),
                known(thread.serial.0, 0),
                size(depth as u64),
                Cell::Text(frame_text(f)),
                text(&f.class),
                text(&f.method),
                text(&f.signature),
                text(&f.source),
                if f.line > 0 {
                    Cell::Int(i64::from(f.line))
                } else {
                    Cell::Null
                },
            ])
        };
        let rows: Vec<_> = frames.into_iter().enumerate().map(row).collect();
        rows
    })))
}

fn locals(env: &Env, _: &Scan) -> Result<RowIter, QueryError> {
    let env = env.clone();
    Ok(Box::new((0..env.heap.roots().len()).filter_map(move |n| {
        let root = &env.heap.roots()[n];
        if root.thread == Serial(0) || root.kind == HeapTag::RootThreadObject {
            return None;
        }
        // Threads are ordered by serial, those without one last.
        let threads = env.heap.threads();
        let at = threads.partition_point(|t| !t.unrooted && t.serial < root.thread);
        let thread = threads.get(at).filter(|t| t.serial == root.thread);
        Some(Ok(vec![
            thread
                .and_then(|t| t.object)
                .map_or(Cell::Null, |o| object(&env, o)),
            Cell::Int(i64::from(root.thread.0)),
            known(root.frame, u32::MAX),
            object(&env, root.object),
            class_name(&env, root.object),
            text(root.kind.name()),
        ]))
    })))
}

fn sites(env: &Env, _: &Scan) -> Result<RowIter, QueryError> {
    let options = HistogramOptions {
        by: GroupBy::Site,
        all: true,
        ..HistogramOptions::default()
    };
    let rows = histogram(&env.heap, &options)?.rows;
    Ok(Box::new(rows.into_iter().map(|row| {
        let (trace, frames) = match &row.key {
            GroupKey::Site { trace, frames } => (*trace, frames.join("\n")),
            other => (0, other.name()),
        };
        Ok(vec![
            Cell::Int(i64::from(trace)),
            Cell::Text(frames),
            size(row.objects),
            size(row.shallow.0),
            row.retained.map_or(Cell::Null, |r| size(r.0)),
        ])
    })))
}
