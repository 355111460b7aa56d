//! The pages without JavaScript: the same text as in the terminal, with links from objects and classes to their
//! details.

use super::state::Explorer;
use crate::reply::{Form, Refused, Written, encoded, plain_page};
use axum::response::{IntoResponse, Response};
use requests::{Fault, FaultKind, Stage};
use requests::{Params, ROWS};
use std::fmt::Write as _;

/// The views that need no object, with their titles.
const INDEX: &[(&str, &str)] = &[
    ("overview", "Overview"),
    ("leaks", "Leak suspects"),
    ("histogram", "Histogram by class"),
    ("histogram?by=package", "Histogram by package"),
    ("histogram?by=loader", "Histogram by class loader"),
    ("histogram?by=superclass", "Histogram by superclass"),
    ("dominators", "Dominator tree"),
    ("dominator_groups?by=package", "Dominators by package"),
    ("treemap", "The dominator tree as areas"),
    ("top", "Biggest consumers"),
    ("threads", "Threads"),
    ("roots", "GC roots"),
    ("duplicate_strings", "Duplicate strings"),
    ("waste", "Waste"),
    ("collections", "Collections"),
    ("loaders", "Class loaders"),
    ("properties", "System properties"),
    ("unreachable", "Unreachable objects"),
    ("bitmaps", "Bitmaps"),
    ("android", "Android"),
    ("summary", "The file"),
    ("validate", "State of the file"),
];

/// The first page.
pub(super) fn index(explorer: &Explorer) -> Response {
    let state = explorer.state().borrow().clone();
    let mut body = String::new();
    match state.stage {
        Stage::Opening => {
            body.push_str("<p>The index is being built; reload this page for the next state.</p>");
            if state.quick {
                body.push_str("<p><a href=\"quick_histogram\">Histogram of the first pass</a></p>");
            }
        }
        Stage::Failed => {
            let error = state.error.unwrap_or_default();
            let _ = write!(
                body,
                "<p class=\"bad\">{}</p>",
                report::escape::html(&error)
            );
        }
        Stage::Indexed | Stage::Ready => {
            body.push_str("<ul>\n");
            for (link, title) in INDEX {
                let _ = writeln!(body, "<li><a href=\"{link}\">{title}</a></li>");
            }
            if state.base.is_some() {
                body.push_str("<li><a href=\"compare\">Compare</a></li>\n");
            }
            body.push_str("</ul>\n");
        }
    }
    plain_page(&state.file, &body, "../")
}

/// The page of a view: `body` is the answer as `report` rendered it.
pub(super) fn page(view: &str, body: &str) -> Response {
    let mut out = String::from("<p><a href=\"./\">All views</a></p>\n");
    out.push_str(&linked(body));
    plain_page(&view.replace('_', " "), &out, "../")
}

/// Adds to rows of a view the links to the rows before them and, if there are more, to those after them.
pub(super) fn with_links(
    mut written: Written,
    (view, params): (&str, &Params),
    has_more: bool,
) -> Written {
    if written.form != Form::Plain {
        return written;
    }
    let limit = params.limit(ROWS).unwrap_or(ROWS);
    let offset = params.offset().unwrap_or(0);
    let mut out = String::new();
    let mut link = |to: usize, title: &str| {
        let mut query = String::new();
        for (name, value) in params.iter().filter(|(n, _)| *n != "offset") {
            let _ = write!(query, "{}={}&amp;", encoded(name), encoded(value));
        }
        let _ = write!(out, "<a href=\"{view}?{query}offset={to}\">{title}</a> ");
    };
    if offset > 0 {
        link(offset.saturating_sub(limit), "Previous rows");
    }
    if has_more {
        link(offset.saturating_add(limit), "Next rows");
    }
    written.bytes.extend(out.into_bytes());
    written
}

/// A fault as a page.
pub(super) fn fault(view: &str, fault: &Fault) -> Response {
    let again = match fault.kind {
        FaultKind::NotReady => " Reload this page after a while.",
        _ => "",
    };
    let text = report::escape::html(&fault.message);
    let body = format!("<p><a href=\"./\">All views</a></p>\n<p class=\"bad\">{text}.{again}</p>");
    let status = Refused(fault.clone()).status();
    (status, plain_page(view, &body, "../")).into_response()
}

/// Turns object ids, class names and names of sets, which `report` has marked, into links. All text in the page is
/// escaped, so a mark cannot come from the dump.
fn linked(body: &str) -> String {
    const ID: (&str, &str) = ("<code>", "</code>");
    const CLASS: (&str, &str) = ("<span class=\"c\">", "</span>");
    const SET: (&str, &str) = ("<span class=\"c\" data-set=\"", "</span>");
    let mut out = String::with_capacity(body.len() * 2);
    let mut rest = body;
    loop {
        let next = [ID, CLASS, SET]
            .into_iter()
            .filter_map(|mark| rest.find(mark.0).map(|at| (at, mark)))
            .min_by_key(|(at, _)| *at);
        let Some((at, (open, close))) = next else {
            out.push_str(rest);
            return out;
        };
        let from = at + open.len();
        let Some(len) = rest[from..].find(close) else {
            out.push_str(rest);
            return out;
        };
        let text = &rest[from..from + len];
        out.push_str(&rest[..at]);
        if open == ID.0 {
            let _ = write!(out, "<a class=\"id\" href=\"object?id={text}\">{text}</a>");
        } else if open == SET.0 {
            let (set, text) = text.split_once("\">").unwrap_or_default();
            match encoded(&unescaped(set)) {
                none if none.is_empty() => out.push_str(text),
                set => {
                    let _ = write!(out, "<a href=\"objects?set={set}\">{text}</a>");
                }
            }
        } else {
            let name = text.strip_prefix("class ").unwrap_or(text);
            let name = encoded(&unescaped(name));
            let _ = write!(out, "<a href=\"objects?set=class:{name}\">{text}</a>");
        }
        rest = &rest[from + len + close.len()..];
    }
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_links_to_those_before_and_after_them() {
        let check = |form, params: &str, has_more, expected: &str| {
            let bytes = Vec::new();
            let written = Written { form, bytes };
            let written = with_links(written, ("objects", &Params::parse(params)), has_more);
            assert_eq!(String::from_utf8_lossy(&written.bytes), expected);
        };
        let last = "<a href=\"objects?limit=5&amp;set=all&amp;offset=5\">Previous rows</a> ";
        check(Form::Plain, "offset=10&limit=5&set=all", false, last);
        let first = "<a href=\"objects?limit=5&amp;offset=5\">Next rows</a> ";
        check(Form::Plain, "limit=5", true, first);
        check(Form::Plain, "", false, "");
        check(Form::Csv, "limit=5", true, "");
        // Beyond all rows.
        let (beyond, before) = (usize::MAX, usize::MAX - 5);
        let only = format!("<a href=\"objects?limit=5&amp;offset={before}\">Previous rows</a> ");
        check(
            Form::Plain,
            &format!("limit=5&offset={beyond}"),
            false,
            &only,
        );
    }

    #[test]
    fn ids_and_classes_become_links_and_stay_text() {
        assert_eq!(
            linked("<td><span class=\"c\">a.B&lt;i&gt;[]</span> <code>0x10</code></td>"),
            "<td><a href=\"objects?set=class:a.B%3Ci%3E%5B%5D\">a.B&lt;i&gt;[]</a> \
             <a class=\"id\" href=\"object?id=0x10\">0x10</a></td>"
        );
        assert_eq!(linked("<code>0x10"), "<code>0x10");
        assert_eq!(
            linked("<span class=\"c\" data-set=\"package:a.b\">a.b</span>"),
            "<a href=\"objects?set=package:a.b\">a.b</a>"
        );
        assert_eq!(
            linked("<td><span class=\"c\" data-set=\"\">a.B.field</span></td>"),
            "<td>a.B.field</td>"
        );
    }
}
