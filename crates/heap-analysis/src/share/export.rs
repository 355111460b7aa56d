//! A heap as tables of plain columns, for programs that compare many dumps: totals, classes, leak
//! suspects, allocation sites; on request all objects and references.
//!
//! Every table begins with `service`, `dump` and `timestamp_ms`, so that one table can have the rows of many dumps.
//! Object ids are numbers here. Objects and references are written in pieces; each piece takes memory for its rows and
//! one walk over the contents.

use crate::compare::baseline::Baseline;
use crate::compare::identity::stable_name;
use crate::tables::group::{GroupBy, loader_name, trace_frames};
use crate::tables::histogram::{HistogramOptions, SortBy, histogram};
use heap_graph::{Control, Dominator, Heap, HeapError, ObjIdx, ObjectKind, Via};
use hprof::Serial;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Texts.
    Text(Vec<String>),
    /// Whole numbers; also object ids, as in the file.
    Number(Vec<i64>),
    /// Shares from 0 to 1.
    Real(Vec<f64>),
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Text(v) => v.len(),
            Values::Number(v) => v.len(),
            Values::Real(v) => v.len(),
        }
    }

    /// True when there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its values.
    pub values: Values,
}

/// A table, or a piece of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name, which is also the name of its folder.
    pub name: &'static str,
    /// Columns of one length.
    pub columns: Vec<Column>,
}

impl Table {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.values.len())
    }
}

/// The dump that the rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The program; empty if not given.
    pub service: String,
    /// The name of the dump.
    pub dump: String,
}

fn table(
    heap: &Heap,
    origin: &Origin,
    name: &'static str,
    columns: Vec<(&'static str, Values)>,
) -> Table {
    let rows = columns.first().map_or(0, |c| c.1.len());
    let text = |t: &str| Values::Text(vec![t.to_owned(); rows]);
    let time = heap.summary().timestamp_ms as i64;
    let head = [
        ("service", text(&origin.service)),
        ("dump", text(&origin.dump)),
        ("timestamp_ms", Values::Number(vec![time; rows])),
    ];
    Table {
        name,
        columns: head
            .into_iter()
            .chain(columns)
            .map(|(name, values)| Column { name, values })
            .collect(),
    }
}

fn numbers(list: impl Iterator<Item = u64>) -> Values {
    Values::Number(list.map(|n| n as i64).collect())
}

/// The aggregate tables: `dumps` (one row), `classes`, `leaks`, `sites`.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels.
pub fn aggregates(
    heap: &Heap,
    origin: &Origin,
    control: &Control<'_>,
) -> Result<Vec<Table>, HeapError> {
    let summary = heap.summary();
    let one = |n: u64| numbers(std::iter::once(n));
    let dumps = table(
        heap,
        origin,
        "dumps",
        vec![
            ("bytes", one(summary.bytes)),
            ("objects", one(summary.reachable_objects)),
            ("shallow", one(summary.reachable_shallow.0)),
            ("all_objects", one(summary.objects.total)),
            ("all_shallow", one(summary.shallow.0)),
            ("classes", one(summary.objects.classes)),
            ("damaged", one(u64::from(summary.diagnostics.any_damage()))),
        ],
    );
    let base = Baseline::of(heap, &[], control)?;
    let leaks = table(
        heap,
        origin,
        "leaks",
        vec![
            (
                "signature",
                Values::Text(base.leaks.iter().map(|l| l.signature.clone()).collect()),
            ),
            (
                "title",
                Values::Text(base.leaks.iter().map(|l| l.title.clone()).collect()),
            ),
            ("retained", numbers(base.leaks.iter().map(|l| l.retained))),
            (
                "share",
                Values::Real(
                    base.leaks
                        .iter()
                        .map(|l| l.retained as f64 / base.shallow.max(1) as f64)
                        .collect(),
                ),
            ),
        ],
    );
    Ok(vec![
        dumps,
        classes(heap, origin),
        leaks,
        sites(heap, origin)?,
    ])
}

fn classes(heap: &Heap, origin: &Origin) -> Table {
    let list: Vec<_> = heap.classes().iter().filter(|c| c.objects > 0).collect();
    let text = |f: &dyn Fn(&heap_graph::ClassInfo) -> String| {
        Values::Text(list.iter().map(|c| f(c)).collect())
    };
    table(
        heap,
        origin,
        "classes",
        vec![
            ("class", text(&|c| c.name.clone())),
            ("stable_class", text(&|c| stable_name(&c.name))),
            ("loader", text(&|c| loader_name(heap, c.loader))),
            ("objects", numbers(list.iter().map(|c| c.reachable_objects))),
            (
                "shallow",
                numbers(list.iter().map(|c| c.reachable_shallow.0)),
            ),
            ("all_objects", numbers(list.iter().map(|c| c.objects))),
            ("all_shallow", numbers(list.iter().map(|c| c.shallow.0))),
            ("retained", numbers(list.iter().map(|c| c.retained.0))),
        ],
    )
}

/// Only for dumps with allocation sites; most dumps have one serial for all objects.
fn sites(heap: &Heap, origin: &Origin) -> Result<Table, HeapError> {
    let known = heap.one_trace().is_none();
    let options = HistogramOptions {
        by: GroupBy::Site,
        sort: SortBy::Retained,
        ..HistogramOptions::default()
    };
    let rows = if known {
        histogram(heap, &options)?.rows
    } else {
        Vec::new()
    };
    let stacks = rows.iter().map(|r| match &r.key {
        crate::tables::group::GroupKey::Site { trace, .. } => {
            trace_frames(heap, Serial(*trace)).join("\n")
        }
        key => key.name(),
    });
    Ok(table(
        heap,
        origin,
        "sites",
        vec![
            ("stack", Values::Text(stacks.collect())),
            ("objects", numbers(rows.iter().map(|r| r.objects))),
            ("shallow", numbers(rows.iter().map(|r| r.shallow.0))),
            (
                "retained",
                numbers(rows.iter().map(|r| r.retained.map_or(0, |b| b.0))),
            ),
        ],
    ))
}

/// Number of rows in a piece.
const PIECE: usize = 1 << 19;

fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Class => "class",
        ObjectKind::Instance => "instance",
        ObjectKind::ObjectArray => "object_array",
        ObjectKind::PrimitiveArray => "primitive_array",
    }
}

/// All reachable objects (with `all` also unreachable ones) as pieces of the table `objects`: `id`, `class`, `kind`,
/// `shallow`, `retained`, `dominator` (0 for none).
pub fn objects<E: From<HeapError>>(
    heap: &Heap,
    origin: &Origin,
    all: bool,
    mut piece: impl FnMut(&Table) -> Result<(), E>,
) -> Result<(), E> {
    let mut ids = heap
        .all_ids()
        .filter(|(o, _)| all || heap.is_reachable(*o))
        .peekable();
    // Runs once even without rows, because an empty table also has columns.
    loop {
        let rows: Vec<(ObjIdx, u64)> = ids.by_ref().take(PIECE).map(|(o, id)| (o, id.0)).collect();
        let name = |o: ObjIdx| heap.class(heap.class_of(o)).name.clone();
        let above = |o: ObjIdx| match heap.dominator(o) {
            Dominator::Object(above) => heap.id(above).0,
            _ => 0,
        };
        let each = || rows.iter().map(|r| r.0);
        piece(&table(
            heap,
            origin,
            "objects",
            vec![
                ("id", numbers(rows.iter().map(|r| r.1))),
                ("class", Values::Text(each().map(name).collect())),
                (
                    "kind",
                    Values::Text(each().map(|o| kind_name(heap.kind(o)).to_owned()).collect()),
                ),
                ("shallow", numbers(each().map(|o| heap.shallow(o).0))),
                ("retained", numbers(each().map(|o| heap.retained(o).0))),
                ("dominator", numbers(each().map(above))),
            ],
        ))?;
        if ids.peek().is_none() {
            return Ok(());
        }
    }
}

/// All references between the exported objects as pieces of the table `references`: `source`,
/// `target`, `field`. References of objects to their class are left out.
pub fn references<E: From<HeapError>>(
    heap: &Heap,
    origin: &Origin,
    all: bool,
    mut piece: impl FnMut(&Table) -> Result<(), E>,
) -> Result<(), E> {
    let mut rows = References::default();
    let mut pieces = 0;
    for (object, id) in heap.all_ids() {
        if !all && !heap.is_reachable(object) {
            continue;
        }
        heap.each_outbound(object, |reference| {
            if reference.via == Via::Class || !(all || heap.is_reachable(reference.target)) {
                return Ok(());
            }
            rows.sources.push(id.0 as i64);
            rows.targets.push(heap.id(reference.target).0 as i64);
            rows.fields.push(reference.via.to_string());
            if rows.sources.len() < PIECE {
                return Ok(());
            }
            pieces += 1;
            piece(&rows.take(heap, origin))
        })?;
    }
    // An empty table also has columns.
    if pieces == 0 || !rows.sources.is_empty() {
        piece(&rows.take(heap, origin))?;
    }
    Ok(())
}

/// Rows of the table `references` that are in no piece yet.
#[derive(Default)]
struct References {
    sources: Vec<i64>,
    targets: Vec<i64>,
    fields: Vec<String>,
}

impl References {
    fn take(&mut self, heap: &Heap, origin: &Origin) -> Table {
        let rows = std::mem::take(self);
        let columns = vec![
            ("source", Values::Number(rows.sources)),
            ("target", Values::Number(rows.targets)),
            ("field", Values::Text(rows.fields)),
        ];
        table(heap, origin, "references", columns)
    }
}
