//! The pages without JavaScript.

use super::{describe, plain_parts};
use crate::explorer::describe::View;
use crate::reply::{Refused, plain_page};
use axum::response::{IntoResponse, Response};
use live_analysis::metrics::METRICS;
use live_analysis::table::Table;
use live_analysis::timeline::EventKind;
use live_session::answers::{advice, cpu, objects, tables};
use live_session::persist::table_forms::{push_answer, push_table};
use live_session::recording::state::Live;
use live_session::recording::status::{RecordingState, Status};
use report::escape::html;
use report::units::{metric, utc};
use requests::Fault;
use requests::Params;
use std::fmt::Write;

pub(in crate::live) const BACK: &str = "<p><a href=\"./\">The program</a></p>\n";

/// What to record.
const RECORD: &str = "<form method=\"post\" action=\"commands/record\"><select name=\"mode\">\
    <option value=\"full\">every allocation</option>\
    <option value=\"sampled\">sampled, 64 KiB</option></select> <select name=\"native\">\
    <option value=\"\">no native memory</option><option value=\"65536\">native, 64 KiB</option>\
    <option value=\"1\">every native block</option></select> <button>Record</button></form>\n";

fn button(out: &mut String, command: &str, title: &str) {
    let _ = writeln!(
        out,
        "<form method=\"post\" action=\"commands/{command}\"><button>{title}</button></form>"
    );
}

/// The first page: the current state, the commands, the views.
pub(in crate::live) fn index(live: &Live) -> Response {
    let status = live.status().borrow().clone();
    let mut body = String::new();
    if status.ended {
        body.push_str("<p class=\"bad\">The program has ended.</p>\n");
    }
    for text in status.error.iter().chain(&status.notes) {
        let _ = writeln!(body, "<p class=\"bad\">{}</p>", html(text));
    }
    commands(&status, &mut body);
    links(&status, &mut body);
    if let Some(row) = status.rows.last() {
        let value = |at: usize| row.values[at];
        let known = METRICS
            .iter()
            .enumerate()
            .filter(|(at, _)| value(*at).is_finite());
        let cells: Vec<Vec<String>> = known
            .map(|(at, info)| {
                let about = info.about.to_owned();
                vec![info.title.to_owned(), metric(info.unit, value(at)), about]
            })
            .collect();
        push_table(&mut body, &["Now", "", ""], &cells);
    }
    plain_page(&format!("{} {}", status.name, status.pid), &body, "../")
}

/// The commands.
fn commands(status: &Status, body: &mut String) {
    button(body, "gc", "Force GC");
    button(body, "dump", "Heap dump");
    match &status.recording {
        Some(recording) if recording.on => button(body, "stop", "Stop recording"),
        // The agent in the program keeps its mode.
        Some(recording) if recording.connected => button(body, "record", "Record"),
        _ => body.push_str(RECORD),
    }
    let _ = write!(
        body,
        "<form method=\"post\" action=\"commands/mark\"><label>Mark the present moment <input name=\"text\">\
         </label> <button>Mark</button></form>\n\
         <form method=\"post\" action=\"commands/interval\"><label>Measure every <input name=\"ms\" size=\"6\" \
         value=\"{}\"> ms</label> <button>Set</button></form>\n",
        status.interval_ms
    );
    let connected = |recording: &RecordingState| recording.connected;
    match status.cpu {
        true => button(body, "cpu?on=0", "End CPU samples"),
        false => button(body, "cpu?on=1", "Sample the CPU"),
    }
    if status.recording.as_ref().is_some_and(connected) {
        match status.own_code {
            true => button(body, "own?on=0", "Run no code of the program"),
            false => {
                body.push_str(
                    "<p>To ask objects for their toString, equals, hashCode and compareTo runs code \
                     of the program, on a thread of the agent's own. It may change what objects hold, \
                     or not return.</p>\n",
                );
                button(body, "own?on=1", "Run the program's code");
            }
        }
    }
}

/// The views.
fn links(status: &Status, body: &mut String) {
    body.push_str("<ul>\n");
    for (link, title) in [
        ("events", "Collections and marks"),
        ("allocations?by=class", "Allocations by class"),
        ("allocations?by=package", "Allocations by package"),
        ("allocations?by=module", "Allocations by module"),
        ("allocations?by=loader", "Allocations by loader"),
        ("allocations?by=method", "Allocations by method"),
        ("allocations?by=context", "Allocations by thread"),
        ("allocations?by=site", "Allocations by class and stack"),
        ("stacks", "Call stacks"),
        ("cpu", "CPU time"),
        (
            "allocations?heap=native&amp;by=class",
            "Native memory by library",
        ),
        (
            "allocations?heap=native&amp;by=site",
            "Native memory by stack",
        ),
        ("references", "JNI references"),
        ("../profiler", "Instances per class"),
        ("saved", "Saved tables of classes, and what changed"),
        ("options", "Class filters"),
        ("growth", "What grows"),
        ("savings", "What could be saved"),
        ("savings?by=kind", "What could be saved, by kind"),
    ] {
        let _ = writeln!(body, "<li><a href=\"{link}\">{title}</a></li>");
    }
    for dump in &status.dumps {
        let (n, time) = (dump.number, utc(dump.time_ms));
        let how = dump
            .how
            .as_deref()
            .map_or_else(String::new, |how| format!(", {}", html(how)));
        let _ = writeln!(
            body,
            "<li><a href=\"../dumps/{n}/plain/\">Heap dump {n}, {time}</a>{how}</li>"
        );
    }
    body.push_str("</ul>\n");
}

/// The page of one view.
pub(in crate::live) fn view(live: &Live, view: &str, params: &Params) -> Result<Response, Fault> {
    let described = match view {
        "events" => "timeline",
        "saved" => "compare",
        other => other,
    };
    let none = || Fault::not_found("there is no such page");
    let described = describe::named(described).ok_or_else(none)?;
    described.check(params)?;
    let (mut body, page) = (BACK.to_owned(), (live, params));
    let mut title = described.title;
    let out = &mut body;
    match view {
        "events" => {
            title = "Collections and marks";
            events(live, params, out)?;
        }
        "allocations" => table(described, page, &tables::allocations(live, params)?, out),
        "classes" => table(described, page, &tables::classes(live, params)?, out),
        "references" => table(described, page, &tables::references(live, params)?, out),
        "instances" => table(described, page, &objects::list(live, params)?, out),
        "groups" => table(described, page, &objects::groups(live, params)?, out),
        "growth" => table(described, page, &advice::growth(live, params)?, out),
        "savings" => table(described, page, &advice::savings(live, params)?, out),
        "stacks" => plain_parts::stacks(described, page, out)?,
        "cpu" => out.push_str(&cpu::plain(live, params)?),
        "options" => plain_parts::options(live, out),
        "saved" => {
            title = "Saved";
            plain_parts::saved(live, params, out)?;
        }
        "source" => plain_parts::source(live, params, out)?,
        _ => return Err(none()),
    }
    Ok(plain_page(title, &body, "../"))
}

fn events(live: &Live, params: &Params, out: &mut String) -> Result<(), Fault> {
    let range = tables::range(params)?;
    let mut events = live.timeline(range.from, range.to, 2, None).events;
    events.reverse();
    let cells = events.into_iter().take(1000).map(|event| {
        let (what, pause) = match event.kind {
            EventKind::Gc {
                collector,
                count,
                pause_ms,
                cause,
            } => (
                format!("{count} × {collector}: {cause}"),
                format!("{pause_ms:.1} ms"),
            ),
            EventKind::Marker { text } => (text, String::new()),
        };
        vec![what, utc(event.time_ms), pause]
    });
    let cells: Vec<_> = cells.collect();
    push_table(out, &["What", "When (UTC)", "Pause"], &cells);
    Ok(())
}

/// A table with the form that filters it and links to its other rows.
fn table<R>(view: &View, page: (&Live, &Params), table: &Table<R>, out: &mut String) {
    plain_parts::narrow(view, page, out);
    plain_parts::pager(
        view,
        page.1,
        (table.offset, table.rows.len(), table.count),
        out,
    );
    push_answer(out, table);
}

/// A fault as a page.
pub(in crate::live) fn fault(fault: &Fault) -> Response {
    let body = format!("{BACK}<p class=\"bad\">{}</p>", html(&fault.message));
    let status = Refused(fault.clone()).status();
    (status, plain_page("Not possible", &body, "../")).into_response()
}
