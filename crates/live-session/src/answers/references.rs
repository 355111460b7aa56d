//! Global references of native code, with the objects that they keep alive in the last heap dump that has this data.

use crate::dumps::list::Dump;
use crate::recording::state::Live;
use live_analysis::range::Range;
use live_analysis::references::{self, Row};
use regex::Regex;
use requests::Fault;

/// The last open dump of a time that has the references of native code.
fn known(live: &Live, time_ms: u64) -> Option<(usize, std::sync::Arc<Dump>)> {
    let dumps = live.dumps.of_time(time_ms).into_iter().enumerate().rev();
    let mut open = dumps.filter(|(_, dump)| dump.knows_references());
    open.find(|(_, dump)| dump.opened.heap().is_ok())
        .map(|(n, dump)| (n + 1, dump))
}

/// All matching rows with references created or deleted in the range, and the number of the dump that their objects are
/// from.
///
/// # Errors
/// References are not recorded.
pub fn rows(
    live: &Live,
    range: Range,
    pattern: Option<&Regex>,
) -> Result<(Option<usize>, Vec<Row>), Fault> {
    let dump = known(live, range.to);
    let none = || {
        Fault::not_found(
            "no JNI references have been recorded; a recording brings them every 2 seconds",
        )
    };
    let mut rows = live.recorded(|recorded| {
        let profile = recorded.profile().ok_or_else(none)?;
        let table = profile.references.as_ref().ok_or_else(none)?;
        Ok::<_, Fault>(references::rows(profile, table, &recorded.made, range))
    })?;
    if let Some((_, dump)) = &dump {
        let name = |id| {
            live.recorded(|recorded| match recorded.profile() {
                Some(profile) => profile.names.get(id).to_owned(),
                None => String::new(),
            })
        };
        references::add_holdings(&mut rows, dump.holdings(&name)?);
    }
    let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    if let Some(pattern) = pattern {
        let frame = |row: &Row| row.stack.iter().any(|frame| pattern.is_match(frame));
        rows.retain(|row| pattern.is_match(&row.name) || frame(row));
    }
    Ok((dump.map(|(number, _)| number), rows))
}
