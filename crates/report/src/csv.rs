//! Comma-separated values (RFC 4180): quotes only where needed, lines that end with CRLF. Names in a dump may be
//! hostile, so no text contains anything that a terminal or a spreadsheet would interpret.

use crate::escape::visible;
use heap_query::Cell;

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

/// One field. A text that a spreadsheet would interpret as a formula is prefixed with an apostrophe; numbers may begin
/// with a sign.
pub(crate) fn push_field(text: &str, out: &mut String) {
    let formula =
        text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let text = visible(text);
    if formula || text.contains([',', '"']) {
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
            "\"a,b\",\"say \"\"x\"\"\\n\\u{1b}[2J\",,-3,\"'=HYPERLINK(1)\",\"'\\t=1\",0x7f\r\n"
        );
    }
}
