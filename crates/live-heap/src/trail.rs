//! The history of one object in a stream: its allocation, every id it had, its end.
//!
//! Several objects may have had the same id, one after the other, and an object may have had other ids before. So a
//! stream is replayed twice: first to find all objects that ever had the id ([`Watch::of_id`]), then to record their
//! histories ([`Watch::of_objects`]).
//!
//! ```
//! use live_heap::{Replay, Watch};
//! use vmpi::wire::{Encoder, Hello};
//!
//! let bytes = Encoder::new(&Hello::default()).finish();
//! let mut replay = Replay::watching(Watch::of_id(0x1000));
//! replay.push(&bytes);
//! let (heap, _) = replay.finish()?;
//! assert_eq!(heap.watched(), []);
//! # Ok::<(), vmpi::wire::Damage>(())
//! ```

use serde::Serialize;

use crate::objects::Row;

/// The most objects of one id, and steps of one object, that are stored; further ones are only counted.
const MOST: usize = 1000;

/// What a replay watches.
#[derive(Debug, Default)]
pub struct Watch {
    id: Option<u64>,
    /// Serials of objects, ascending.
    serials: Vec<u64>,
    trails: Vec<Trail>,
}

/// The way of one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trail {
    /// Its place in the order of allocation, from 1.
    pub serial: u64,
    /// Its class.
    pub class: String,
    /// Its bytes.
    pub size: u64,
    /// The stack that allocated it, innermost frame first.
    pub frames: Vec<String>,
    /// What happened to it, in order.
    pub steps: Vec<Step>,
    /// Steps not kept: an object has a thousand.
    pub omitted_steps: u64,
    #[serde(skip)]
    pub(crate) kind: u32,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was allocated.
    Born,
    /// It got another id.
    Moved,
    /// It was freed.
    Freed,
    /// It died with its arena.
    ArenaDeleted,
    /// Another object got its id, so its end was not reported: the stream lost events.
    Replaced,
}

/// One moment of an object's life.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// What happened.
    pub fate: Fate,
    /// Its id from then on, or its last id.
    #[serde(serialize_with = "hexadecimal")]
    pub id: u64,
    /// The arena it is in then.
    pub arena: u32,
    /// The arena's name.
    pub arena_name: String,
    /// Collections finished by then.
    pub collections: u32,
    /// Bytes allocated by all by then.
    pub at_bytes: u64,
    /// The stream's clock, 0 if it has none.
    pub ns: u64,
}

fn hexadecimal<S: serde::Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{id:#x}"))
}

impl Watch {
    /// Finds the objects that ever have an id.
    #[must_use]
    pub fn of_id(id: u64) -> Self {
        Self {
            id: Some(id),
            ..Self::default()
        }
    }

    /// Records the histories of objects, by their serials.
    #[must_use]
    pub fn of_objects(serials: &[u64]) -> Self {
        let mut serials = serials.to_vec();
        serials.sort_unstable();
        Self {
            serials,
            ..Self::default()
        }
    }

    /// Serials found, in the order in which they had the id.
    pub(crate) fn serials(&self) -> &[u64] {
        &self.serials
    }

    pub(crate) fn trails(&self) -> &[Trail] {
        &self.trails
    }

    /// Records an event of an object.
    pub(crate) fn saw(&mut self, row: &Row, step: Step) {
        if let Some(id) = self.id {
            let is_new = row.id == id && !self.serials.contains(&row.serial);
            if is_new && self.serials.len() < MOST {
                self.serials.push(row.serial);
            }
            return;
        }
        if self.serials.binary_search(&row.serial).is_err() {
            return;
        }
        let known = self.trails.iter().position(|t| t.serial == row.serial);
        let at = known.unwrap_or_else(|| {
            self.trails.push(Trail {
                serial: row.serial,
                class: String::new(),
                size: row.size,
                frames: Vec::new(),
                steps: Vec::new(),
                omitted_steps: 0,
                kind: row.kind,
            });
            self.trails.len() - 1
        });
        let trail = &mut self.trails[at];
        if trail.steps.len() < MOST {
            trail.steps.push(step);
        } else {
            trail.omitted_steps += 1;
        }
    }
}
