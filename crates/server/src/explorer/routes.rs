//! Addresses of the explorer. It can be mounted anywhere: every link in it is relative.

use super::history::Asked as AskedQuery;
use super::notes::Note;
use super::state::Explorer;
use super::{command, plain, query};
use crate::reply::{Form, Refused, Written, json_bytes, typed};
use crate::stop::Stop;
use crate::{assets, events};
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Extension, Path, Query, State};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use requests::Fault;
use requests::Params;
use serde::Serialize;
use std::sync::Arc;

type Shared = State<Arc<Explorer>>;
type Asked = Query<Vec<(String, String)>>;

/// The largest note in bytes.
const MOST_BODY: usize = 64 << 10;

/// The pages and the API of one dump.
pub fn router(explorer: Arc<Explorer>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/assets/{name}", get(assets::serve))
        .route("/api/v1/state", get(state))
        .route("/api/v1/events", get(follow))
        .route("/api/v1/notes", get(notes).post(add_note))
        .route("/api/v1/queries", get(queries).post(add_query))
        .route("/api/v1/command/{view}", get(as_command))
        .route("/api/v1/{view}", get(view))
        .route("/plain/", get(plain_index))
        .route("/plain/{view}", get(plain_view))
        .fallback(|| async { Refused(Fault::not_found("nothing is at this address")) })
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .with_state(explorer)
}

async fn page(State(explorer): Shared) -> Response {
    assets::page(&explorer.state().borrow().file, "app.js", "plain/")
}

async fn state(State(explorer): Shared) -> Response {
    let state = explorer.state().borrow().clone();
    typed("application/json", json_bytes(&state))
}

async fn follow(State(explorer): Shared, Extension(stop): Extension<Stop>) -> Response {
    events::follow("state", explorer.state(), stop)
}

/// Answers on a blocking thread. A panic there becomes a fault and does not end the server. The work ends when the
/// browser no longer waits for it, unless others wait for the same answer.
async fn answered(
    explorer: Arc<Explorer>,
    view: String,
    params: Params,
    form: Form,
) -> Result<Arc<Written>, Fault> {
    let waiting = query::Waiting::default();
    let cancel = waiting.cancel();
    let work = tokio::task::spawn_blocking(move || explorer.answer(&view, &params, form, cancel));
    let answer = work.await;
    drop(waiting);
    answer.unwrap_or_else(|_| Err(Fault::failed("the answer could not be made; this is a bug")))
}

/// JSON unless CSV is requested.
fn form_of(asked: &[(String, String)]) -> Result<Form, Fault> {
    match asked.iter().find(|(name, _)| name == "form") {
        None => Ok(Form::Json),
        Some((_, form)) if form == "json" => Ok(Form::Json),
        Some((_, form)) if form == "csv" => Ok(Form::Csv),
        Some((_, form)) => Err(Fault::bad(format!("form={form}: expected json or csv"))),
    }
}

async fn view(
    State(explorer): Shared,
    Path(view): Path<String>,
    Query(asked): Asked,
) -> Result<Response, Refused> {
    let form = form_of(&asked)?;
    let params = Params::new(asked.into_iter().filter(|(name, _)| name != "form"));
    let written = answered(explorer, view.clone(), params, form).await?;
    Ok(written.respond(&view))
}

async fn as_command(
    State(explorer): Shared,
    Path(view): Path<String>,
    Query(asked): Asked,
) -> Result<Response, Refused> {
    let origin = command::Origin::of(&explorer);
    let answer = command::of(&origin, &view, &Params::new(asked))?;
    Ok(typed("application/json", json_bytes(&answer)))
}

#[derive(Serialize)]
struct NoteList {
    schema: &'static str,
    notes: Vec<Note>,
}

async fn notes(State(explorer): Shared, Query(asked): Asked) -> Result<Response, Refused> {
    let notes = explorer.notes.all();
    if form_of(&asked)? == Form::Csv {
        let head = report::csv::line(["view", "title", "text"]);
        let rows = notes
            .iter()
            .map(|n| report::csv::line([&n.view, &n.title, &n.text]));
        let bytes = std::iter::once(head)
            .chain(rows)
            .collect::<String>()
            .into_bytes();
        let form = Form::Csv;
        return Ok(Written { form, bytes }.respond("notes"));
    }
    Ok(note_list(notes))
}

fn note_list(notes: Vec<Note>) -> Response {
    let answer = NoteList {
        schema: "tenure.notes/1",
        notes,
    };
    typed("application/json", json_bytes(&answer))
}

async fn add_note(
    State(explorer): Shared,
    note: Result<Json<Note>, JsonRejection>,
) -> Result<Response, Refused> {
    let Json(note) = note.map_err(|error| Fault::bad(error.body_text()))?;
    explorer.notes.add(&note)?;
    Ok(note_list(explorer.notes.all()))
}

#[derive(Serialize)]
struct QueryList {
    schema: &'static str,
    queries: Vec<AskedQuery>,
}

async fn queries(State(explorer): Shared) -> Response {
    let answer = QueryList {
        schema: "tenure.queries/1",
        queries: explorer.history.all(),
    };
    typed("application/json", json_bytes(&answer))
}

async fn add_query(
    State(explorer): Shared,
    asked: Result<Json<AskedQuery>, JsonRejection>,
) -> Result<Response, Refused> {
    let Json(asked) = asked.map_err(|error| Fault::bad(error.body_text()))?;
    explorer.history.add(&asked)?;
    Ok(queries(State(explorer)).await)
}

async fn plain_index(State(explorer): Shared) -> Response {
    plain::index(&explorer)
}

async fn plain_view(
    State(explorer): Shared,
    Path(view): Path<String>,
    Query(asked): Asked,
) -> Response {
    let params = Params::new(asked);
    match answered(explorer, view.clone(), params, Form::Plain).await {
        Ok(written) => plain::page(&view, &String::from_utf8_lossy(&written.bytes)),
        Err(fault) => plain::fault(&view, &fault),
    }
}
