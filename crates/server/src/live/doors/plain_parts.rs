//! More pages without JavaScript: call stacks, class filters, saved tables, source; and the form that filters every
//! table by a range of time and by text.

use crate::explorer::describe::View;
use crate::reply::encoded;
use live_analysis::allocations::Node;
use live_analysis::timeline::EventKind;
use live_session::answers::{source, tables};
use live_session::persist::saved_tables::Saved;
use live_session::persist::table_forms::push_answer;
use live_session::recording::state::Live;
use report::escape::html;
use report::units::{grouped, human_bytes, utc};
use requests::Fault;
use requests::Params;
use std::fmt::Write;

/// The most moments that a range can begin or end with.
const MOMENTS: usize = 100;
/// Rows of a page by default.
const ROWS: usize = 100;
/// The most frames of a tree.
const FRAMES: &str = "1000";
/// The most changed classes that are shown.
const CHANGES: &str = "500";

/// A selection with its options, `(value, title)` each; `chosen` is selected.
fn select(out: &mut String, (label, name): (&str, &str), chosen: &str, all: &[(String, String)]) {
    let _ = write!(out, "<label>{label} <select name=\"{name}\">");
    for (value, title) in all {
        let on = if value == chosen { " selected" } else { "" };
        let (value, title) = (html(value), html(title));
        let _ = write!(out, "<option value=\"{value}\"{on}>{title}</option>");
    }
    out.push_str("</select></label>\n");
}

/// The most recent events, as moments that a range can begin and end with.
fn moments(live: &Live) -> Vec<(String, String)> {
    let mut events = live.timeline(0, u64::MAX, 2, None).events;
    events.reverse();
    let moments = events.into_iter().take(MOMENTS).map(|event| {
        let what = match event.kind {
            EventKind::Gc {
                collector, cause, ..
            } => format!("{collector}: {cause}"),
            EventKind::Marker { text } => text,
        };
        let title = format!("{} {what}", utc(event.time_ms));
        (event.time_ms.to_string(), title)
    });
    moments.collect()
}

/// The given parameters of a view, except those in `without`.
fn given<'p>(
    view: &'p View,
    params: &'p Params,
    without: &'p [&str],
) -> impl Iterator<Item = (&'static str, &'p str)> {
    let names = view.parameters.iter().map(|parameter| parameter.name);
    let kept = names.filter(|name| !without.contains(name));
    kept.filter_map(|name| Some((name, params.get(name)?)))
}

/// The form above a table: beginning, end, and a text that a class or frame must contain or match. All other
/// parameters of the view are kept.
pub(in crate::live) fn narrow(view: &View, (live, params): (&Live, &Params), out: &mut String) {
    let get = |name: &str| params.get(name).unwrap_or("");
    out.push_str("<form method=\"get\">\n");
    for (name, value) in given(view, params, &["from", "to", "filter", "regex", "offset"]) {
        let value = html(value);
        let _ = writeln!(
            out,
            "<input type=\"hidden\" name=\"{name}\" value=\"{value}\">"
        );
    }
    let moments = moments(live);
    for (label, name, none) in [("From", "from", "the beginning"), ("to", "to", "now")] {
        let mut all = vec![(String::new(), none.to_owned())];
        let chosen = get(name);
        if !chosen.is_empty() && !moments.iter().any(|moment| moment.0 == chosen) {
            let time = chosen.parse().map_or_else(|_| chosen.to_owned(), utc);
            all.push((chosen.to_owned(), time));
        }
        all.extend(moments.iter().cloned());
        select(out, (label, name), chosen, &all);
    }
    if view.parameter("filter").is_some() {
        let _ = writeln!(
            out,
            "<label>contains <input name=\"filter\" value=\"{}\"></label>\n\
             <label>or matches <input name=\"regex\" value=\"{}\"></label>",
            html(get("filter")),
            html(get("regex"))
        );
    }
    out.push_str("<button>Show</button></form>\n");
}

/// Which rows of how many are shown, and links to the others.
pub(in crate::live) fn pager(
    view: &View,
    params: &Params,
    (offset, shown, count): (usize, usize, usize),
    out: &mut String,
) {
    let link = |offset: usize, title: &str| {
        let mut query = format!("offset={offset}");
        for (name, value) in given(view, params, &["offset"]) {
            let _ = write!(query, "&amp;{name}={}", encoded(value));
        }
        let view = view.name;
        format!(" · <a href=\"{view}?{query}\">{title}</a>")
    };
    let limit = params.limit(ROWS).unwrap_or(ROWS).max(1);
    // A range of time may have fewer rows than the one before.
    let offset = offset.min(count);
    let last = offset + shown;
    let [first, end, all] = [offset + 1, last, count].map(|n| grouped(n as u64));
    let _ = match shown {
        0 => write!(out, "<p>No rows from here on, of {all}"),
        _ => write!(out, "<p>Rows {first} to {end} of {all}"),
    };
    if offset > 0 {
        out.push_str(&link(offset.saturating_sub(limit), "Previous"));
    }
    if last < count {
        out.push_str(&link(last, "Next"));
    }
    out.push_str("</p>\n");
}

/// The tree of callers.
pub(in crate::live) fn stacks(
    view: &View,
    (live, params): (&Live, &Params),
    out: &mut String,
) -> Result<(), Fault> {
    let asked = match params.get("limit") {
        Some(_) => params.clone(),
        None => params.clone().with("limit", FRAMES),
    };
    let answer = tables::stacks(live, &asked)?;
    narrow(view, (live, params), out);
    let heap = html(params.get("heap").unwrap_or("java"));
    let _ = writeln!(
        out,
        "<p><a href=\"stacks?heap=java\">Java objects</a> · \
         <a href=\"stacks?heap=native\">Native memory</a> · \
         <a href=\"../api/v1/profile?heap={heap}\">Flame graph (needs script)</a> · \
         <a href=\"../api/v1/profile?heap={heap}&amp;form=collapsed\">Collapsed stacks</a></p>"
    );
    if answer.nodes.is_empty() {
        out.push_str("<p>Nothing was allocated in this range.</p>\n");
        return Ok(());
    }
    out.push_str(
        "<div class=\"t\"><table>\n<thead><tr><th class=\"n\">Allocated</th><th class=\"n\">Allocations</th><th class=\"n\">Remaining</th>\
         <th>Frame</th></tr></thead>\n<tbody>\n",
    );
    // Callers come before their callees, but not directly before them, so the tree is walked.
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); answer.nodes.len()];
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut order: Vec<&Node> = answer.nodes.iter().collect();
    order.sort_by_key(|node| node.allocated_bytes);
    for node in order {
        match node.parent {
            Some(parent) => children[parent].push(node.id),
            None => open.push((node.id, 0)),
        }
    }
    let sources = !live.sources().is_empty();
    while let Some((id, depth)) = open.pop() {
        let node = &answer.nodes[id];
        let name = html(&node.name);
        let name = match (node.class, sources) {
            (true, _) => format!("<b>{name}</b>"),
            (false, true) => format!(
                "<a href=\"source?frame={}\">{name}</a>",
                encoded(&node.name)
            ),
            (false, false) => name.to_string(),
        };
        let _ = writeln!(
            out,
            "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td style=\"padding-left: {}px\">{name}</td></tr>",
            human_bytes(node.allocated_bytes),
            grouped(node.allocations),
            node.remaining,
            9 + 8 * depth
        );
        open.extend(children[id].iter().map(|child| (*child, depth + 1)));
    }
    out.push_str("</tbody></table></div>\n");
    Ok(())
}

/// The class filters as lines that can be edited.
pub(in crate::live) fn options(live: &Live, out: &mut String) {
    let text = tables::options(live).text;
    let _ = write!(
        out,
        "<p>A line is MODULE CLASS OPTIONS, such as <code>java.base java.util.** size,capacity</code>; the \
         first that fits a class holds. Options: off, all, count, time, stack, size, capacity, context, \
         ratio=0.1, or factory=CLASS.</p>\n\
         <form method=\"post\" action=\"commands/options\"><textarea name=\"text\" rows=\"12\" cols=\"72\">\n\
         {}</textarea><p><button>Use these</button></p></form>\n",
        html(&text)
    );
}

/// The saved tables, and the changes between two of them.
pub(in crate::live) fn saved(live: &Live, params: &Params, out: &mut String) -> Result<(), Fault> {
    let every = live.status().borrow().save_every_minutes;
    out.push_str(
        "<form method=\"post\" action=\"commands/save\"><button>Save now</button></form>\n\
         <form method=\"post\" action=\"commands/schedule\"><label>Save every <input name=\"minutes\" \
         size=\"4\" value=\"",
    );
    let _ = writeln!(
        out,
        "{every}\"> minutes (0: never)</label> <button>Set</button></form>"
    );
    let list = live.saved_tables.list();
    if list.is_empty() {
        out.push_str("<p>No table of classes has been saved.</p>\n");
        return Ok(());
    }
    if let [.., before, last] = &list[..] {
        changes(live, params, (&list, before.number, last.number), out)?;
    }
    out.push_str("<h2>Saved</h2>\n<ul>\n");
    for saved in list.iter().rev() {
        let (n, time) = (saved.number, utc(saved.time_ms));
        let file =
            |form| format!("<a href=\"../api/v1/saved?number={n}&amp;form={form}\">{form}</a>");
        let _ = writeln!(
            out,
            "<li>{n}: {time}, counts from the {}: {} {} {}</li>",
            html(&saved.source),
            file("html"),
            file("csv"),
            file("json")
        );
    }
    out.push_str("</ul>\n");
    Ok(())
}

fn changes(
    live: &Live,
    params: &Params,
    (list, before, last): (&[Saved], usize, usize),
    out: &mut String,
) -> Result<(), Fault> {
    let (before, last) = (before.to_string(), last.to_string());
    let from = params.get("from").unwrap_or(&before);
    let to = params.get("to").unwrap_or(&last);
    let asked = params.clone().with("from", from).with("to", to);
    let table = tables::compare(live, &asked.with("limit", CHANGES))?;
    let all: Vec<(String, String)> = list
        .iter()
        .map(|one| {
            (
                one.number.to_string(),
                format!("{}: {}", one.number, utc(one.time_ms)),
            )
        })
        .collect();
    out.push_str("<h2>What changed</h2>\n<form method=\"get\">\n");
    select(out, ("From", "from"), from, &all);
    select(out, ("to", "to"), to, &all);
    let _ = writeln!(
        out,
        "<label>contains <input name=\"filter\" value=\"{}\"></label> <button>Compare</button></form>",
        html(params.get("filter").unwrap_or(""))
    );
    push_answer(out, &table);
    Ok(())
}

/// The lines around that of a frame.
pub(in crate::live) fn source(live: &Live, params: &Params, out: &mut String) -> Result<(), Fault> {
    let source = source::of(live, params)?;
    let _ = writeln!(
        out,
        "<p>{}</p>\n<p class=\"dim\">{}</p>\n<pre>",
        html(params.get("frame").unwrap_or("")),
        html(&source.file)
    );
    for (n, line) in (source.first..).zip(&source.lines) {
        let mark = if source.line == Some(n) { "&gt;" } else { " " };
        let _ = writeln!(out, "{mark}{n:5}  {}", html(line));
    }
    out.push_str("</pre>\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::doors::describe;

    #[test]
    fn other_rows_are_as_many_as_are_shown_and_there() {
        let view = describe::named("classes").expect("a view");
        let page = |query: &str, rows: (usize, usize, usize)| {
            let mut out = String::new();
            pager(view, &Params::parse(query), rows, &mut out);
            out
        };
        let middle = page("limit=10&offset=50", (50, 10, 252));
        assert!(middle.contains("Rows 51 to 60 of 252"), "{middle}");
        assert!(
            middle.contains("offset=40&amp;limit=10\">Previous"),
            "{middle}"
        );
        assert!(middle.contains("offset=60&amp;limit=10\">Next"), "{middle}");
        let beyond = page("", (usize::MAX, 0, 252));
        assert!(beyond.contains("No rows from here on, of 252"), "{beyond}");
        assert!(beyond.contains("offset=152\">Previous"), "{beyond}");
        assert!(!beyond.contains("Next"), "{beyond}");
        let none = page("limit=0", (0, 0, 252));
        assert!(none.contains("offset=0&amp;limit=0\">Next"), "{none}");
    }
}
