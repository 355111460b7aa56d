//! The collector's side: measures the stream of the agent while it is stored.

use hprof::RecordTag;
use private_records::{PrivateTag, Tag};
use std::collections::BTreeMap;

/// The form of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `format=a`.
    Text,
    /// `format=b`.
    Binary,
}

/// What has arrived so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes in all.
    pub bytes: u64,
    /// The form, once the first bytes show it.
    pub form: Option<Form>,
    /// Complete records by tag byte (binary form).
    pub records: BTreeMap<u8, u64>,
    /// Complete lines (text form).
    pub lines: u64,
    /// The last section that began (text form) or tag that arrived (binary form).
    pub last: String,
    /// True when the stream stops between two records or lines.
    pub at_boundary: bool,
}

impl Progress {
    /// Whether a table or a heap dump has begun, and not only what a program sends while it runs: names, traces, threads
    /// and waits. Every recording that ends in order has one.
    pub fn has_tables(&self) -> bool {
        let is_table = |tag: &u8| match Tag::from_u8(*tag) {
            Some(Tag::Format(tag)) => !tag.is_definition() && tag != RecordTag::ControlSettings,
            Some(Tag::Private(tag)) => tag != PrivateTag::MonitorWait,
            None => false,
        };
        match self.form {
            Some(Form::Binary) => self.records.keys().any(is_table),
            _ => !self.last.is_empty(),
        }
    }
}

/// Measures the agent's stream without storing it.
#[derive(Clone, Debug, Default)]
pub struct StreamMeter {
    progress: Progress,
    state: State,
    head: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// In the binary header or the first line of text.
    #[default]
    Start,
    /// In a record's head.
    Head,
    /// In a record's body, of which this many bytes are missing.
    Body(u64),
    /// In a line of text.
    Line,
}

/// Longest piece of a text line that is examined.
const LINE: usize = 64;

impl StreamMeter {
    /// What has arrived so far.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Takes bytes as they arrive.
    pub fn push(&mut self, mut bytes: &[u8]) {
        self.progress.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let used = match self.state {
                State::Start => self.start(bytes),
                State::Head => self.head(bytes),
                State::Body(left) => {
                    let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let left = left - used as u64;
                    self.state = if left == 0 {
                        State::Head
                    } else {
                        State::Body(left)
                    };
                    used
                }
                State::Line => self.line(bytes),
            };
            bytes = &bytes[used..];
        }
        self.progress.at_boundary = self.head.is_empty() && !matches!(self.state, State::Body(_));
    }

    /// The header is text up to a NUL (binary, 12 more bytes) or a line end (text).
    fn start(&mut self, bytes: &[u8]) -> usize {
        self.head.push(bytes[0]);
        match self
            .head
            .iter()
            .position(|byte| *byte == 0 || *byte == b'\n')
        {
            Some(end) if self.head[end] == b'\n' => {
                self.progress.form = Some(Form::Text);
                self.end_of_line();
                self.state = State::Line;
            }
            Some(end) => {
                self.progress.form = Some(Form::Binary);
                if self.head.len() == end + 13 {
                    self.head.clear();
                    self.state = State::Head;
                }
            }
            None => {}
        }
        1
    }

    fn head(&mut self, bytes: &[u8]) -> usize {
        let used = (9 - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..used]);
        if let [tag, _, _, _, _, a, b, c, d] = self.head[..] {
            *self.progress.records.entry(tag).or_default() += 1;
            let name = Tag::from_u8(tag).map_or("unknown record", Tag::name);
            name.clone_into(&mut self.progress.last);
            let length = u64::from(u32::from_be_bytes([a, b, c, d]));
            self.state = if length == 0 {
                State::Head
            } else {
                State::Body(length)
            };
            self.head.clear();
        }
        used
    }

    fn line(&mut self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        let room = LINE.saturating_sub(self.head.len());
        self.head.extend_from_slice(&piece[..piece.len().min(room)]);
        if end.is_some() {
            self.end_of_line();
        }
        piece.len() + usize::from(end.is_some())
    }

    fn end_of_line(&mut self) {
        self.progress.lines += 1;
        let line = String::from_utf8_lossy(&self.head);
        if let Some(at) = line.find(" BEGIN") {
            line[..at].clone_into(&mut self.progress.last);
        } else if self.progress.lines == 1 && !line.starts_with("JAVA PROFILE") {
            // The table of `cpu=old` has no header.
            "CPU TIME".clone_into(&mut self.progress.last);
        }
        self.head.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_while_a_program_runs_is_no_table() {
        let has_tables = |bytes: &[u8]| {
            let mut meter = StreamMeter::default();
            meter.push(bytes);
            meter.progress().has_tables()
        };
        let text = b"JAVA PROFILE 1.0.1, created\nTHREAD START (obj=1, id = 2, name=\"main\", group=\"main\")\n";
        assert!(!has_tables(text));
        assert!(has_tables(
            &[text, &b"CPU SAMPLES BEGIN (total = 0)\n"[..]].concat()
        ));
        assert!(has_tables(b"count callee caller time\n"));
        let binary = b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\0";
        let record = |tag: u8| [tag, 0, 0, 0, 0, 0, 0, 0, 0];
        let with = |tag: u8| has_tables(&[&binary[..], &record(tag)].concat());
        let wait = PrivateTag::MonitorWait as u8;
        assert_eq!([0x01, 0x0a, wait].map(with), [false; 3]);
        let wall = PrivateTag::WallTimes as u8;
        assert_eq!([0x06, 0x0d, 0x1c, wall].map(with), [true; 4]);
    }
}
