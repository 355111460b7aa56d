//! Tables whose rows are made one after the other as lists of cells: all but `objects`.

use super::table::{ColumnDef, Cost, Op, Out, Rows, Scan, Source, columns};
use crate::cell::Cell;
use crate::error::QueryError;
use crate::limits::Lead;
use crate::shared::Env;

/// Rows on demand.
pub(crate) type RowIter = Box<dyn Iterator<Item = Result<Vec<Cell>, QueryError>>>;

/// A table, or a function when it has arguments.
pub(crate) struct Listed {
    pub(crate) columns: Vec<ColumnDef>,
    /// The column that must be given, if it is a function: SQLite hands the argument to the first
    /// hidden one.
    pub(crate) argument: Option<usize>,
    /// Columns of objects by which it finds rows directly.
    pub(crate) keys: &'static [usize],
    /// Rows in all.
    pub(crate) size: fn(&Env) -> f64,
    /// Makes the rows.
    pub(crate) rows: fn(&Env, &Scan) -> Result<RowIter, QueryError>,
}

impl Listed {
    /// A table without arguments.
    pub(crate) fn table(
        list: &str,
        keys: &'static [usize],
        size: fn(&Env) -> f64,
        rows: fn(&Env, &Scan) -> Result<RowIter, QueryError>,
    ) -> Listed {
        Listed {
            columns: columns(list),
            argument: None,
            keys,
            size,
            rows,
        }
    }

    /// A function: the column `of` is its argument.
    pub(crate) fn function(
        list: &str,
        rows: fn(&Env, &Scan) -> Result<RowIter, QueryError>,
    ) -> Listed {
        let columns = columns(list);
        Listed {
            argument: columns.iter().position(|c| c.name == "of"),
            columns,
            keys: &[],
            size: |_| 20.0,
            rows,
        }
    }

    fn is_argument(&self, column: usize) -> bool {
        self.argument == Some(column)
    }
}

impl Source for Listed {
    fn columns(&self) -> &[ColumnDef] {
        &self.columns
    }

    fn exact(&self, column: usize) -> bool {
        self.is_argument(column) || self.keys.contains(&column)
    }

    fn uses(&self, column: usize, op: Op) -> bool {
        op == Op::Eq && self.exact(column)
    }

    fn cost(&self, env: &Env, with: &[(usize, Op)]) -> Option<Cost> {
        if self.argument.is_some() && !with.iter().any(|w| self.is_argument(w.0)) {
            return None;
        }
        let rows = (self.size)(env).max(1.0);
        let keyed = with.iter().any(|w| self.keys.contains(&w.0));
        Some(if keyed {
            Cost {
                rows: 4.0,
                work: 8.0,
            }
        } else {
            Cost {
                rows,
                work: rows * 4.0 + 10.0,
            }
        })
    }

    fn open(&self, env: &Env, scan: Scan) -> Result<Box<dyn Rows>, QueryError> {
        Ok(Box::new(ListedRows {
            rows: (self.rows)(env, &scan)?,
            argument: self.given(&scan),
            here: Vec::new(),
            env: env.clone(),
            lead: (scan.constraints.is_empty() && self.argument.is_none())
                .then(|| (env.lead("rows"), (self.size)(env) as u64)),
            count: 0,
        }))
    }
}

impl Listed {
    /// What the function was called with, to be shown in its hidden column.
    fn given(&self, scan: &Scan) -> Option<(usize, Cell)> {
        let column = self.argument?;
        let id = scan.equal(column)?.object_id()?;
        Some((column, Cell::Object(id)))
    }
}

struct ListedRows {
    rows: RowIter,
    argument: Option<(usize, Cell)>,
    here: Vec<Cell>,
    env: Env,
    /// For a scan of the whole table: about how many rows there are.
    lead: Option<(Lead, u64)>,
    count: u64,
}

impl Rows for ListedRows {
    fn advance(&mut self) -> Result<bool, QueryError> {
        self.count += 1;
        if self.count.is_multiple_of(256) {
            self.env.stop.check()?;
        }
        // With few rows, each may stand for a scan of another table.
        if let Some((lead, size)) = &self.lead
            && (self.count.is_multiple_of(256) || *size < 1 << 16)
        {
            lead.report(self.count.min(*size), *size);
        }
        match self.rows.next() {
            Some(row) => {
                self.here = row?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn column(&self, column: usize, out: &mut dyn Out) -> Result<(), QueryError> {
        match &self.argument {
            Some((at, argument)) if *at == column => say(argument, out),
            _ => say(self.here.get(column).unwrap_or(&Cell::Null), out),
        }
        Ok(())
    }
}

/// Says a cell to SQLite.
pub(crate) fn say(cell: &Cell, out: &mut dyn Out) {
    match cell {
        Cell::Null => out.null(),
        Cell::Bool(value) => out.flag(*value),
        Cell::Int(value) => out.int(*value),
        Cell::Real(value) => out.real(*value),
        Cell::Text(text) => out.text(text),
        Cell::Object(id) => out.object(*id),
        Cell::List(_) => out.text(&cell.to_string()),
    }
}
