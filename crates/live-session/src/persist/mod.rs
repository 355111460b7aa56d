//! What outlives the server.
//!
//! The journal: [`journal`] is a file of entries that survives a killed server; `journal_filter` chooses what of the agent's stream
//! goes into it; `journal_state` is the timeline with its journal, written as things happen and replayed by the next server. For the user:
//! [`saved_tables`] are tables of all classes in files, in the forms of `table_forms`.

pub mod journal;
pub mod journal_filter;
pub(crate) mod journal_state;
pub mod saved_tables;
pub mod table_forms;
