//! Answers as JSON: `schema` first, then the answer's own fields, then the provenance of its numbers.
//! docs/reference/json.md describes the schemas; fields may be added, but are never removed or changed without a new
//! schema number.

use crate::Say;
use crate::escape::is_unsafe;
use heap_analysis::tables::validate::{Finding, findings};
use heap_graph::{LayoutInfo, Strength, Summary};
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};
use std::io;

/// The provenance of the numbers in an answer; part of every answer in every format.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Provenance {
    /// The layout model and what it measured.
    pub layout: LayoutInfo,
    /// Which references keep objects alive.
    pub strength: Strength,
    /// True when part of the file could not be read.
    pub damaged: bool,
    /// Damage and notes.
    pub diagnostics: Vec<Finding>,
    /// Findings that were only counted.
    pub omitted_diagnostics: u64,
}

impl Provenance {
    /// From the summary of a heap.
    pub fn of(summary: &Summary) -> Provenance {
        Provenance {
            layout: summary.layout.clone(),
            strength: summary.strength,
            damaged: summary.diagnostics.any_damage(),
            diagnostics: findings(summary),
            omitted_diagnostics: summary.diagnostics.dropped(),
        }
    }
}

#[derive(Serialize)]
struct Envelope<'a, T: Serialize> {
    schema: String,
    #[serde(flatten)]
    answer: &'a T,
    #[serde(flatten)]
    provenance: &'a Provenance,
}

/// Writes an answer, indented, with a line end.
pub fn write<T: Say>(
    out: &mut dyn io::Write,
    answer: &T,
    provenance: &Provenance,
) -> io::Result<()> {
    let envelope = Envelope {
        schema: format!("tenure.{}/1", T::NAME),
        answer,
        provenance,
    };
    write_value(out, &envelope)
}

/// Writes an answer as [`write`] does, with the elements of its list `rows` from elsewhere: the answer has none. They were
/// formatted by [`push_element`].
pub fn write_with_rows<T: Say>(
    out: &mut dyn io::Write,
    answer: &T,
    provenance: &Provenance,
    rows: &mut dyn io::Read,
) -> io::Result<()> {
    // At the beginning of a line, with this indent, so that no text of the answer can be like it.
    const EMPTY: &[u8] = b"\n \"rows\": []";
    let mut text = Vec::new();
    write(&mut text, answer, provenance)?;
    let found = text.windows(EMPTY.len()).position(|part| part == EMPTY);
    let at = found.ok_or_else(|| io::Error::other("the answer has rows of its own"))?;
    let (before, after) = text.split_at(at + EMPTY.len() - 1);
    out.write_all(before)?;
    if io::copy(rows, out)? > 0 {
        out.write_all(b"\n ")?;
    }
    out.write_all(after)
}

/// Writes an element of the list `rows` of an answer.
pub fn push_element(
    out: &mut dyn io::Write,
    value: &impl Serialize,
    is_first: bool,
) -> io::Result<()> {
    let mut text = Vec::new();
    write_value(&mut text, value)?;
    let lines = text.trim_ascii_end().split(|byte| *byte == b'\n');
    for (n, line) in lines.enumerate() {
        let comma: &[u8] = if n == 0 && !is_first { b"," } else { b"" };
        out.write_all(comma)?;
        out.write_all(b"\n  ")?;
        out.write_all(line)?;
    }
    Ok(())
}

/// Writes any value the same way, without an envelope.
pub fn write_value(out: &mut dyn io::Write, value: &impl Serialize) -> io::Result<()> {
    let formatter = Harmless(PrettyFormatter::with_indent(b" "));
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, formatter);
    value.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// Escapes [`is_unsafe`] characters in addition to those of JSON, because users look at the output in a terminal.
struct Harmless<'a>(PrettyFormatter<'a>);

impl Formatter for Harmless<'_> {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut plain = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_unsafe(*c)) {
            out.write_all(&fragment.as_bytes()[plain..at])?;
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(out, "\\u{unit:04x}")?;
            }
            plain = at + c.len_utf8();
        }
        out.write_all(&fragment.as_bytes()[plain..])
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.0.write_char_escape(out, escape)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_are_escaped_and_read_back() {
        let text = "a\u{1b}[0m\u{202e}b\u{85}\"";
        let mut out = Vec::new();
        write_value(&mut out, &text).unwrap();
        assert_eq!(
            String::from_utf8(out.clone()).unwrap(),
            "\"a\\u001b[0m\\u202eb\\u0085\\\"\"\n"
        );
        let back: String = serde_json::from_slice(&out).unwrap();
        assert_eq!(back, text);
    }

    #[test]
    fn rows_from_elsewhere_are_those_of_the_answer() {
        use heap_query::{Cell, Lang, Table};
        let text = |text: &str| Cell::Text(text.into());
        let lists = vec![
            vec![],
            vec![vec![Cell::Int(1), Cell::Null]],
            vec![
                vec![text("a\n \"rows\": []"), text("b")],
                vec![],
                vec![Cell::Real(0.5)],
            ],
        ];
        for rows in lists {
            let mut table = Table {
                lang: Lang::Sql,
                columns: vec!["\n \"rows\": []".to_owned(), "b".to_owned()],
                object_columns: vec![1],
                rows,
                cut: None,
                notes: vec!["note".to_owned()],
            };
            let (mut whole, mut pieces, mut joined) = (Vec::new(), Vec::new(), Vec::new());
            let provenance = Provenance::default();
            write(&mut whole, &table, &provenance).unwrap();
            for (n, row) in table.rows.drain(..).enumerate() {
                push_element(&mut pieces, &row, n == 0).unwrap();
            }
            write_with_rows(&mut joined, &table, &provenance, &mut pieces.as_slice()).unwrap();
            assert_eq!(String::from_utf8(joined), String::from_utf8(whole));
        }
    }
}
