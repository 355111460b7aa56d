//! Comma-separated values (RFC 4180): quotes only where needed, lines that end with CRLF. Names in a dump may be
//! hostile, so no text contains anything that a terminal or a spreadsheet would interpret. A line break in a text stays
//! one, in quotes. Different texts are different fields: a backslash begins an escape, so that one in a text is doubled.

use crate::escape::visible;
use heap_query::Cell;
use std::borrow::Cow;

/// One line, with its line end.
pub fn line(fields: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut out = String::new();
    for (n, text) in fields.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        push_field(text.as_ref(), &mut out);
    }
    out.push_str("\r\n");
    out
}

/// A row of a query's result: no value is an empty field.
pub fn row(cells: &[Cell]) -> String {
    line(cells.iter().map(Cell::to_string))
}

/// One field. A text that a spreadsheet would interpret as a formula is prefixed with an apostrophe, and so is one that
/// begins like such a field; numbers may begin with a sign.
pub(crate) fn push_field(text: &str, out: &mut String) {
    push(text, with_line_breaks(&doubled(text)), out);
}

/// The text with its backslashes doubled.
fn doubled(text: &str) -> Cow<'_, str> {
    match text.contains('\\') {
        true => Cow::Owned(text.replace('\\', r"\\")),
        false => Cow::Borrowed(text),
    }
}

/// The same for a reader of one row per line: a line break is written as `\n`.
pub(crate) fn push_one_line(text: &str, out: &mut String) {
    push(text, visible(&doubled(text)), out);
}

/// The text with line breaks, and all else that must not act made visible. A carriage return is part of a line break
/// only before a line feed: alone, it would hide what a terminal showed before it.
fn with_line_breaks(text: &str) -> Cow<'_, str> {
    if !text.contains('\n') {
        return visible(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for line in text.split_inclusive('\n') {
        let (line, end) = match (line.strip_suffix("\r\n"), line.strip_suffix('\n')) {
            (Some(line), _) => (line, "\r\n"),
            (None, Some(line)) => (line, "\n"),
            (None, None) => (line, ""),
        };
        out.push_str(&visible(line));
        out.push_str(end);
    }
    Cow::Owned(out)
}

fn push(original: &str, text: Cow<'_, str>, out: &mut String) {
    let first = original.trim_start_matches('\'');
    let formula =
        first.starts_with(['=', '+', '-', '@', '\t', '\r']) && original.parse::<f64>().is_err();
    if formula || text.contains([',', '"', '\n']) {
        out.push('"');
        if formula {
            out.push('\'');
        }
        out.push_str(&text.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_is_quoted_and_what_would_act_is_text() {
        let cells = [
            Cell::Text("a,b".into()),
            Cell::Text("say \"x\"\n\x1b[2J".into()),
            Cell::Null,
            Cell::Int(-3),
            Cell::Text("=HYPERLINK(1)".into()),
            Cell::Text("\t=1".into()),
            Cell::Object(hprof::ObjectId(0x7f)),
        ];
        assert_eq!(
            row(&cells),
            "\"a,b\",\"say \"\"x\"\"\n\\u{1b}[2J\",,-3,\"'=HYPERLINK(1)\",\"'\\t=1\",0x7f\r\n"
        );
    }

    #[test]
    fn different_texts_are_different_fields() {
        let texts = ["a\nb", "a\\nb", "a\r\nb", "a\rb", "a\\rb", "\n=1", "a\n"];
        assert_eq!(
            line(texts),
            "\"a\nb\",a\\\\nb,\"a\r\nb\",a\\rb,a\\\\rb,\"\n=1\",\"a\n\"\r\n"
        );
        let fields = r#""'=1","QQ=1",-1,"QQ-1",'a"#.replace('Q', "'");
        assert_eq!(line(["=1", "'=1", "-1", "'-1", "'a"]), fields + "\r\n");
        let mut out = String::new();
        push_one_line("a\nb", &mut out);
        assert_eq!(out, "a\\nb");
    }
}
