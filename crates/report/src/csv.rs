//! Rows as comma-separated values (RFC 4180): the first line has the names, lines end with CRLF
//! inside no quotes, quotes are doubled.

use heap_query::Cell;

/// One line, with its line end.
pub fn line<'a>(fields: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for (n, field) in fields.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        if field.contains(['"', ',', '\n', '\r']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push_str("\r\n");
    out
}

/// A row of a query's answer: no value is an empty field.
pub fn row(cells: &[Cell]) -> String {
    let fields: Vec<String> = cells.iter().map(Cell::to_string).collect();
    line(fields.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_is_quoted() {
        let cells = [
            Cell::Text("a,b".into()),
            Cell::Text("say \"x\"\n".into()),
            Cell::Null,
            Cell::Int(-3),
            Cell::Object(hprof::ObjectId(0x7f)),
        ];
        assert_eq!(row(&cells), "\"a,b\",\"say \"\"x\"\"\n\",,-3,0x7f\r\n");
    }
}
