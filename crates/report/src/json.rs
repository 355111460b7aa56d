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
}
