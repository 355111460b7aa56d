//! Faults: why a request has no answer.

use heap_analysis::sets::spec::SetError;
use heap_graph::HeapError;
use heap_query::{Place, QueryError};
use serde::Serialize;

/// The kind of fault; part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The parameters are invalid.
    BadRequest,
    /// Not from Tenure's own page, or without the token.
    Forbidden,
    /// No such view, object, class, or name in a set.
    NotFound,
    /// There is something at this address, but not for this method.
    MethodNotAllowed,
    /// The index is still being built: repeat the request.
    NotReady,
    /// The answer is being computed: repeat the request.
    Later,
    /// The dump cannot be used, or the answer could not be computed.
    Failed,
}

/// A fault: `{"schema":"tenure.error/1","error":{"kind":..,"message":..}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// Description for people.
    pub message: String,
    /// The position in the text of a query, if the fault has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Box<Place>>,
}

impl Fault {
    /// The parameters are invalid.
    pub fn bad(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::BadRequest, message)
    }

    /// Not from Tenure's own page, or without the token.
    pub fn forbidden(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Forbidden, message)
    }

    /// There is no such view, object or class.
    pub fn not_found(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::NotFound, message)
    }

    /// The address takes only the methods `allowed`, as the header `Allow` lists them.
    pub fn method_not_allowed(method: &str, allowed: &str) -> Fault {
        let allowed: Vec<&str> = allowed.split(',').map(str::trim).collect();
        let allowed = allowed.join(" or ");
        let message = format!("this address does not take {method}: use {allowed}");
        Fault::new(FaultKind::MethodNotAllowed, message)
    }

    /// Not yet.
    pub fn not_ready(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::NotReady, message)
    }

    /// The answer is being computed.
    pub fn later() -> Fault {
        Fault::new(FaultKind::Later, "this is being computed")
    }

    /// The dump cannot be used, or the answer could not be computed.
    pub fn failed(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Failed, message)
    }

    fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        Fault {
            kind,
            message: message.into(),
            place: None,
        }
    }
}

impl From<QueryError> for Fault {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        match error {
            QueryError::Text { place, .. } => Fault {
                place: Some(Box::new(place)),
                ..Fault::bad(message)
            },
            QueryError::Run(_) | QueryError::Limit(_) | QueryError::Stopped(_) => {
                Fault::bad(message)
            }
            QueryError::Heap(_) => Fault::failed(message),
        }
    }
}

impl From<HeapError> for Fault {
    fn from(error: HeapError) -> Self {
        Fault::failed(error.to_string())
    }
}

impl From<SetError> for Fault {
    fn from(error: SetError) -> Self {
        match error {
            SetError::Unreadable(_) | SetError::Kind(_) | SetError::Unasked(_) => {
                Fault::bad(error.to_string())
            }
            SetError::Unknown { .. } => Fault::not_found(error.to_string()),
            SetError::Heap(error) => error.into(),
        }
    }
}
