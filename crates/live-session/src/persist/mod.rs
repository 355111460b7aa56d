//! Data that outlives the server.
//!
//! The journal: [`journal`] is a file of entries that survives a killed server. `journal_filter` selects the part of the
//! agent's stream that is stored, without the threads that have ended, which `threads` finds. `journal_state` is the
//! timeline with its journal, which is written as things happen and replayed by the next server. For the user:
//! [`saved_tables`] stores tables of all classes in files, in the formats of `table_forms`.

pub mod journal;
pub mod journal_filter;
pub(crate) mod journal_state;
pub mod saved_tables;
pub mod table_forms;
pub(crate) mod threads;
