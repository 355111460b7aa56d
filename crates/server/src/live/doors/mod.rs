//! The addresses of a watched program.
//!
//! `routes` maps an address to a question; `views` finds the function of `live-session` that answers it by name, and [`describe`]
//! lists all with their parameters. The answer becomes JSON, a file (`downloads`), a page without scripts (`plain`, `plain_parts`), or
//! what another tool reads: [`prometheus`], the servlet of an older profiler ([`servlet`]).

pub mod describe;
mod downloads;
mod plain;
mod plain_parts;
pub mod prometheus;
pub(in crate::live) mod routes;
pub mod servlet;
pub(crate) mod views;
