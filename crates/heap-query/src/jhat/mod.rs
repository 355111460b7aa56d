//! The OQL of jhat and VisualVM: JavaScript over the heap, run by QuickJS without any access to
//! files, network or modules, with limits on time and memory.
//!
//! In reading order: `parse` (the query around the JavaScript), `prelude.js` (jhat's objects and functions, in
//! JavaScript), `host` (the functions that these call).

mod host;
mod parse;

use crate::cell::{Cell, Cut};
use crate::error::QueryError;
use crate::limits::size;
use crate::shared::Env;
use crate::sink::Sink;
use heap_graph::ObjIdx;
use host::{Given, Host};
use parse::{Query, parse};
use rquickjs::function::Rest;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Object, Runtime, Value};
use std::rc::Rc;

/// Stack limit of JavaScript calls in bytes: well below the smallest stack of a thread.
const STACK: usize = 512 << 10;

/// Runs a query.
pub(crate) fn run(env: &Env, text: &str, sink: &mut dyn Sink) -> Result<Option<Cut>, QueryError> {
    let query = parse(text)?;
    let host = Rc::new(Host::new(env));
    if let Query::Each {
        class, class_at, ..
    } = &query
        && host.classes(class).is_empty()
    {
        let message = format!("there is no class {class} in this dump");
        return Err(QueryError::at(text, *class_at, message));
    }
    let failed = |e: rquickjs::Error| QueryError::Run(e.to_string());
    let runtime = Runtime::new().map_err(failed)?;
    runtime.set_memory_limit(usize::try_from(env.stop.memory).unwrap_or(usize::MAX));
    runtime.set_max_stack_size(STACK);
    let stop = env.stop.clone();
    runtime.set_interrupt_handler(Some(Box::new(move || stop.reason().is_some())));
    let context = Context::full(&runtime).map_err(failed)?;
    context.with(|ctx| {
        let result = rows(&ctx, &host, &query, sink).catch(&ctx);
        if let Some(cut) = env.stop.reason() {
            return Ok(Some(cut));
        }
        match (result, host.failed.borrow_mut().take()) {
            (Ok(true), _) => Ok(None),
            (Ok(false), _) => Ok(Some(Cut::Rows)),
            (Err(_), Some(error)) => Err(error),
            (Err(error), None) => Err(match message(&error) {
                text if text == "JavaScript: out of memory" => QueryError::Limit(format!(
                    "the values of JavaScript exceed the memory limit of a query, {}",
                    size(env.stop.memory)
                )),
                text => QueryError::Run(text),
            }),
        }
    })
}

/// Describes how a text was parsed.
pub(crate) fn explain(text: &str) -> Result<String, QueryError> {
    parse(text).map(|query| format!("{query:#?}"))
}

fn message(error: &CaughtError<'_>) -> String {
    let printed = match error {
        CaughtError::Exception(e) => e.message().unwrap_or_else(|| "failed".to_owned()),
        CaughtError::Value(value) => match value.as_string().and_then(|s| s.to_string().ok()) {
            Some(text) => text,
            None => "a value was thrown".to_owned(),
        },
        CaughtError::Error(e) => e.to_string(),
    };
    format!("JavaScript: {printed}")
}

/// Passes on the rows; false when the sink wants no more.
fn rows<'js>(
    ctx: &Ctx<'js>,
    host: &Rc<Host>,
    query: &Query,
    sink: &mut dyn Sink,
) -> rquickjs::Result<bool> {
    let asked = host.clone();
    let ask = move |ctx: Ctx<'js>, question: String, given: Rest<Value<'js>>| {
        let given: Vec<Given> = given.0.iter().map(given_of).collect();
        asked.ask(&question, &given).map_err(|error| {
            let printed = error.to_string();
            *asked.failed.borrow_mut() = Some(error);
            rquickjs::Exception::throw_message(&ctx, &printed)
        })
    };
    let ask = Function::new(ctx.clone(), ask)?;
    let setup: Function<'js> = ctx.eval(include_str!("prelude.js"))?;
    let driver: Object<'js> = setup.call((ctx.globals(), ask))?;
    let step: Function<'js> = match query {
        Query::Script(code) => driver
            .get::<_, Function<'js>>("script")?
            .call((code.as_str(),))?,
        Query::Once(select) => {
            let start: Function<'js> = driver.get("query")?;
            start.call((select.as_str(), "", "", -1))?
        }
        Query::Each {
            select,
            subclasses,
            class,
            name,
            filter,
            ..
        } => {
            let cursor = host.scan(&host.classes(class), *subclasses);
            let cursor = cursor.map_err(|error| {
                *host.failed.borrow_mut() = Some(error);
                rquickjs::Error::Exception
            })?;
            let start: Function<'js> = driver.get("query")?;
            start.call((
                select.as_str(),
                name.as_str(),
                filter.as_str(),
                cursor as f64,
            ))?
        }
    };
    let mut width = None;
    loop {
        let row: Value<'js> = step.call(())?;
        let Some(row) = row.as_array() else {
            if width.is_none() {
                sink.columns(&["value".to_owned()]);
            }
            return Ok(true);
        };
        let columns = match width {
            Some(columns) => columns,
            None => {
                let names: Option<Vec<String>> = row.get(0)?;
                let names = names.unwrap_or_else(|| vec!["value".to_owned()]);
                sink.columns(&names);
                *width.insert(names.len())
            }
        };
        let mut cells = Vec::with_capacity(columns);
        let mut bytes = 0;
        // Rows may have different columns; the columns of the first row are used.
        for n in 0..columns {
            cells.push(cell(host, &row.get::<Value<'js>>(n + 1)?, 0, &mut bytes)?);
        }
        if !sink.row(cells) {
            return Ok(false);
        }
    }
}

fn given_of(value: &Value<'_>) -> Given {
    if let Some(n) = value.as_number() {
        Given::Number(n)
    } else if let Some(b) = value.as_bool() {
        Given::Flag(b)
    } else if let Some(Ok(text)) = value.as_string().map(|s| s.to_string()) {
        Given::Text(text)
    } else {
        Given::Nothing
    }
}

/// A value as returned by `plain` of the prelude. `bytes` are those of the row: values of JavaScript that are one in
/// several places are copied.
fn cell(host: &Host, value: &Value<'_>, depth: usize, bytes: &mut u64) -> rquickjs::Result<Cell> {
    *bytes += size_of::<Cell>() as u64;
    if let Some(n) = value.as_number() {
        let whole = n.fract() == 0.0 && n.abs() < 9e15;
        return Ok(if whole {
            Cell::Int(n as i64)
        } else {
            Cell::Real(n)
        });
    }
    if let Some(b) = value.as_bool() {
        return Ok(Cell::Bool(b));
    }
    if let Some(text) = value.as_string() {
        let text = text.to_string()?;
        *bytes += text.len() as u64;
        if !host.env.stop.admits(*bytes) {
            return Err(rquickjs::Error::Exception);
        }
        return Ok(Cell::Text(text));
    }
    if let Some(array) = value.as_array().filter(|_| depth < 16) {
        let mut list = Vec::new();
        for n in 0..array.len() {
            list.push(cell(host, &array.get::<Value<'_>>(n)?, depth + 1, bytes)?);
        }
        return Ok(Cell::List(list));
    }
    if let Some(object) = value.as_object() {
        let n: Option<f64> = object.get("object")?;
        return Ok(n.map_or(Cell::Null, |n| {
            Cell::Object(host.env.heap.id(ObjIdx(n as u64)))
        }));
    }
    Ok(Cell::Null)
}
