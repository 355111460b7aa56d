//! Say any answer: terminal, JSON, Markdown, HTML, and the profile formats of other tools.

pub mod profile;
