//! A call about a running program: a view of it, its state, or a command to it.

use super::bound::bounded;
use super::message::fault_text;
use super::subjects::{Dump, Subjects};
use super::table::{Of, RECORD, SAMPLE_CPU, STATE, Tool};
use crate::live::{answer as view, explorer_of};
use live_analysis::metrics::METRICS;
use live_session::{Live, carry_out};
use requests::Params;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a waiting call checks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// Answers a tool.
///
/// # Errors
/// A sentence that describes what is wrong, or why the program refuses.
pub(super) fn answer(
    subjects: &Subjects,
    tool: &Tool,
    pairs: Vec<(String, String)>,
    cancel: &AtomicBool,
) -> Result<Json, String> {
    let live = subjects.program.as_ref().ok_or("no program is watched")?;
    let params = Params::new(pairs);
    match tool.of {
        Of::Command => order(subjects, live, tool, &params),
        _ if tool.name == STATE => {
            wait(params.number("wait", 0).unwrap_or(0), cancel)?;
            Ok(state(live))
        }
        _ => {
            // Requests current data from the agent. If it does not answer, the data it sent before are shown.
            let silence = live.snapshot().err();
            let content = view(live, tool.view, &params).map_err(|fault| fault_text(&fault))?;
            let answer = serde_json::from_slice(&content.bytes).map_err(|e| e.to_string())?;
            Ok(noted(bounded(without_columns(answer)), silence.as_deref()))
        }
    }
}

/// Waits this many seconds.
fn wait(seconds: usize, cancel: &AtomicBool) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(seconds as u64);
    while Instant::now() < until {
        if cancel.load(Ordering::Relaxed) {
            return Err("cancelled".to_owned());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Runs a command in the program.
fn order(
    subjects: &Subjects,
    live: &Arc<Live>,
    tool: &Tool,
    params: &Params,
) -> Result<Json, String> {
    let mode = params.get("mode");
    let (name, params) = match (tool.name, mode) {
        (RECORD, Some("off")) => ("stop", Params::default()),
        (RECORD, None) if !is_connected(live) => {
            (tool.view, params.clone().with("mode", "sampled"))
        }
        (SAMPLE_CPU, mode) => {
            let on = if mode == Some("off") { "" } else { "1" };
            (tool.view, Params::default().with("on", on))
        }
        _ => (tool.view, params.clone()),
    };
    let dump = carry_out(live, name, &params).map_err(|fault| fault_text(&fault))?;
    let Some(number) = dump else {
        return Ok(state(live));
    };
    let taken = live.dumps.get(number).ok_or("the dump is gone")?;
    let explorer = explorer_of(&taken);
    let is_it = |dump: &Dump| {
        explorer
            .as_ref()
            .is_some_and(|it| Arc::ptr_eq(&dump.explorer, it))
    };
    let name = subjects
        .dumps()
        .into_iter()
        .find(is_it)
        .map(|dump| dump.name);
    let info = live
        .dumps
        .list()
        .into_iter()
        .find(|info| info.number == number);
    let mut answer = json!(info);
    // The name that the other tools accept for it.
    answer["dump"] = json!(name);
    Ok(answer)
}

/// Whether an agent in the program is connected, which keeps its mode.
fn is_connected(live: &Live) -> bool {
    let recording = live.status().borrow().recording.clone();
    recording.is_some_and(|it| it.connected)
}

/// The state of the program, with the most recent measurements by name.
fn state(live: &Live) -> Json {
    let status = live.status().borrow().clone();
    let mut answer = json!(status);
    if let (Some(row), Json::Object(fields)) = (status.rows.last(), &mut answer) {
        let known = METRICS.iter().filter_map(|metric| {
            let value = row.get(metric.name)?;
            Some((metric.name.to_owned(), json!(value)))
        });
        fields.insert(
            "measured".to_owned(),
            Json::Object(known.collect::<Map<_, _>>()),
        );
    }
    if let Json::Object(fields) = &mut answer {
        fields.remove("rows");
    }
    bounded(answer)
}

/// Removes the descriptions of columns: they are for pages, and names suffice for a model.
fn without_columns(mut answer: Json) -> Json {
    if let Json::Object(fields) = &mut answer {
        fields.remove("columns");
    }
    answer
}

/// Reports that the agent has sent no current data, and why.
fn noted(mut answer: Json, silence: Option<&str>) -> Json {
    if let (Some(why), Json::Object(fields)) = (silence, &mut answer) {
        let text = format!("{why}: the data are those that it sent before");
        fields.insert("stale".to_owned(), json!(text));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reports_that_its_data_are_old() {
        let answer = json!({ "rows": [] });
        assert_eq!(noted(answer.clone(), None), answer);
        let old = noted(answer, Some("the agent has not answered"));
        let text = "the agent has not answered: the data are those that it sent before";
        assert_eq!(old, json!({ "rows": [], "stale": text }));
    }
}
