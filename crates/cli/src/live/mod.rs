//! Running JVMs: loading the agent into one, and collecting what the agent sends.

pub(crate) mod agent;
pub(crate) mod assistant;
pub(crate) mod collect;
pub(crate) mod collect_events;
pub(crate) mod door;
mod embedded;

pub(crate) mod front_end;
pub(crate) mod page;
pub(crate) mod push;
mod push_server;
pub(crate) mod record_args;
pub(crate) mod recordings;
pub(crate) mod series;
pub(crate) mod snapshot;
pub(crate) mod watched;
