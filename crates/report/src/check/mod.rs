//! The verdict of `check` in the forms that build servers read. JSON, Markdown and the terminal are
//! said like every answer; these three have forms of their own.

mod github;
mod junit;
mod sarif;

pub use github::render as github;
pub use junit::render as junit;
pub use sarif::render as sarif;
