//! The views of a watched program: each by its name, in the requested format.

use super::describe;
use super::downloads::in_form;
use crate::reply::Content;
use live_session::answers::{advice, cpu, objects, source, tables};
use live_session::recording::state::Live;
use profile::write;
use report::profile::Form;
use requests::Fault;
use requests::Params;

/// The most points of a timeline.
const POINTS: usize = 1200;

/// Answers a view by its name.
///
/// # Errors
/// When there is no such view, a parameter is wrong, or there are no data yet.
pub(crate) fn answer(live: &Live, view: &str, params: &Params) -> Result<Content, Fault> {
    if let Some(view) = describe::named(view) {
        view.check(params)?;
    }
    Ok(match view {
        "timeline" => {
            let range = tables::range(params)?;
            let after = match params.get("after") {
                Some(_) => Some(params.number("after", 0)? as u64),
                None => None,
            };
            let points = params.number("points", POINTS)?.min(20_000);
            Content::json(&live.timeline(range.from, range.to, points, after))
        }
        "allocations" => in_form(params, "allocations", &tables::allocations(live, params)?)?,
        "classes" => in_form(params, "classes", &tables::classes(live, params)?)?,
        "references" => in_form(params, "references", &tables::references(live, params)?)?,
        "instances" => in_form(params, "instances", &objects::list(live, params)?)?,
        "groups" => in_form(params, "groups", &objects::groups(live, params)?)?,
        "growth" => in_form(params, "growth", &advice::growth(live, params)?)?,
        "savings" => in_form(params, "savings", &advice::savings(live, params)?)?,
        "compare" => in_form(params, "compare", &tables::compare(live, params)?)?,
        "saved" => return saved_file(live, params),
        "options" => Content::json(&tables::options(live)),
        "source" => Content::json(&source::of(live, params)?),
        "stacks" => Content::json(&tables::stacks(live, params)?),
        "cpu" => Content::json(&cpu::answer(live, params)?),
        "profile" => return profile(live, params),
        _ => return Err(Fault::not_found("there is no such view")),
    })
}

/// A saved table, as it is in its file.
fn saved_file(live: &Live, params: &Params) -> Result<Content, Fault> {
    let media = match params.get("form") {
        None | Some("json") => "application/json",
        Some("csv") => "text/csv; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some(other) => {
            return Err(Fault::bad(format!(
                "form={other}: expected json, csv or html"
            )));
        }
    };
    let number = params.number("number", 0)?;
    let none = || Fault::not_found(format!("number={number}: there is no such saved table"));
    let saved = live.saved_tables.get(number).ok_or_else(none)?;
    let form = params.get("form").unwrap_or("json");
    let path = saved.file(form);
    let bytes = std::fs::read(&path);
    let bytes = bytes.map_err(|error| Fault::failed(format!("{}: {error}", path.display())))?;
    Ok(Content::new(media, bytes).kept_as(&path))
}

fn profile(live: &Live, params: &Params) -> Result<Content, Fault> {
    let (form, media) = match params.get("form") {
        None | Some("flamegraph") => (Form::Html, "text/html; charset=utf-8"),
        Some("pprof") => (Form::Plain(write::Form::Pprof), "application/octet-stream"),
        Some("collapsed") => (
            Form::Plain(write::Form::Collapsed),
            "text/plain; charset=utf-8",
        ),
        Some("speedscope") => (Form::Speedscope, "application/json"),
        Some("jfr") => (Form::Plain(write::Form::Jfr), "application/octet-stream"),
        Some(other) => {
            return Err(Fault::bad(format!(
                "form={other}: expected flamegraph, pprof, collapsed, speedscope or jfr"
            )));
        }
    };
    let bytes = match params.get("heap") {
        Some("cpu") => cpu::rendered(live, params, form)?,
        _ => tables::profile(live, params, form)?,
    };
    // The page has its own script. The sandbox gives it an opaque origin without access to other data.
    let policy = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
                  style-src 'unsafe-inline'";
    Ok(Content {
        policy: (form == Form::Html).then_some(policy),
        ..Content::new(media, bytes)
    })
}
