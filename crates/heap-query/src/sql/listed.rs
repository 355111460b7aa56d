//! Tables whose rows are produced one by one as lists of cells: all but `objects`.

use super::table::{ColumnDef, Cost, Op, Operand, Out, Rows, Scan, Source, Type, columns};
use crate::cell::Cell;
use crate::error::QueryError;
use crate::limits::Lead;
use crate::shared::Env;

/// Rows on demand.
pub(crate) type RowIter = Box<dyn Iterator<Item = Result<Vec<Cell>, QueryError>>>;

/// A table, or a function when it has arguments.
pub(crate) struct Listed {
    pub(crate) columns: Vec<ColumnDef>,
    /// The columns that are arguments, if it is a function: SQLite passes arguments to hidden columns in their order.
    arguments: Vec<usize>,
    /// Whether the first argument is required.
    demanding: bool,
    /// Columns with object ids by which the table finds rows without a scan.
    pub(crate) keys: &'static [usize],
    /// The total number of rows.
    pub(crate) size: fn(&Env) -> f64,
    /// Produces the rows.
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
            arguments: Vec::new(),
            demanding: false,
            keys,
            size,
            rows,
        }
    }

    /// A function whose arguments are the columns marked `@`; the first one is required.
    pub(crate) fn function(
        list: &str,
        rows: fn(&Env, &Scan) -> Result<RowIter, QueryError>,
    ) -> Listed {
        let columns = columns(list);
        Listed {
            arguments: (0..columns.len())
                .filter(|n| columns[*n].argument)
                .collect(),
            demanding: true,
            columns,
            keys: &[],
            size: |_| 20.0,
            rows,
        }
    }

    /// Makes the arguments of a function optional.
    pub(crate) fn or_alone(self) -> Listed {
        Listed {
            demanding: false,
            ..self
        }
    }

    fn is_argument(&self, column: usize) -> bool {
        self.arguments.contains(&column)
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
        let first = self.arguments.first().filter(|_| self.demanding);
        if first.is_some_and(|first| !with.iter().any(|w| w.0 == *first)) {
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
            arguments: self.given(&scan),
            here: Vec::new(),
            env: env.clone(),
            lead: (scan.constraints.is_empty() && self.arguments.is_empty())
                .then(|| (env.lead("rows"), (self.size)(env) as u64)),
            count: 0,
        }))
    }
}

impl Listed {
    /// The arguments of the function, which its hidden columns show.
    fn given(&self, scan: &Scan) -> Vec<(usize, Cell)> {
        let value = |column: usize| match (scan.equal(column)?, self.columns[column].kind) {
            (given, Type::Object) => given.object_id().map(Cell::Object),
            (Operand::Text(text), _) => Some(Cell::Text(text.clone())),
            (Operand::Int(n), _) => Some(Cell::Int(*n)),
            (Operand::Real(n), _) => Some(Cell::Real(*n)),
            (Operand::Null, _) => None,
        };
        let arguments = self.arguments.iter();
        arguments.filter_map(|n| Some((*n, value(*n)?))).collect()
    }
}

struct ListedRows {
    rows: RowIter,
    arguments: Vec<(usize, Cell)>,
    here: Vec<Cell>,
    env: Env,
    /// For a scan of the whole table: the approximate number of rows.
    lead: Option<(Lead, u64)>,
    count: u64,
}

impl Rows for ListedRows {
    fn advance(&mut self) -> Result<bool, QueryError> {
        self.count += 1;
        if self.count.is_multiple_of(256) {
            self.env.stop.check()?;
        }
        // With few rows, the query may scan another table for each of them.
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
        match self.arguments.iter().find(|a| a.0 == column) {
            Some((_, argument)) => say(argument, out),
            None => say(self.here.get(column).unwrap_or(&Cell::Null), out),
        }
        Ok(())
    }
}

/// Passes a cell to SQLite.
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
