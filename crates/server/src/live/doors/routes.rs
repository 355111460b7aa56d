//! Addresses of a watched program. Links are relative, so it can be mounted anywhere.

use super::commands::carry_out;
use super::downloads::{as_file, respond};
use super::{answers, cpu, describe, objects, plain, pprof, prometheus, servlet, source};
use crate::explorer::params::Params;
use crate::live::recording::state::Live;
use crate::reply::{Fault, json_bytes, typed};
use crate::stop::Stop;
use crate::{assets, events, explorer};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension, Path, Query, Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use report::profile::Form;
use serde::Serialize;
use std::sync::Arc;
use tower::ServiceExt;

type Shared = State<Arc<Live>>;
type Asked = Query<Vec<(String, String)>>;

/// Points of a timeline.
const POINTS: usize = 1200;

/// The pages and the API of one program.
pub fn router(live: Arc<Live>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/assets/{name}", get(assets::serve))
        .route("/api/v1/state", get(state))
        .route("/api/v1/events", get(follow))
        .route("/api/v1/commands/{name}", post(command))
        .route("/api/v1/{view}", get(view))
        .route("/metrics", get(metrics))
        .route("/debug/pprof/{name}", get(pprof_profile))
        .route("/profiler", get(old_profiler))
        .route("/plain/", get(plain_index))
        .route("/plain/commands/{name}", post(plain_command))
        .route("/plain/{view}", get(plain_view))
        .route("/dumps/{number}/", any(dump_root))
        .route("/dumps/{number}/{*rest}", any(dump))
        .fallback(|| async { Fault::not_found("nothing is at this address") })
        .layer(DefaultBodyLimit::max(64 << 10))
        .with_state(live)
}

async fn page(State(live): Shared) -> Response {
    let (name, pid) = {
        let status = live.status();
        let status = status.borrow();
        (status.name.clone(), status.pid)
    };
    assets::page(&format!("{name} {pid}"), "live.js", "plain/")
}

fn json(value: &impl Serialize) -> Response {
    typed("application/json", json_bytes(value))
}

async fn state(State(live): Shared) -> Response {
    let status = live.status().borrow().clone();
    json(&status)
}

async fn follow(State(live): Shared, Extension(stop): Extension<Stop>) -> Response {
    events::follow("state", live.status(), stop)
}

async fn metrics(State(live): Shared) -> Response {
    typed(
        "text/plain; version=0.0.4; charset=utf-8",
        prometheus::text(&live).into_bytes(),
    )
}

/// Answers on a thread that may take its time.
async fn answered(
    live: Arc<Live>,
    work: impl FnOnce(&Arc<Live>) -> Result<Response, Fault> + Send + 'static,
) -> Result<Response, Fault> {
    let work = tokio::task::spawn_blocking(move || work(&live));
    work.await
        .unwrap_or_else(|_| Err(Fault::failed("the answer could not be made; this is a bug")))
}

async fn view(
    State(live): Shared,
    Path(view): Path<String>,
    Query(asked): Asked,
) -> Result<Response, Fault> {
    let params = Params::new(asked);
    answered(live, move |live| answer(live, &view, &params)).await
}

fn answer(live: &Arc<Live>, view: &str, params: &Params) -> Result<Response, Fault> {
    if let Some(view) = describe::named(view) {
        view.check(params)?;
    }
    Ok(match view {
        "timeline" => {
            let range = answers::range(params)?;
            let after = params.get("after").and_then(|text| text.parse().ok());
            let points = params.number("points", POINTS)?.min(20_000);
            json(&live.timeline(range.from, range.to, points, after))
        }
        "allocations" => respond(params, "allocations", &answers::allocations(live, params)?)?,
        "classes" => respond(params, "classes", &answers::classes(live, params)?)?,
        "references" => respond(params, "references", &answers::references(live, params)?)?,
        "compare" => respond(params, "compare", &answers::compare(live, params)?)?,
        "saved" => return saved_file(live, params),
        "options" => json(&answers::options(live)),
        "source" => json(&source::of(live, params)?),
        "stacks" => json(&answers::stacks(live, params)?),
        "cpu" => json(&cpu::answer(live, params)?),
        "advice" => json(&answers::what_to_fix(live, answers::range(params)?)),
        "profile" => return profile(live, params),
        "instances" => json(&objects::list(live, params)?),
        "groups" => json(&objects::groups(live, params)?),
        _ => return Err(Fault::not_found("there is no such view")),
    })
}

/// A table that was kept, as it lies in its file.
fn saved_file(live: &Live, params: &Params) -> Result<Response, Fault> {
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
    let none = || Fault::not_found(format!("number={number}: no such table was kept"));
    let saved = live.shelf.get(number).ok_or_else(none)?;
    let form = params.get("form").unwrap_or("json");
    let path = saved.file(form);
    let bytes = std::fs::read(&path);
    let bytes = bytes.map_err(|error| Fault::failed(format!("{}: {error}", path.display())))?;
    Ok(as_file(typed(media, bytes), &path))
}

fn profile(live: &Live, params: &Params) -> Result<Response, Fault> {
    let (form, media) = match params.get("form") {
        None | Some("flamegraph") => (Form::Html, "text/html; charset=utf-8"),
        Some("pprof") => (Form::Pprof, "application/octet-stream"),
        Some("collapsed") => (Form::Collapsed, "text/plain; charset=utf-8"),
        Some("speedscope") => (Form::Speedscope, "application/json"),
        Some("jfr") => (Form::Jfr, "application/octet-stream"),
        Some(other) => {
            return Err(Fault::bad(format!(
                "form={other}: expected flamegraph, pprof, collapsed, speedscope or jfr"
            )));
        }
    };
    let bytes = match params.get("heap") {
        Some("cpu") => cpu::rendered(live, params, form)?,
        _ => answers::profile(live, params, form)?,
    };
    let mut response = typed(media, bytes);
    if form == Form::Html {
        // The page carries its own script. In a sandbox it is of no origin and reaches nothing.
        let policy = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
                      style-src 'unsafe-inline'";
        let value = axum::http::HeaderValue::from_static(policy);
        response
            .headers_mut()
            .insert(header::CONTENT_SECURITY_POLICY, value);
    }
    Ok(response)
}

/// As `go tool pprof` and scrapers ask.
async fn pprof_profile(
    State(live): Shared,
    Path(name): Path<String>,
    Query(asked): Asked,
) -> Result<Response, Fault> {
    let params = Params::new(asked);
    answered(live, move |live| {
        let bytes = pprof::answer(live, &name, &params)?;
        Ok(typed("application/octet-stream", bytes))
    })
    .await
}

/// What a command did.
#[derive(Serialize)]
struct Done {
    schema: &'static str,
    command: String,
    dump: Option<usize>,
}

async fn command(
    State(live): Shared,
    Path(name): Path<String>,
    Query(asked): Asked,
) -> Result<Response, Fault> {
    let params = Params::new(asked);
    answered(live, move |live| {
        let dump = carry_out(live, &name, &params)?;
        Ok(json(&Done {
            schema: "tenure.live.done/1",
            command: name,
            dump,
        }))
    })
    .await
}

async fn old_profiler(State(live): Shared, Query(asked): Asked) -> Result<Response, Fault> {
    let params = Params::new(asked);
    answered(live, move |live| servlet::answer(live, &params)).await
}

async fn plain_index(State(live): Shared) -> Result<Response, Fault> {
    answered(live, |live| Ok(plain::index(live))).await
}

async fn plain_view(
    State(live): Shared,
    Path(view): Path<String>,
    Query(asked): Asked,
) -> Response {
    let params = Params::new(asked);
    let done = answered(live, move |live| plain::view(live, &view, &params)).await;
    done.unwrap_or_else(|fault| plain::fault(&fault))
}

/// A form without JavaScript sends its fields as the body.
async fn plain_command(
    State(live): Shared,
    Path(name): Path<String>,
    Query(mut asked): Asked,
    body: String,
) -> Response {
    asked.extend(form_urlencoded::parse(body.as_bytes()).into_owned());
    let params = Params::new(asked);
    let done = answered(live, move |live| {
        carry_out(live, &name, &params)?;
        Ok((StatusCode::SEE_OTHER, [(header::LOCATION, "../")]).into_response())
    });
    done.await.unwrap_or_else(|fault| plain::fault(&fault))
}

async fn dump_root(state: Shared, Path(number): Path<String>, request: Request) -> Response {
    dump(state, Path((number, String::new())), request).await
}

/// Hands a request on to the explorer of a dump: its number, or `last`.
async fn dump(
    State(live): Shared,
    Path((number, _)): Path<(String, String)>,
    request: Request,
) -> Response {
    let dump = match number.as_str() {
        "last" => live.dumps.last(),
        number => number
            .parse()
            .ok()
            .and_then(|number| live.dumps.get(number)),
    };
    let Some(dump) = dump else {
        return Fault::not_found("there is no such heap dump").into_response();
    };
    let query = request
        .uri()
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    // As it came, escapes and all: `/dumps/NUMBER/REST`.
    let rest = request.uri().path().splitn(4, '/').nth(3).unwrap_or("");
    let Ok(uri) = format!("/{rest}{query}").parse::<Uri>() else {
        return Fault::bad("this address cannot be read").into_response();
    };
    // A new request: the old one remembers the path of this router.
    let (parts, body) = request.into_parts();
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.headers_mut() = parts.headers;
    *request.uri_mut() = uri;
    if let Some(stop) = parts.extensions.get::<Stop>() {
        request.extensions_mut().insert(stop.clone());
    }
    let Ok(response) = explorer::router(Arc::clone(&dump.explorer))
        .oneshot(request)
        .await;
    response
}
