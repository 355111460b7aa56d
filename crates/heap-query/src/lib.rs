//! Queries about a heap, in SQL, in the OQL of Eclipse MAT, or in the OQL of jhat and VisualVM. The result is a table
//! of typed cells. Nothing here prints.
//!
//! ```no_run
//! use heap_graph::{Control, Heap, Options};
//! use heap_query::{Limits, Session};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let heap = Heap::open("heap.hprof".as_ref(), &Options::default(), &Control::quiet())?;
//! let session = Session::open(heap.into());
//! let text = "select class, count(*), sum(shallow) from objects group by class";
//! let table = session.run(text, None, &Limits::rows(100))?;
//! assert_eq!(table.columns, ["class", "count(*)", "sum(shallow)"]);
//! # Ok(())
//! # }
//! ```
//!
//! In reading order: [`cell`](Cell) (results), [`limits`](Limits), [`error`](QueryError),
//! [`session`](Session) (the interface), [`sink`](Sink) (where rows go), `recognise` (detects the dialect of a text), `shared`, `describe` and `graph`
//! (used by all dialects), `sql`, `oql`, `jhat` and `catalog` (the names that a query can use).

mod catalog;
mod cell;
mod describe;
mod error;
mod graph;
mod jhat;
mod lang;
mod limits;
mod oql;
mod recognise;
mod session;
mod shared;
mod sink;
mod sql;

pub use catalog::{ColumnInfo, TableInfo, TableKind, tables};
pub use cell::{Cell, Cut, Table};
pub use error::{Place, QueryError};
pub use lang::Lang;
pub use limits::{Limits, Watch};
pub use session::{HistoryEntry, Session};
pub use sink::Sink;
