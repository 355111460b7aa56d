//! A heap dump as pages. Everything that is answered is data of `heap-analysis`, said by `report`:
//! the same JSON, the same CSV, the same words as `tenure COMMAND` gives.
//!
//! In reading order: [`state`] (from a file to an opened heap, with what is known on the way),
//! [`params`] (what is asked), `views` (the table of questions), `command` and
//! `sql` (the same questions in a terminal and on the query page), `query` (SQL and OQL), `recent`
//! (answers and sets that are kept), `later` (answers that take their time), [`notes`] and [`history`] (what the user wrote and asked, in
//! files that `kept` appends to), `routes` (addresses).

mod command;
pub mod history;
mod kept;
mod later;
pub mod notes;
pub mod params;
mod plain;
mod prepared;
mod query;
mod recent;
mod routes;
mod sql;
pub mod state;
mod views;

pub use routes::router;
pub use state::Explorer;
pub use views::names as view_names;
