//! What to fix: growing sites of a recording, and possible savings in a heap dump.

use super::tables::{covered, pattern, range, table};
use crate::recording::state::Live;
use live_analysis::growth::{self, FEWEST_COLLECTIONS, Growing};
use live_analysis::savings::{self, Saving};
use live_analysis::table::Table;
use live_analysis::timeline::EventKind;
use requests::Fault;
use requests::Params;

/// The sites that grow from one garbage collection of the range to the next.
///
/// # Errors
/// A parameter is wrong.
pub fn growth(live: &Live, params: &Params) -> Result<Table<Growing>, Fault> {
    let (range, pattern) = (range(params)?, pattern(params)?);
    let events = live.timeline(range.from, range.to, 2, None).events;
    let collections = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Gc { .. }));
    let times: Vec<u64> = collections.map(|event| event.time_ms).collect();
    let (mut rows, is_recorded) = live.recorded(|recorded| match recorded.profile() {
        Some(profile) => (growth::growing(profile, &recorded.history, &times), true),
        None => (Vec::new(), false),
    });
    if let Some(pattern) = pattern {
        let frames = |row: &Growing| row.stack.iter().any(|frame| pattern.is_match(frame));
        rows.retain(|row| pattern.is_match(&row.class) || frames(row));
    }
    let mut table = table(params, "recording", rows)?;
    if !is_recorded || times.len() < FEWEST_COLLECTIONS {
        let note = "growth is known after three garbage collections with a recording";
        table.notes.push(note.to_owned());
    }
    Ok(Table {
        range: covered(range),
        collections: Some(times.len()),
        ..table
    })
}

/// The possible savings in the last dump of the range: `by` class and stack, or kind.
///
/// # Errors
/// A parameter is wrong.
pub fn savings(live: &Live, params: &Params) -> Result<Table<Saving>, Fault> {
    let (range, pattern) = (range(params)?, pattern(params)?);
    let is_by_kind = params.one_of("by", &savings::GROUPS)? == Some("kind");
    let dumps = live.dumps.of_time(range.to);
    let mut open = dumps.iter().enumerate().rev();
    let found = open.find_map(|(n, dump)| Some((n + 1, dump.savings().ok()?)));
    let mut rows = match found {
        Some((_, savings)) if is_by_kind => savings.kinds.clone(),
        Some((_, savings)) => savings.sites.clone(),
        None => Vec::new(),
    };
    if let Some(pattern) = pattern {
        let frames = |row: &Saving| row.stack.iter().any(|frame| pattern.is_match(frame));
        rows.retain(|row| pattern.is_match(&row.name) || frames(row));
    }
    let mut table = table(params, "dump", rows)?;
    if found.is_none() {
        let note = "possible savings are known after a heap dump";
        table.notes.push(note.to_owned());
    }
    Ok(Table {
        range: covered(range),
        dump: found.map(|(number, _)| number),
        ..table
    })
}
