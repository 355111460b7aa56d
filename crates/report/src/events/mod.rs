//! The contents of a stream of VM events as text: one recording, or the same script under several collectors side by
//! side.

mod charts;
mod compare;
mod dumps;
mod line;
mod page;
mod say;
mod trail;

pub use compare::{compare_doc, compare_page};
pub use line::line;
pub use page::page;
pub use say::{chapters, doc};
pub use trail::{TrailJson, trail_doc};

use live_heap::Events;
use serde::Serialize;

/// An answer about events as JSON.
#[derive(Debug, Serialize)]
pub struct EventsJson<'a> {
    /// Name and version of this layout.
    pub schema: &'static str,
    /// The contents of the stream.
    #[serde(flatten)]
    pub events: &'a Events,
    /// Whether the stream ended before its end.
    pub damaged: bool,
    /// Position and kind of the damage, as text.
    pub damage: Option<&'a str>,
}

impl<'a> EventsJson<'a> {
    /// An answer with the damage of its stream, if there is any.
    #[must_use]
    pub fn new(events: &'a Events, damage: Option<&'a str>) -> Self {
        Self {
            schema: "tenure.events/1",
            events,
            damaged: damage.is_some(),
            damage,
        }
    }
}

/// Several collectors as JSON.
#[derive(Debug, Serialize)]
pub struct CollectorsJson<'a> {
    /// Name and version of this layout.
    pub schema: &'static str,
    /// One answer for each collector.
    pub collectors: &'a [Run],
}

impl<'a> CollectorsJson<'a> {
    /// The runs in order.
    #[must_use]
    pub fn new(collectors: &'a [Run]) -> Self {
        Self {
            schema: "tenure.collectors/1",
            collectors,
        }
    }
}

/// One collector's run of a script.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The collector.
    pub collector: String,
    /// Lines of the script that were run.
    pub steps: u64,
    /// Bytes of its event stream on the socket.
    pub stream_bytes: u64,
    /// Why the script could not continue, if it could not.
    pub stopped: Option<String>,
    /// Objects freed by an event of their own; the others were freed with their arena.
    pub freed_singly: u64,
    /// The contents of the events.
    pub events: Events,
}
