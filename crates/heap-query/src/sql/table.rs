//! The interface of a virtual table, independent of SQLite: columns, conditions that it can check itself, and rows.

use crate::error::QueryError;
use crate::shared::Env;
use hprof::ObjectId;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// An object id, as text `0x7f001000`.
    Object,
    /// A whole number; truth values are 0 and 1.
    Int,
    /// A floating-point number.
    Real,
    /// Text.
    Text,
    /// Any type, such as that of a field.
    Any,
}

impl Type {
    /// The declared type, from which SQLite derives its comparison rules.
    pub(crate) fn declared(self) -> &'static str {
        match self {
            Type::Object => "TEXT OBJECT",
            Type::Int => "INTEGER",
            Type::Real => "REAL",
            Type::Text => "TEXT",
            Type::Any => "",
        }
    }
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct ColumnDef {
    pub(crate) name: String,
    pub(crate) kind: Type,
    /// Not part of `select *`: arguments of table functions, and columns that few queries need.
    pub(crate) hidden: bool,
    /// An argument of a function.
    pub(crate) argument: bool,
}

/// Columns from a list such as `"id:object name:text @of:object *start:int"`; `*` marks hidden
/// ones, `@` the arguments, which come before them.
pub(crate) fn columns(list: &str) -> Vec<ColumnDef> {
    list.split_whitespace()
        .map(|word| {
            let (name, kind) = word.split_once(':').unwrap_or((word, "any"));
            ColumnDef {
                name: name.trim_start_matches(['*', '@']).to_owned(),
                hidden: name.starts_with(['*', '@']),
                argument: name.starts_with('@'),
                kind: match kind {
                    "object" => Type::Object,
                    "int" => Type::Int,
                    "real" => Type::Real,
                    "text" => Type::Text,
                    _ => Type::Any,
                },
            }
        })
        .collect()
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Eq,
    Lt,
    Le,
    Gt,
    Ge,
}

/// The other side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

impl Operand {
    /// The object id that it names: `0x7f00`, or a number.
    pub(crate) fn object_id(&self) -> Option<ObjectId> {
        match self {
            Operand::Int(n) => Some(ObjectId(*n as u64)),
            Operand::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// A comparison that the table may use to examine fewer rows. SQLite checks it again unless the column is
/// [exact](Source::exact).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constraint {
    pub(crate) column: usize,
    pub(crate) op: Op,
    pub(crate) value: Operand,
}

impl Constraint {
    /// Whether a number passes. A comparison of a number with a text passes here, because SQLite decides it.
    pub(crate) fn admits(&self, number: u64) -> bool {
        let ordering = match &self.value {
            Operand::Int(n) => i128::from(number).cmp(&i128::from(*n)),
            Operand::Real(n) => match (number as f64).partial_cmp(n) {
                Some(ordering) => ordering,
                None => return true,
            },
            Operand::Null | Operand::Text(_) => return true,
        };
        match self.op {
            Op::Eq => ordering.is_eq(),
            Op::Lt => ordering.is_lt(),
            Op::Le => ordering.is_le(),
            Op::Gt => ordering.is_gt(),
            Op::Ge => ordering.is_ge(),
        }
    }
}

/// The order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Smallest first by this column.
    Ascending(usize),
    /// Largest first.
    Descending(usize),
    /// Equal values of this column together, in any order.
    Grouped(usize),
}

/// The parameters of one scan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    pub(crate) constraints: Vec<Constraint>,
    pub(crate) order: Option<Order>,
    /// A bit for each column that is used; the last bit stands for all further columns.
    pub(crate) used: u64,
}

impl Scan {
    /// The value that a column must equal.
    pub(crate) fn equal(&self, column: usize) -> Option<&Operand> {
        self.constraints
            .iter()
            .find(|c| c.column == column && c.op == Op::Eq)
            .map(|c| &c.value)
    }
}

/// The estimated cost of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Expected number of rows.
    pub(crate) rows: f64,
    /// Number of examined rows, weighted by the cost of each.
    pub(crate) work: f64,
}

/// A table.
pub(crate) trait Source: Send + Sync {
    /// Its columns.
    fn columns(&self) -> &[ColumnDef];

    /// Whether the table checks the equality of this column itself, so that SQLite need not check it again.
    fn exact(&self, _column: usize) -> bool {
        false
    }

    /// Whether the table uses a comparison.
    fn uses(&self, column: usize, op: Op) -> bool;

    /// The cost of a scan with these comparisons; `None` when an argument is missing.
    fn cost(&self, env: &Env, with: &[(usize, Op)]) -> Option<Cost>;

    /// Whether the table can deliver an order.
    fn delivers(&self, _order: Order) -> bool {
        false
    }

    /// Starts a scan, before its first row.
    fn open(&self, env: &Env, scan: Scan) -> Result<Box<dyn Rows>, QueryError>;
}

/// Rows of a scan.
pub(crate) trait Rows {
    /// Goes to the next row; false at the end.
    fn advance(&mut self) -> Result<bool, QueryError>;

    /// Whether a scan can be [restarted](Self::again). A join requests one object after the other, millions of times.
    fn repeats(&self) -> bool {
        false
    }

    /// Restarts with other values of the same comparisons, if [`repeats`](Self::repeats) is true.
    fn again(&mut self, _scan: &Scan) {}

    /// Passes the value of a column of the current row to `out`.
    fn column(&self, column: usize, out: &mut dyn Out) -> Result<(), QueryError>;
}

/// The two hexadecimal digits of each byte.
const PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Receives a value.
pub(crate) trait Out {
    fn null(&mut self);
    fn int(&mut self, value: i64);
    fn real(&mut self, value: f64);
    fn text(&mut self, value: &str);

    /// An object id; null ids are no value.
    fn object(&mut self, id: ObjectId) {
        if id.is_null() {
            self.null();
            return;
        }
        // Without `format!`, because this is called for every row of large results.
        let mut buffer = [0u8; 18];
        for (pair, byte) in buffer[2..].chunks_exact_mut(2).zip(id.0.to_be_bytes()) {
            pair.copy_from_slice(&PAIRS[usize::from(byte)]);
        }
        let start = (id.0.leading_zeros() / 4) as usize;
        buffer[start..start + 2].copy_from_slice(b"0x");
        self.text(std::str::from_utf8(&buffer[start..]).unwrap_or_default());
    }

    /// A size. In theory it may not fit into a signed 64-bit number.
    fn size(&mut self, value: u64) {
        self.int(i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn flag(&mut self, value: bool) {
        self.int(i64::from(value));
    }

    /// A text, or no value.
    fn maybe(&mut self, value: Option<&str>) {
        match value {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }
}
