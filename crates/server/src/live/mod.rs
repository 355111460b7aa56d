//! A running program as pages: the addresses of a `live-session`. Each calls one of its functions and renders the
//! answer in a format.

pub mod doors;

pub use doors::routes::router;

use crate::explorer::Explorer;
use live_session::dumps::list::Dump;
use std::sync::Arc;

/// The explorer of a dump that a program opened with [`Explorer::open`].
pub(crate) fn explorer_of(dump: &Dump) -> Option<Arc<Explorer>> {
    Arc::clone(&dump.opened).into_any().downcast().ok()
}

pub(crate) use doors::views::answer;
