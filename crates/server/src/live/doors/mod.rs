//! The addresses of a watched program.
//!
//! `routes` maps an address to a view; `views` finds the function of `live-session` for it by name, and [`describe`]
//! lists all views with their parameters. The answer becomes JSON, a file (`downloads`), a page without JavaScript
//! (`plain`, `plain_parts`), or a format of another tool: [`prometheus`], the servlet of an older profiler
//! ([`servlet`]).

pub mod describe;
mod downloads;
mod plain;
mod plain_parts;
pub mod prometheus;
pub(in crate::live) mod routes;
pub mod servlet;
pub(crate) mod views;
