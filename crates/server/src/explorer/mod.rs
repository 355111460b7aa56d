//! A heap dump as pages. Everything that is answered is data of `heap-analysis`, said by `report`:
//! the same JSON, the same CSV, the same words as `tenure COMMAND` gives.
//!
//! In reading order: [`state`] (a dump and what is known of it), `opening` (from a file to an opened heap),
//! [`describe`] (every view with its parameters), [`params`] (what is asked), `views` (their functions), `command` and
//! `sql` (the same questions in a terminal and on the query page), `query` (SQL and OQL), `recent`
//! (answers and sets that are kept), `later` (answers that take their time), [`notes`] and [`history`] (what the user wrote and asked, in
//! files that `kept` appends to), `routes` (addresses).

mod command;
pub mod describe;
pub mod history;
mod kept;
mod later;
pub mod notes;
mod opening;

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
