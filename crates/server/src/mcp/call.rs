//! A call: it is checked and passed to an explorer, and its answer is shortened. An error that a model can correct (a
//! wrong argument, an unknown class, an error in a query) is an answer that reports the error; any other error is an
//! error of the protocol.

use super::bound::bounded;
use super::message::{Fault, fault_text, short};
use super::subjects::{Dump, Subjects};
use super::table::{Of, Tool};
use super::tools::named;
use super::{program, resources};
use crate::reply::Form;
use heap_analysis::compare::diff::{DiffOptions, diff};
use heap_graph::Control;
use report::Provenance;
use report::profile::shown_metric;
use report::profile::top::top;
use requests::Params;
use requests::Stage;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a call checks whether its dump is open.
const PATIENCE: Duration = Duration::from_millis(50);

/// Checks between two progress messages.
const QUIET_LOOKS: u32 = 20;

/// Receives an increasing number, and the current phase.
type Progress<'p> = &'p dyn Fn(u32, &str);

/// Answers `tools/call`.
pub(super) fn answer(
    subjects: &Subjects,
    params: &Json,
    cancel: &Arc<AtomicBool>,
    progress: Progress<'_>,
) -> Result<Json, Fault> {
    let name = params.get("name").and_then(Json::as_str);
    let name = name.ok_or_else(|| Fault::params("name is missing: expected a tool"))?;
    let tool = named(name, subjects);
    let tool = tool.ok_or_else(|| Fault::params(format!("Unknown tool: {}", short(name))))?;
    let given = match params.get("arguments") {
        None | Some(Json::Null) => Map::new(),
        Some(Json::Object(given)) => given.clone(),
        Some(_) => return Err(Fault::params("arguments: expected an object")),
    };
    let answer = tool.read(&given).and_then(|pairs| {
        let dumps = subjects.dumps();
        let call = Call {
            dumps: &dumps,
            cancel,
            progress,
        };
        match tool.of {
            Of::Dumps => call.compare(&Params::new(pairs)),
            Of::Profile => profile(subjects, &Params::new(pairs)),
            Of::Program | Of::Command => program::answer(subjects, tool, pairs, cancel),
            Of::Dump => call.ask(tool, chosen(subjects, &dumps, given.get("dump"))?, pairs),
        }
    });
    // Only as text: with `structuredContent` in addition, many clients would give the model everything twice.
    let (text, is_error) = match answer {
        Ok(answer) => (answer.to_string(), false),
        Err(message) => (message, true),
    };
    Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
}

/// Answers `resources/read`.
pub(super) fn resource(
    subjects: &Subjects,
    params: &Json,
    cancel: &Arc<AtomicBool>,
    progress: Progress<'_>,
) -> Result<Json, Fault> {
    let uri = params.get("uri").and_then(Json::as_str);
    let uri = uri.ok_or_else(|| Fault::params("uri is missing: expected that of a resource"))?;
    let dumps = subjects.dumps();
    let dump = resources::find(&dumps, uri);
    let dump = dump.ok_or_else(|| Fault::no_resource(uri))?;
    let call = Call {
        dumps: &dumps,
        cancel,
        progress,
    };
    let report = call.wait(dump).and_then(|()| {
        let heap = dump.explorer.heap().map_err(|fault| fault_text(&fault))?;
        resources::report(heap, cancel)
    });
    let text = report.map_err(Fault::failed)?;
    let content = json!({ "uri": uri, "mimeType": resources::MARKDOWN, "text": text });
    Ok(json!({ "contents": [content] }))
}

/// The first screen of a profile.
fn profile(subjects: &Subjects, params: &Params) -> Result<Json, String> {
    let found = match params.get("profile") {
        None => subjects.profiles.first(),
        Some(name) => subjects.profiles.iter().find(|one| one.name == name),
    };
    let names = || {
        let names = subjects.profiles.iter().map(|one| one.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let found = found.ok_or_else(|| format!("no such profile; there are: {}", names()))?;
    let (profile, damage) = found.profile()?;
    let metric = shown_metric(profile, params.get("metric"))?;
    let metric = metric.ok_or("the profile has no counts")?;
    let limit = params.limit(20).map_err(|fault| fault_text(&fault))?;
    let answer = top(profile, metric, Some(limit));
    let mut answer = serde_json::to_value(&answer).map_err(|error| error.to_string())?;
    if !damage.is_empty() {
        answer["damage"] = json!(damage);
    }
    Ok(bounded(answer))
}

/// The dump that an argument names; by default the most recent one that was taken of a program, else the first.
fn chosen<'d>(
    subjects: &Subjects,
    dumps: &'d [Dump],
    name: Option<&Json>,
) -> Result<&'d Dump, String> {
    let found = match name {
        None | Some(Json::Null) if subjects.program.is_some() => dumps.last(),
        None | Some(Json::Null) => dumps.first(),
        Some(name) => dumps.iter().find(|d| name.as_str() == Some(&d.name)),
    };
    found.ok_or_else(|| no_such_dump(dumps))
}

fn no_such_dump(dumps: &[Dump]) -> String {
    let names: Vec<&str> = dumps.iter().map(|d| d.name.as_str()).collect();
    match names[..] {
        [] => "there is no dump yet; live_dump takes one".to_owned(),
        _ => format!("no such dump; there are: {}", names.join(", ")),
    }
}

struct Call<'c> {
    dumps: &'c [Dump],
    cancel: &'c Arc<AtomicBool>,
    progress: Progress<'c>,
}

impl Call<'_> {
    /// Waits until a dump is open and its referrers are known.
    fn wait(&self, dump: &Dump) -> Result<(), String> {
        let state = dump.explorer.state();
        let mut looks = 0;
        loop {
            {
                let now = state.borrow();
                match now.stage {
                    Stage::Ready => return Ok(()),
                    Stage::Failed => {
                        let error = now.error.clone().unwrap_or_default();
                        return Err(format!("{}: {error}", dump.name));
                    }
                    // Without referrers, all other views still work.
                    Stage::Indexed if now.error.is_some() => return Ok(()),
                    Stage::Opening | Stage::Indexed => {}
                }
                if looks % QUIET_LOOKS == QUIET_LOOKS - 1 {
                    // Progress must increase, but phases start again at zero, so the time is reported.
                    (self.progress)(looks, now.phase.unwrap_or("opening"));
                }
            }
            if self.cancel.load(Ordering::Relaxed) {
                return Err("cancelled".to_owned());
            }
            looks += 1;
            std::thread::sleep(PATIENCE);
        }
    }

    fn ask(
        &self,
        tool: &Tool,
        dump: &Dump,
        mut pairs: Vec<(String, String)>,
    ) -> Result<Json, String> {
        let view = match tool.name {
            "paths" => view_of_paths(&mut pairs)?,
            _ => tool.view,
        };
        self.wait(dump)?;
        let params = Params::new(pairs);
        let mut answer = self.view(dump, view, &params)?;
        if tool.name == "object" {
            let contents = self.view(dump, "contents", &params)?;
            if contents["rows"].as_array().is_some_and(|r| !r.is_empty()) {
                let more = &contents["more"];
                answer["contents"] =
                    json!({ "form": contents["form"], "rows": contents["rows"], "more": more });
            }
        }
        Ok(bounded(without_repeats(answer, tool.name == "overview")))
    }

    fn view(&self, dump: &Dump, view: &str, params: &Params) -> Result<Json, String> {
        let cancel = Arc::clone(self.cancel);
        let answer = dump.explorer.answer(view, params, Form::Json, cancel);
        let written = answer.map_err(|fault| fault_text(&fault))?;
        serde_json::from_slice(&written.bytes).map_err(|e| e.to_string())
    }

    fn compare(&self, params: &Params) -> Result<Json, String> {
        let named = |name: &str| {
            let found = |text| self.dumps.iter().find(|dump| dump.name == text);
            let given = params.get(name).map(found);
            given.map_or(Ok(None), |found| {
                found.map(Some).ok_or_else(|| no_such_dump(self.dumps))
            })
        };
        let (before, after) = (named("before")?, named("after")?);
        let differs = |from: Option<&Dump>, dump: &Dump| from.is_none_or(|it| it.name != dump.name);
        let before = before.or_else(|| self.dumps.iter().find(|dump| differs(after, dump)));
        let mut latest_first = self.dumps.iter().rev();
        let after = after.or_else(|| latest_first.find(|dump| differs(before, dump)));
        let (Some(before), Some(after)) = (before, after) else {
            return Err(match self.dumps {
                [_] => "there is only one dump; live_dump takes another".to_owned(),
                _ => no_such_dump(self.dumps),
            });
        };
        if Arc::ptr_eq(&before.explorer, &after.explorer) {
            return Err("before and after are the same dump".to_owned());
        }
        let mut heaps = Vec::new();
        for dump in [before, after] {
            self.wait(dump)?;
            heaps.push(dump.explorer.heap().map_err(|fault| fault_text(&fault))?);
        }
        let top = params.limit(20).map_err(|fault| fault_text(&fault))?;
        let options = DiffOptions {
            top: Some(top),
            ..DiffOptions::default()
        };
        let sides = [
            (before.name.clone(), heaps[0].as_ref()),
            (after.name.clone(), heaps[1].as_ref()),
        ];
        let control = Control {
            progress: &|_| {},
            cancel: self.cancel,
        };
        let answer = diff(&sides, &options, &control).map_err(|e| e.to_string())?;
        let mut bytes = Vec::new();
        let provenance = Provenance::of(heaps[1].summary());
        report::json::write(&mut bytes, &answer, &provenance).map_err(|e| e.to_string())?;
        let answer = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
        Ok(bounded(without_repeats(answer, false)))
    }
}

/// The view for the arguments of `paths`: to one object, or merged to those of a set.
fn view_of_paths(pairs: &mut Vec<(String, String)>) -> Result<&'static str, String> {
    let has_id = pairs.iter().any(|(name, _)| name == "id");
    let has_set = pairs.iter().any(|(name, _)| name == "set");
    match (has_id, has_set) {
        (true, false) => Ok("paths"),
        (false, true) => {
            // Merged paths are a single tree.
            pairs.retain(|(name, _)| name != "count");
            Ok("merged_paths")
        }
        (true, true) => Err("give id or set, not both".to_owned()),
        (false, false) => Err("id or set is missing: an object id, a class or a set".to_owned()),
    }
}

/// Removes fields that are the same in every answer, because the overview reports them, and the damage if there is
/// none.
fn without_repeats(mut answer: Json, whole: bool) -> Json {
    if let (false, Json::Object(fields)) = (whole, &mut answer) {
        fields.remove("layout");
        fields.remove("strength");
        if fields.get("damaged") == Some(&json!(false)) {
            fields.remove("damaged");
            fields.remove("diagnostics");
            fields.remove("omitted_diagnostics");
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_answer() {
        let text = "{\"share\":31.245270191439438}";
        let answer: Json = serde_json::from_str(text).expect("JSON");
        assert_eq!(answer.to_string(), text);
    }
}
