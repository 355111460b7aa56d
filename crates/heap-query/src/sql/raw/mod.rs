//! The bridge between SQLite's virtual tables and [`Source`], and `files` (SQLite's temporary files): the only unsafe
//! code of the crate, because `rusqlite` requires the promise that the first field of two structs is SQLite's own, and
//! has no interface for files.
#![expect(
    unsafe_code,
    reason = "rusqlite's traits for virtual tables are unsafe to implement"
)]

mod files;

pub(crate) use files::{Database, SQLITE_MEMORY};

use super::table::{Constraint, Op, Operand, Order, Out, Rows, Scan, Source};
use crate::error::QueryError;
use crate::shared::Env;
use heap_graph::HeapError;
use rusqlite::types::ValueRef;
use rusqlite::vtab::{
    Context, DistinctMode, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig,
    VTabConnection, VTabCursor, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::fmt::Write;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a module passes to its table.
type Aux = (Arc<dyn Source>, Env);

/// Makes a table available under a name. The name is that of an eponymous table: it exists in
/// every connection without being created, and takes arguments like a function.
pub(crate) fn register(
    db: &Connection,
    name: &str,
    source: Arc<dyn Source>,
    env: Env,
) -> Result<()> {
    let module = const { &Module::<HeapTable>::eponymous_only_module() };
    db.create_module(name, module, Some((source, env)))
}

/// A virtual table.
#[repr(C)]
struct HeapTable {
    /// SQLite's part. Must be first.
    base: sqlite3_vtab,
    source: Arc<dyn Source>,
    env: Env,
}

fn operator(op: IndexConstraintOp) -> Option<Op> {
    Some(match op {
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ
        | IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_IS => Op::Eq,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Op::Gt,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Op::Ge,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Op::Lt,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Op::Le,
        _ => return None,
    })
}

const OPS: [(Op, u8); 5] = [
    (Op::Eq, b'='),
    (Op::Lt, b'<'),
    (Op::Le, b'l'),
    (Op::Gt, b'>'),
    (Op::Ge, b'g'),
];

impl HeapTable {
    /// The requested order, if this table can deliver it.
    fn order(&self, info: &IndexInfo) -> Option<Order> {
        let mut wanted = info.order_bys();
        let first = wanted.next()?;
        if wanted.next().is_some() {
            return None;
        }
        let column = usize::try_from(first.column()).ok()?;
        let exact = if first.is_order_by_desc() {
            Order::Descending(column)
        } else {
            Order::Ascending(column)
        };
        let grouped = matches!(
            info.distinct(),
            DistinctMode::Grouped | DistinctMode::Distinct
        );
        [exact, Order::Grouped(column)]
            .into_iter()
            .find(|o| (grouped || *o == exact) && self.source.delivers(*o))
    }
}

// SAFETY: `repr(C)`, and the first field is `sqlite3_vtab`.
unsafe impl<'vtab> VTab<'vtab> for HeapTable {
    type Aux = Aux;
    type Cursor = Cursor<'vtab>;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Aux>,
        _module: &[u8],
        _database: &[u8],
        _table: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let (source, env) = aux.ok_or_else(|| Error::ModuleError("no table".to_owned()))?;
        db.config(VTabConfig::Innocuous)?;
        let mut sql = "CREATE TABLE x(".to_owned();
        for (n, column) in source.columns().iter().enumerate() {
            let name = column.name.replace('"', "\"\"").replace('\0', "");
            let comma = if n == 0 { "" } else { ", " };
            let hidden = if column.hidden { " HIDDEN" } else { "" };
            let _ = write!(sql, "{comma}\"{name}\" {}{hidden}", column.kind.declared());
        }
        sql.push(')');
        let schema = CString::new(sql).map_err(|e| Error::ModuleError(e.to_string()))?;
        let table = HeapTable {
            base: sqlite3_vtab::default(),
            source: source.clone(),
            env: env.clone(),
        };
        Ok((Cow::Owned(schema), table))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut chosen: Vec<(usize, usize, Op)> = Vec::new();
        for (n, constraint) in info.constraints().enumerate() {
            let column = usize::try_from(constraint.column());
            if let (true, Ok(column), Some(op)) = (
                constraint.is_usable(),
                column,
                operator(constraint.operator()),
            ) && self.source.uses(column, op)
                && info.collation(n)? == "BINARY"
                && !chosen.iter().any(|c| c.1 == column && c.2 == op)
            {
                chosen.push((n, column, op));
            }
        }
        let with: Vec<(usize, Op)> = chosen.iter().map(|c| (c.1, c.2)).collect();
        let Some(cost) = self.source.cost(&self.env, &with) else {
            return Ok(false);
        };
        let mut plan = String::new();
        for (position, (n, column, op)) in chosen.iter().enumerate() {
            let mut usage = info.constraint_usage(*n);
            usage.set_argv_index(position as c_int + 1);
            usage.set_omit(*op == Op::Eq && self.source.exact(*column));
            let sign = OPS
                .iter()
                .find(|o| o.0 == *op)
                .map_or('=', |o| char::from(o.1));
            let _ = write!(plan, "{sign}{column} ");
        }
        if let Some(order) = self.order(info) {
            let (sign, column) = match order {
                Order::Ascending(column) => ('^', column),
                Order::Descending(column) => ('v', column),
                Order::Grouped(column) => ('#', column),
            };
            let _ = write!(plan, "{sign}{column} ");
            info.set_order_by_consumed(true);
        }
        let _ = write!(plan, "u{}", info.col_used());
        info.set_idx_str(&plan);
        info.set_estimated_cost(cost.work);
        info.set_estimated_rows(cost.rows.clamp(1.0, 1e15) as i64);
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<Cursor<'vtab>> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            source: self.source.clone(),
            env: self.env.clone(),
            rows: None,
            ended: true,
            plan: String::new(),
            scan: Scan::default(),
            row: 0,
            phantom: PhantomData,
        })
    }
}

/// A scan of a table.
#[repr(C)]
struct Cursor<'vtab> {
    /// SQLite's part. Must be first.
    base: sqlite3_vtab_cursor,
    source: Arc<dyn Source>,
    env: Env,
    /// `None` before the first scan.
    rows: Option<Box<dyn Rows>>,
    ended: bool,
    /// The plan that `best_index` wrote for this scan; `scan` is the same, parsed.
    plan: String,
    scan: Scan,
    row: i64,
    phantom: PhantomData<&'vtab HeapTable>,
}

/// A failure of a table. SQLite passes on its text; too little memory is no fault of the query, so it is kept.
fn failed(env: &Env, error: QueryError) -> Error {
    let text = error.to_string();
    if let QueryError::Heap(error @ HeapError::Memory { .. }) = error {
        env.stop.keep_fault(error);
    }
    Error::ModuleError(text)
}

/// Parses what `best_index` wrote; the values of the comparisons are not known yet.
fn scan_of(plan: &str) -> Scan {
    let mut scan = Scan::default();
    for word in plan.split(' ') {
        let Some((sign, number)) = word.split_at_checked(1) else {
            continue;
        };
        let number: u64 = number.parse().unwrap_or_default();
        let column = number as usize;
        match sign {
            "u" => scan.used = number,
            "^" => scan.order = Some(Order::Ascending(column)),
            "v" => scan.order = Some(Order::Descending(column)),
            "#" => scan.order = Some(Order::Grouped(column)),
            _ => {
                let found = OPS.iter().find(|o| sign.as_bytes() == [o.1]);
                scan.constraints.push(Constraint {
                    column,
                    op: found.map_or(Op::Eq, |o| o.0),
                    value: Operand::Null,
                });
            }
        }
    }
    scan
}

/// Replaces a value, reusing its memory.
fn set_operand(operand: &mut Operand, value: ValueRef<'_>) {
    match (value, operand) {
        (ValueRef::Text(text), Operand::Text(old)) => {
            old.clear();
            // Ids are valid, and finding that out is faster than replacing what is not.
            match std::str::from_utf8(text) {
                Ok(text) => old.push_str(text),
                Err(_) => old.push_str(&String::from_utf8_lossy(text)),
            }
        }
        (ValueRef::Text(text), operand) => {
            *operand = Operand::Text(String::from_utf8_lossy(text).into_owned());
        }
        (ValueRef::Integer(n), operand) => *operand = Operand::Int(n),
        (ValueRef::Real(n), operand) => *operand = Operand::Real(n),
        (ValueRef::Null | ValueRef::Blob(_), operand) => *operand = Operand::Null,
    }
}

// SAFETY: `repr(C)`, and the first field is `sqlite3_vtab_cursor`.
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, _: c_int, plan: Option<&str>, args: &Filters<'_>) -> Result<()> {
        let plan = plan.unwrap_or_default();
        if self.plan != plan {
            (self.plan, self.scan, self.rows) = (plan.to_owned(), scan_of(plan), None);
        }
        for (constraint, value) in self.scan.constraints.iter_mut().zip(args.iter()) {
            set_operand(&mut constraint.value, value);
        }
        match &mut self.rows {
            Some(rows) if rows.repeats() => rows.again(&self.scan),
            rows => {
                // The previous scan must have ended before the next one begins.
                *rows = None;
                let scan = self.scan.clone();
                *rows = Some(
                    self.source
                        .open(&self.env, scan)
                        .map_err(|e| failed(&self.env, e))?,
                );
            }
        }
        (self.row, self.ended) = (0, false);
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        self.row += 1;
        if let Some(rows) = &mut self.rows {
            self.ended = !rows.advance().map_err(|e| failed(&self.env, e))?;
            if self.ended && !rows.repeats() {
                self.rows = None;
            }
        }
        Ok(())
    }

    fn eof(&self) -> bool {
        self.ended
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let mut out = Answer {
            context,
            result: Ok(()),
        };
        if let (Some(rows), Ok(column)) = (&self.rows, usize::try_from(column)) {
            rows.column(column, &mut out)
                .map_err(|e| failed(&self.env, e))?;
        }
        out.result
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row)
    }
}

/// A value to be passed to SQLite.
struct Answer<'a> {
    context: &'a mut Context,
    result: Result<()>,
}

impl Out for Answer<'_> {
    fn null(&mut self) {
        self.result = self.context.set_result(rusqlite::types::Null);
    }

    fn int(&mut self, value: i64) {
        self.result = self.context.set_result(value);
    }

    fn real(&mut self, value: f64) {
        self.result = self.context.set_result(value);
    }

    fn text(&mut self, value: &str) {
        self.result = self.context.set_result(value);
    }
}
