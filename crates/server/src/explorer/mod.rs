//! A heap dump as pages. All answers are data of `heap-analysis`, rendered by `report`: the same JSON, CSV and text as
//! of `tenure COMMAND`.
//!
//! In reading order: [`state`] (a dump and its state), `opening` (from a file to an opened heap), [`describe`] (every
//! view with its parameters), [`params`] (the parameters of a request), `views` (their functions), `early` (what can be
//! said soon), `asking` (from a question to its answer), `command` and `sql`
//! (the same view in a terminal and on the query page), `query` (SQL and OQL), `recent` (cached answers and sets),
//! `later` (answers that take long), [`notes`] and [`history`] (the user's notes and queries, in files that `kept`
//! appends to), `routes` (addresses).

mod asking;
mod command;
pub mod describe;
mod early;
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
pub use state::{Explorer, Renaming};
pub use views::names as view_names;
