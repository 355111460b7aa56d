//! `--set`: the objects that a command examines.

use super::described::help;
use super::query::fault;
use crate::exit::{NotFound, Usage};
use crate::session::Session;
use anyhow::Result;
use heap_analysis::sets::scope::Scope;
use heap_analysis::sets::selection::Selection;
use heap_analysis::sets::set;
use heap_analysis::sets::spec::{SetError, SetSpec};
use heap_graph::Heap;
use heap_query::{Limits, Session as Queries};
use std::sync::Arc;

/// A part of the heap.
#[derive(Debug, clap::Args)]
pub struct Part {
    #[arg(long, value_name = "SET", value_parser = parse, help = help("waste", "set"))]
    set: Option<SetSpec>,
}

impl Part {
    /// The objects of the set; without one the reachable objects, or with `--unreachable` all of them.
    pub(crate) fn scope(&self, session: &Session, heap: &Arc<Heap>) -> Result<Scope> {
        let all = session.global.unreachable;
        Ok(match &self.set {
            Some(spec) => Scope::Set {
                name: spec.to_string(),
                all: all || spec.has_unreachable(),
                objects: Arc::new(members(session, heap, spec, all)?),
            },
            None => Scope::of_all(all),
        })
    }
}

/// A set on the command line.
pub(crate) fn parse(text: &str) -> Result<SetSpec, SetError> {
    text.parse()
}

/// The members of a set; with `all` the unreachable ones, too.
pub(crate) fn members(
    session: &Session,
    heap: &Arc<Heap>,
    spec: &SetSpec,
    all: bool,
) -> Result<Selection> {
    let queries = Queries::open(Arc::clone(heap)).with_unreachable(all);
    let resolved = queries.resolve(spec, &Limits::default()).map_err(fault)?;
    session
        .with_control(|control| set::members(heap, &resolved, all, control))
        .map_err(of_set)
}

fn of_set(error: SetError) -> anyhow::Error {
    match error {
        SetError::Unreadable(_) | SetError::Kind(_) | SetError::Unasked(_) => {
            Usage(error.to_string()).into()
        }
        SetError::Unknown { .. } => NotFound(error.to_string()).into(),
        SetError::Heap(error) => error.into(),
    }
}
