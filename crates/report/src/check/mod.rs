//! The verdict of `check` in formats that build servers read. JSON, Markdown and the terminal use the same document as
//! for every answer; these three formats have code of their own.

mod github;
mod junit;
mod sarif;

pub use github::render as github;
pub use junit::render as junit;
pub use sarif::render as sarif;
