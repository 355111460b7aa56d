//! The rules of the house as functions from text to problems, and ordinary tests that hold the
//! repository to them, and the writers of packages. There is no task runner: `./x` has the tasks.
//!
//! ```
//! let problems = xtask::tidy::unsafe_in_the_wrong_place("crates/report/src/html.rs", "unsafe { f() }");
//! assert_eq!(problems, ["crates/report/src/html.rs:1: unsafe outside the places named for it"]);
//! ```
//!
//! Reading order: [`rows`] (which crate may use which), [`circles`] (files that use each other), [`source`] (Rust text without comments and
//! strings), [`tidy`] (rules about files), [`words`] (phrases that documents must not contain),
//! [`commands`] (commands in Markdown), [`figures`] (tables from committed runs), [`answers`] (the fields of the JSON that commands print), [`licences`] (what users get), [`tree`] (the files of the repository);
//! beside the rules, [`package`] (the files of a release).

pub mod answers;
pub mod circles;
pub mod commands;
pub mod figures;
pub mod licences;
pub mod package;
pub mod rows;
pub mod source;
pub mod tidy;
pub mod tree;
pub mod words;
