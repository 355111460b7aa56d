//! A heap dump as pages. Everything that is answered is data of `heap-analysis`, said by `report`:
//! the same JSON, the same CSV, the same words as `tenure COMMAND` gives.
//!
//! In reading order: [`state`] (from a file to an opened heap, with what is known on the way),
//! [`params`] (what is asked), `views` (the table of questions), `recent` (answers and sets that
//! are kept), [`notes`] (what the user wrote), `routes` (addresses).

mod command;
pub mod notes;
pub mod params;
mod plain;
mod recent;
mod routes;
pub mod state;
mod views;

pub use routes::router;
pub use state::Explorer;
