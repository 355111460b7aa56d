//! Addresses of a watched program. Links are relative, so it can be mounted anywhere.

use super::{plain, prometheus, servlet, views};
use crate::live::explorer_of;
use crate::reply::{Content, Refused, typed};
use crate::stop::Stop;
use crate::{assets, events, explorer};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension, Path, Query, Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use live_session::answers::pprof;
use live_session::carry_out;
use live_session::recording::state::Live;
use requests::Fault;
use requests::Params;
use serde::Serialize;
use std::sync::Arc;
use tower::ServiceExt;

type Shared = State<Arc<Live>>;
type Asked = Query<Vec<(String, String)>>;

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
        .fallback(|| async { Refused(Fault::not_found("nothing is at this address")) })
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

async fn state(State(live): Shared) -> Content {
    let status = live.status().borrow().clone();
    Content::json(&status)
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

/// Answers on a blocking thread.
async fn answered<T: Send + 'static>(
    live: Arc<Live>,
    work: impl FnOnce(&Arc<Live>) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Refused> {
    let work = tokio::task::spawn_blocking(move || work(&live));
    work.await
        .unwrap_or_else(|_| Err(Fault::failed("the answer could not be made; this is a bug")))
        .map_err(Refused)
}

async fn view(
    State(live): Shared,
    Path(view): Path<String>,
    Query(asked): Asked,
) -> Result<Content, Refused> {
    let params = Params::new(asked);
    answered(live, move |live| views::answer(live, &view, &params)).await
}

/// The address that `go tool pprof` and scrapers request.
async fn pprof_profile(
    State(live): Shared,
    Path(name): Path<String>,
    Query(asked): Asked,
) -> Result<Content, Refused> {
    let params = Params::new(asked);
    answered(live, move |live| {
        let bytes = pprof::answer(live, &name, &params)?;
        Ok(Content::new("application/octet-stream", bytes))
    })
    .await
}

/// The result of a command.
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
) -> Result<Content, Refused> {
    let params = Params::new(asked);
    answered(live, move |live| {
        let dump = carry_out(live, &name, &params)?;
        Ok(Content::json(&Done {
            schema: "tenure.live.done/1",
            command: name,
            dump,
        }))
    })
    .await
}

async fn old_profiler(State(live): Shared, Query(asked): Asked) -> Result<Response, Refused> {
    let params = Params::new(asked);
    answered(live, move |live| servlet::answer(live, &params)).await
}

async fn plain_index(State(live): Shared) -> Result<Response, Refused> {
    answered(live, |live| Ok(plain::index(live))).await
}

async fn plain_view(
    State(live): Shared,
    Path(view): Path<String>,
    Query(asked): Asked,
) -> Response {
    let params = Params::new(asked);
    let done = answered(live, move |live| plain::view(live, &view, &params)).await;
    done.unwrap_or_else(|Refused(fault)| plain::fault(&fault))
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
    done.await
        .unwrap_or_else(|Refused(fault)| plain::fault(&fault))
}

async fn dump_root(state: Shared, Path(number): Path<String>, request: Request) -> Response {
    dump(state, Path((number, String::new())), request).await
}

/// Passes a request on to the explorer of a dump, given by its number or `last`.
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
        return Refused(Fault::not_found("there is no such heap dump")).into_response();
    };
    let query = request
        .uri()
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    // The path as received, with its escapes: `/dumps/NUMBER/REST`.
    let rest = request.uri().path().splitn(4, '/').nth(3).unwrap_or("");
    let Ok(uri) = format!("/{rest}{query}").parse::<Uri>() else {
        return Refused(Fault::bad("this address cannot be read")).into_response();
    };
    // A new request, because the old one has the path parameters of this router.
    let (parts, body) = request.into_parts();
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.headers_mut() = parts.headers;
    *request.uri_mut() = uri;
    if let Some(stop) = parts.extensions.get::<Stop>() {
        request.extensions_mut().insert(stop.clone());
    }
    let Some(explorer) = explorer_of(&dump) else {
        return Refused(Fault::failed("this dump has no pages")).into_response();
    };
    let Ok(response) = explorer::router(explorer).oneshot(request).await;
    response
}
