//! Lines to records: the dispatcher, threads, traces and the header.

use super::lines::{Line, Lines, Scan, rfind};
use super::record::{Frame, Header, TextLine, TextRecord, ThreadStart, Trace};
use hprof::{DamageKind, Diagnostic, Diagnostics};

/// A thread name may contain line ends, but not more lines than this.
const MAX_NAME_LINES: usize = 64;
/// The prelude is not longer: that of the agent has 86 lines.
const MAX_PRELUDE_LINES: usize = 1000;
/// What every header begins with.
const HEADER: &[u8] = b"JAVA PROFILE ";
/// What is between the name of a thread and that of its group.
const GROUP: &[u8] = b"\", group=\"";

/// Reads a text profile from memory, record by record.
///
/// It never fails: a line that it cannot parse becomes a [`Diagnostic`], and reading continues with the next one. It
/// reads CR LF files, files truncated anywhere and files without a header.
#[derive(Debug)]
pub struct TextReader<'a> {
    pub(super) lines: Lines<'a>,
    diagnostics: Diagnostics,
    state: State,
}

/// The table or section that the following lines belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// None: only lines with keywords.
    Outside,
    /// The header was read: the prelude follows.
    Prelude,
    /// SITES.
    Sites,
    /// A CPU table.
    Cpu,
    /// The table of `cpu=old`.
    Old,
    /// MONITOR TIME.
    MonitorTime,
    /// LOCK TIME.
    LockTime,
    /// CLASS ESTIMATES.
    Estimates,
    /// ALLOCATION STACKS.
    AllocationStacks,
    /// JNI REFERENCES.
    References,
    /// MONITOR DUMP.
    MonitorDump,
    /// HEAP DUMP.
    Heap,
}

impl<'a> TextReader<'a> {
    /// A reader of the whole (decompressed) file.
    pub fn new(text: &'a [u8]) -> TextReader<'a> {
        TextReader {
            lines: Lines::new(text),
            diagnostics: Diagnostics::default(),
            state: State::Outside,
        }
    }

    /// The findings so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// The findings.
    pub fn into_diagnostics(self) -> Diagnostics {
        self.diagnostics
    }

    fn record(&mut self, line: Line<'a>) -> Option<TextRecord<'a>> {
        let first = line.text.first().copied().unwrap_or(0);
        match (self.state, first) {
            (State::Sites, b' ' | b'0'..=b'9') => return super::read_tables::site(line.text),
            (State::Cpu, b' ' | b'0'..=b'9') => return super::read_tables::cpu(line.text),
            (State::Old, b'0'..=b'9') => return super::read_tables::old(line.text),
            (State::LockTime, b' ' | b'0'..=b'9') => {
                return super::read_tables::lock_time(line.text);
            }
            (State::MonitorTime, b' ' | b'0'..=b'9') => {
                return super::read_tables::monitor_time(line.text);
            }
            (State::Estimates, b' ' | b'0'..=b'9') => {
                return super::read_tables::estimate(line.text);
            }
            (State::AllocationStacks, b' ' | b'0'..=b'9') => {
                return super::read_tables::allocation_stack(line.text);
            }
            (State::References, b' ' | b'0'..=b'9') => {
                return super::read_tables::reference(line.text);
            }
            (State::MonitorDump, b' ') => {
                return super::read_tables::monitor_dump(line.text, &mut self.lines);
            }
            (State::Heap, b'R' | b'O' | b'A' | b'C') => {
                if let Some(record) = super::read_heap::record(line.text, &mut self.lines) {
                    return Some(record);
                }
            }
            _ => {}
        }
        match first {
            b'T' => self.thread_or_trace(line),
            b'J' if line.text.starts_with(b"JAVA") => self.header(line.text),
            _ => {
                let (record, state) = super::read_tables::boundary(line.text)?;
                self.state = state.unwrap_or(self.state);
                Some(record)
            }
        }
    }

    fn header(&mut self, line: &'a [u8]) -> Option<TextRecord<'a>> {
        let mut scan = Scan(line);
        scan.0 = scan.0.strip_prefix(HEADER)?;
        let version = scan.until(", created ")?;
        self.state = State::Prelude;
        Some(TextRecord::Header(Header {
            version,
            created: scan.rest(),
        }))
    }

    /// Everything up to the `--------` line. In a file without this line (truncated inside the prelude, or written by
    /// a tool that omits it), the prelude ends at the first record.
    fn prelude(&mut self) -> TextRecord<'a> {
        self.state = State::Outside;
        self.blank();
        let from = self.lines.offset();
        let mut ahead = self.lines.clone();
        let mut end = None;
        for _ in 0..MAX_PRELUDE_LINES {
            let Some(line) = ahead.next() else { break };
            // The header of another profile: that one has the line of dashes.
            if line.text.starts_with(HEADER) {
                end.get_or_insert(line.offset);
                break;
            }
            if line.text == b"--------" {
                self.lines = ahead;
                self.blank();
                let text = self.lines.slice(from, line.offset);
                let text = text.strip_suffix(b"\n").unwrap_or(text);
                return TextRecord::Prelude(text.strip_suffix(b"\r").unwrap_or(text));
            }
            if end.is_none() && begins_a_record(line.text) {
                end = Some(line.offset);
            }
        }
        let to = end.unwrap_or(ahead.offset());
        while self.lines.offset() < to {
            self.lines.next();
        }
        self.complain(
            DamageKind::Missing,
            from,
            "prelude",
            "a line of dashes",
            b"none",
        );
        TextRecord::Prelude(self.lines.slice(from, to))
    }

    /// Skips one empty line.
    fn blank(&mut self) -> Option<Line<'a>> {
        self.lines.peek().filter(|line| line.text.is_empty())?;
        self.lines.next()
    }

    fn thread_or_trace(&mut self, line: Line<'a>) -> Option<TextRecord<'a>> {
        let mut scan = Scan(line.text);
        if scan.accept("TRACE ") {
            return self.trace(scan);
        }
        if scan.accept("THREAD END (id = ") {
            let thread = scan.serial()?;
            scan.word(")")?;
            return Some(TextRecord::ThreadEnd { thread });
        }
        self.thread_start(line)
    }

    fn thread_start(&mut self, line: Line<'a>) -> Option<TextRecord<'a>> {
        let mut scan = Scan(line.text);
        scan.word("THREAD START (obj=")?;
        let object = scan.hex()?;
        scan.word(", id = ")?;
        let thread = scan.serial()?;
        scan.word(", name=\"")?;
        // A name may contain quotes and line ends: the record ends with the last `")` of the first line that has one.
        let from = line.offset + (line.text.len() - scan.0.len());
        let mut ahead = self.lines.clone();
        let mut last = line;
        let mut searched = from;
        for _ in 0..MAX_NAME_LINES {
            if last.text.ends_with(b"\")") {
                let end = last.offset + last.text.len() - 2;
                // Lines before had no end of a name.
                if let Some(found) = rfind(ahead.slice(searched, end), GROUP) {
                    let split = searched + found;
                    self.lines = ahead;
                    let name = self.lines.slice(from, split);
                    let group = self.lines.slice(split + GROUP.len(), end);
                    return Some(TextRecord::ThreadStart(ThreadStart {
                        object,
                        thread,
                        name,
                        group,
                    }));
                }
                searched = searched.max(end.saturating_sub(GROUP.len()));
            }
            last = ahead.next()?;
        }
        None
    }

    fn trace(&mut self, mut scan: Scan<'a>) -> Option<TextRecord<'a>> {
        let mut trace = Trace {
            serial: scan.serial()?,
            ..Trace::default()
        };
        scan.word(":")?;
        if scan.accept(" (thread=") {
            trace.thread = Some(scan.serial()?);
            scan.word(")")?;
        }
        if scan.accept(" (from ") {
            trace.phase = Some(scan.until(" phase of JVM)")?);
        }
        if !scan.blanks().done() {
            return None;
        }
        while let Some(line) = self.lines.next_if(b"\t") {
            if line.text == b"\t<empty>" {
                continue;
            }
            match frame(&line.text[1..]) {
                Some(frame) => trace.frames.push(frame),
                None => self.unknown(line, "TRACE", "class.method(source:line)"),
            }
        }
        Some(TextRecord::Trace(trace))
    }

    fn unknown(&mut self, line: Line<'a>, record: &str, expected: &str) {
        let kind = if line.ended {
            DamageKind::Skipped
        } else {
            DamageKind::Truncated
        };
        self.complain(kind, line.offset, record, expected, line.text);
    }

    fn complain(&mut self, kind: DamageKind, at: usize, record: &str, expected: &str, text: &[u8]) {
        let shown = &text[..text.len().min(80)];
        let found = String::from_utf8_lossy(shown).into_owned();
        self.diagnostics.push(Diagnostic::new(
            kind, at as u64, record, "", expected, found,
        ));
    }
}

impl<'a> Iterator for TextReader<'a> {
    type Item = TextRecord<'a>;

    fn next(&mut self) -> Option<TextRecord<'a>> {
        if self.state == State::Prelude {
            return Some(self.prelude());
        }
        while let Some(line) = self.lines.next() {
            if let Some(record) = self.record(line) {
                return Some(record);
            }
            if !line.text.is_empty() && !super::read_tables::is_title(line.text) {
                self.unknown(line, "file", "a record");
            }
        }
        None
    }
}

/// True for a line that cannot be part of a prelude.
fn begins_a_record(line: &[u8]) -> bool {
    if let Some(serial) = line.strip_prefix(b"TRACE ") {
        return serial.first().is_some_and(u8::is_ascii_digit);
    }
    line.starts_with(b"THREAD START (") || super::read_tables::boundary(line).is_some()
}

/// `class.method(source:line)`.
fn frame(text: &[u8]) -> Option<Frame<'_>> {
    let text = text.strip_suffix(b")")?;
    // Kotlin test names may contain parentheses, file names rarely do: the last one counts.
    let open = rfind(text, b"(")?;
    let (name, place) = (&text[..open], &text[open + 1..]);
    let dot = rfind(name, b".")?;
    let (source, line) = match rfind(place, b":") {
        Some(colon) => (&place[..colon], line_number(&place[colon + 1..])?),
        None => (place, TextLine::Absent),
    };
    Some(Frame {
        class: &name[..dot],
        method: &name[dot + 1..],
        source,
        line,
    })
}

fn line_number(text: &[u8]) -> Option<TextLine> {
    Some(match text {
        b"Unknown line" => TextLine::Unknown,
        b"Compiled method" => TextLine::Compiled,
        b"Native method" => TextLine::Native,
        digits => TextLine::Number(std::str::from_utf8(digits).ok()?.parse().ok()?),
    })
}
