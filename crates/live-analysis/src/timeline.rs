//! The past of a program in limited memory: recent rows as they were measured, older ones merged, and the events in
//! between.

use crate::metrics::Row;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The most rows per level.
const ROWS: usize = 4096;
/// Rows of one level that are merged into one of the next.
const FACTOR: usize = 8;
/// The number of levels: with four ticks a second the last one covers six days.
const LEVELS: usize = 4;
/// The most stored events.
const EVENTS: usize = 20_000;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Number, rising by one.
    pub id: u64,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    /// Garbage collections since the tick before.
    Gc {
        /// The collector's own name.
        collector: String,
        /// How many.
        count: u64,
        /// Pause, all together.
        pause_ms: f64,
        /// Cause of the last one.
        cause: String,
    },
    /// A command of the user, or the state of the recording.
    Marker {
        /// In words.
        text: String,
    },
}

/// The ring buffers.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    levels: [VecDeque<Row>; LEVELS],
    /// Rows of each level that are not merged into the next one yet.
    waiting: [Vec<Row>; LEVELS],
    events: VecDeque<Event>,
    next_event: u64,
    collections: Collections,
}

/// All garbage collections so far, also those whose events are no longer stored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Collections {
    /// How many.
    pub count: u64,
    /// Their pauses, all together.
    pub pause_ms: f64,
}

impl Timeline {
    /// Adds a row; its time must not be before that of the last row.
    pub fn push(&mut self, row: Row) {
        let mut row = row;
        for level in 0..LEVELS {
            keep(&mut self.levels[level], row);
            let waiting = &mut self.waiting[level];
            waiting.push(row);
            if waiting.len() < FACTOR {
                return;
            }
            let Some(merged) = Row::merge(waiting) else {
                return;
            };
            waiting.clear();
            row = merged;
        }
    }

    /// Records that nothing was measured from this time until the next row: adds a row without known values on every
    /// level, so that nothing before it is merged with anything after it.
    pub fn interrupt(&mut self, time_ms: u64) {
        let gap = Row::new(time_ms);
        for level in 0..LEVELS {
            let waiting = std::mem::take(&mut self.waiting[level]);
            let merged = Row::merge(&waiting).filter(|_| level + 1 < LEVELS);
            if let Some(merged) = merged {
                keep(&mut self.levels[level + 1], merged);
                self.waiting[level + 1].push(merged);
            }
            keep(&mut self.levels[level], gap);
        }
    }

    /// Adds an event and returns its number.
    pub fn mark(&mut self, time_ms: u64, kind: EventKind) -> u64 {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        if let EventKind::Gc {
            count, pause_ms, ..
        } = &kind
        {
            self.collections.count += count;
            self.collections.pause_ms += pause_ms;
        }
        let id = self.next_event;
        self.next_event += 1;
        self.events.push_back(Event { id, time_ms, kind });
        id
    }

    /// The last row.
    pub fn last(&self) -> Option<&Row> {
        self.levels[0].back()
    }

    /// The last rows as measured, at most `count`.
    pub fn recent(&self, count: usize) -> impl Iterator<Item = &Row> {
        let from = self.levels[0].len().saturating_sub(count);
        self.levels[0].range(from..)
    }

    /// The rows from `from` to `to`, at most about `points`: from the finest level that covers the range, merged
    /// further if there are too many.
    pub fn rows(&self, from: u64, to: u64, points: usize) -> Vec<Row> {
        let points = points.max(2);
        let reaches = |level: &VecDeque<Row>| {
            level.len() < ROWS || level.front().is_some_and(|row| row.time_ms <= from)
        };
        let level = self.levels.iter().find(|level| reaches(level));
        let level = level.unwrap_or(&self.levels[LEVELS - 1]);
        let begin = level.partition_point(|row| row.time_ms < from);
        let end = level.partition_point(|row| row.time_ms <= to).max(begin);
        let rows: Vec<Row> = level.range(begin..end).copied().collect();
        let step = rows.len().div_ceil(points);
        match step {
            0 | 1 => rows,
            step => {
                let known = rows.chunk_by(|a, b| a.is_known() == b.is_known());
                let chunks = known.flat_map(|rows| rows.chunks(step));
                chunks.filter_map(Row::merge).collect()
            }
        }
    }

    /// The events from `from` to `to` that follow event number `after`.
    pub fn events(&self, from: u64, to: u64, after: Option<u64>) -> Vec<Event> {
        let asked = |event: &&Event| {
            (from..=to).contains(&event.time_ms) && after.is_none_or(|after| event.id > after)
        };
        self.events.iter().filter(asked).cloned().collect()
    }

    /// The garbage collections of all events that were ever added.
    pub fn collections(&self) -> Collections {
        self.collections
    }

    /// Number of the last event, if there was one.
    pub fn last_event(&self) -> Option<u64> {
        self.next_event.checked_sub(1)
    }
}

/// Appends a row to a level; the oldest one is removed if the level is full.
fn keep(level: &mut VecDeque<Row>, row: Row) {
    if level.len() == ROWS {
        level.pop_front();
    }
    level.push_back(row);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_stays_one_on_every_level() {
        let mut timeline = line(1003);
        timeline.interrupt(1003 * 250);
        for n in 0..1001u64 {
            let mut row = Row::new((n + 5000) * 250);
            row.set("eden_bytes", -1.0);
            timeline.push(row);
        }
        for level in &timeline.levels {
            let values: Vec<Option<f64>> = level.iter().map(|row| row.get("eden_bytes")).collect();
            let at = values.iter().position(Option::is_none).unwrap();
            assert!(values[..at].iter().all(|value| value.unwrap() >= 0.0));
            assert!(values[at + 1..].iter().all(|value| *value == Some(-1.0)));
            assert!(level.iter().is_sorted_by_key(|row| row.time_ms));
        }
        for points in [10, 100, 5000] {
            let rows = timeline.rows(0, u64::MAX, points);
            let unknown = rows.iter().filter(|row| !row.is_known()).count();
            assert_eq!(unknown, 1, "{points} points");
            let mixed = |row: &Row| row.get("eden_bytes").is_some_and(|v| v < 0.0 && v > -1.0);
            assert!(!rows.iter().any(mixed));
        }
    }

    fn line(count: u64) -> Timeline {
        let mut timeline = Timeline::default();
        for n in 0..count {
            let mut row = Row::new(n * 250);
            row.set("eden_bytes", n as f64);
            timeline.push(row);
        }
        timeline
    }

    #[test]
    fn memory_is_bounded_and_the_past_stays_in_coarser_rows() {
        let count = 200_000;
        let timeline = line(count);
        assert!(timeline.levels.iter().all(|level| level.len() <= ROWS));
        let all = timeline.rows(0, u64::MAX, 500);
        assert!(all.len() <= 500 && all.len() > 100, "{}", all.len());
        assert!(all[0].time_ms < 250 * 8 * 8 * 100);
        // A merged row is the mean of its rows.
        for pair in all.windows(2) {
            let (earlier, later) = (pair[0].get("eden_bytes"), pair[1].get("eden_bytes"));
            assert!(earlier < later);
        }
    }

    #[test]
    fn a_short_range_is_given_as_it_was_measured() {
        let timeline = line(1000);
        let rows = timeline.rows(1000, 2000, 100);
        let times: Vec<u64> = rows.iter().map(|row| row.time_ms).collect();
        assert_eq!(times, [1000, 1250, 1500, 1750, 2000]);
        assert_eq!(rows[0].get("eden_bytes"), Some(4.0));
        assert_eq!(rows[0].get("old_bytes"), None);
        assert!(timeline.rows(9000, 1000, 100).is_empty());
    }

    #[test]
    fn events_are_numbered_and_the_oldest_go_first() {
        let mut timeline = Timeline::default();
        for _ in 0..2 {
            let kind = EventKind::Gc {
                collector: "Copy".to_owned(),
                count: 3,
                pause_ms: 1.5,
                cause: String::new(),
            };
            timeline.mark(0, kind);
        }
        for n in 2..EVENTS as u64 + 5 {
            let text = n.to_string();
            timeline.mark(n, EventKind::Marker { text });
        }
        // Counters never fall.
        let collections = Collections {
            count: 6,
            pause_ms: 3.0,
        };
        assert_eq!(timeline.collections(), collections);
        let events = timeline.events(0, u64::MAX, None);
        assert_eq!((events.len(), events[0].id), (EVENTS, 5));
        assert_eq!(
            timeline.events(0, u64::MAX, Some(EVENTS as u64 + 3)).len(),
            1
        );
        assert_eq!(timeline.last_event(), Some(EVENTS as u64 + 4));
    }
}
