//! The map of a dump file: one pass over the heads of the top-level records that finds every heap segment, repairs
//! lengths, and separates snapshots.

use crate::record::RawRecord;
use crate::scan::{Head, chain_is_plausible, find_record, is_record_tag, true_heap_end};
use crate::tag::record_name;
use crate::{
    Cursor, DamageKind, Diagnostic, Diagnostics, FileOffset, Header, HeaderError, IdSize,
    RecordTag, Stop, StopReason,
};
use std::collections::HashSet;

/// One HEAP_DUMP or HEAP_DUMP_SEGMENT: the position of its sub-records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Segment {
    /// Offset of the record's tag.
    pub at: FileOffset,
    /// Offset of the first sub-record.
    pub body: u64,
    /// Offset after the last sub-record.
    pub end: u64,
    /// The snapshot that it belongs to, from 0.
    pub snapshot: u32,
    /// True when the length word was wrong.
    pub repaired: bool,
}

impl Segment {
    /// Bytes of sub-records.
    pub fn len(&self) -> u64 {
        self.end - self.body
    }

    /// True for a segment without sub-records.
    pub fn is_empty(&self) -> bool {
        self.end == self.body
    }
}

/// The map of one file.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FileMap {
    /// The header.
    pub header: Header,
    /// All heap segments in file order.
    pub segments: Vec<Segment>,
    /// Number of records of each tag byte.
    pub records: Vec<(u8, u64)>,
    /// The findings.
    pub diagnostics: Diagnostics,
    /// Bytes that belong to no readable record.
    pub skipped: u64,
    /// Number of snapshots (0 when there is no heap dump).
    pub snapshots: u32,
}

impl FileMap {
    /// The segments of one snapshot (from 0).
    pub fn snapshot(&self, n: u32) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |s| s.snapshot == n)
    }
}

/// Reads the heads of all top-level records of `data`. `visit` is called for each record that is not a heap dump, in
/// file order. Never fails once the header is read.
///
/// # Errors
/// When the header is not valid: see [`Header::parse`].
pub fn map_file<'a>(
    data: &'a [u8],
    mut visit: impl FnMut(&RawRecord<'a>),
) -> Result<FileMap, HeaderError> {
    let header = Header::parse(data)?;
    let ids = header.id_size;
    let at = header.len;
    let mut mapper = Mapper {
        data,
        ids,
        map: FileMap {
            header,
            segments: Vec::new(),
            records: Vec::new(),
            diagnostics: Diagnostics::default(),
            skipped: 0,
            snapshots: 0,
        },
        counts: [0; 256],
        open_run: false,
        found_at: None,
        classes: HashSet::new(),
    };
    mapper.run(at, &mut visit);
    let Mapper {
        mut map, counts, ..
    } = mapper;
    map.records = (0..=255u8)
        .filter(|t| counts[*t as usize] > 0)
        .map(|t| (t, counts[t as usize]))
        .collect();
    if map.diagnostics.any_damage() && looks_like_text_transfer(data) {
        map.diagnostics.push(Diagnostic::new(
            DamageKind::TextModeTransfer,
            0,
            "file",
            "line feeds",
            "some LF bytes without a CR before them, as in any binary file",
            "a CR before every LF: the file went through a text-mode transfer (FTP ascii, git autocrlf); transfer it again in binary mode",
        ));
    }
    map.diagnostics.sort();
    Ok(map)
}

struct Mapper<'a> {
    data: &'a [u8],
    ids: IdSize,
    map: FileMap,
    counts: [u64; 256],
    /// True while a run of segments has not been ended.
    open_run: bool,
    /// Where the last search in damaged bytes has found a record.
    found_at: Option<u64>,
    /// Ids of the classes loaded so far: a plausible object has one of these classes.
    classes: HashSet<u64>,
}

impl<'a> Mapper<'a> {
    fn run(&mut self, start: u64, visit: &mut impl FnMut(&RawRecord<'a>)) {
        let len = self.data.len() as u64;
        let mut at = start;
        while at < len {
            let Some(head) = Head::read(self.data, at) else {
                self.note(
                    DamageKind::Truncated,
                    at,
                    "file",
                    "record head",
                    "9 bytes",
                    format!("{} bytes to the end of the file", len - at),
                );
                self.map.skipped += len - at;
                return;
            };
            at = match head.known() {
                Some(tag) if tag.is_heap() => self.heap(tag, &head),
                None if !head.is_private() => self.unknown(&head, visit),
                tag => self.record(tag, &head, visit),
            };
        }
        if self.open_run && !self.map.diagnostics.any_damage() {
            self.note(
                DamageKind::Missing,
                len,
                RecordTag::HeapDumpEnd.name(),
                "",
                "",
                "the heap dump has no end: the file was probably cut between two records, and later records are missing",
            );
        }
    }

    fn note(
        &mut self,
        kind: DamageKind,
        at: u64,
        record: &str,
        field: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.map
            .diagnostics
            .push(Diagnostic::new(kind, at, record, field, expected, found));
    }

    /// Whether `at` is a plausible boundary: a valid record begins there, or the first bytes of a record that the end
    /// of the file truncates, or the file ends there.
    fn boundary(&self, at: u64) -> bool {
        match Head::read(self.data, at) {
            Some(head) => head.is_possible(self.ids),
            None => self
                .data
                .get(at as usize)
                .is_none_or(|byte| is_record_tag(*byte)),
        }
    }

    fn heap(&mut self, tag: RecordTag, head: &Head) -> u64 {
        self.counts[head.tag as usize] += 1;
        let len = self.data.len() as u64;
        let claimed = head.end();
        // Very old writers let the length overflow to 0 before more heap data.
        let empty = head.length == 0 && claimed < len;
        // The contents of arrays often look like a private record, so one that does not end the file is confirmed below.
        let doubtful = Head::read(self.data, claimed)
            .is_some_and(|next| next.is_private() && next.end() != len);
        let believed = claimed <= len
            && !doubtful
            && self.boundary(claimed)
            && !(empty && tag == RecordTag::HeapDump && !self.sound_at(claimed));
        if believed {
            self.segment(tag, head, claimed, false);
            return claimed;
        }
        if claimed < len && self.plausible(claimed) {
            self.segment(tag, head, claimed, false);
            return claimed;
        }
        let found = true_heap_end(self.data, self.ids, head, &|id| self.knows(id));
        if let Some(cut) = found.cut {
            self.cut_inside(&cut);
            self.segment(tag, head, cut.at, false);
            return len;
        }
        if found.end == claimed && !found.damaged {
            self.segment(tag, head, claimed, false);
            return claimed;
        }
        let real = found.end - head.body();
        let name = tag.name();
        if found.end == len && claimed > len {
            self.note(
                DamageKind::Truncated,
                head.at,
                name,
                "length",
                format!("{} bytes", head.length),
                format!("{} bytes to the end of the file", len - head.body()),
            );
            self.segment(tag, head, len, false);
            return len;
        }
        if real != u64::from(head.length) && real as u32 == head.length {
            self.note(
                DamageKind::LengthOverflow,
                head.at,
                name,
                "length",
                format!("{real} bytes of sub-records"),
                format!("{} (modulo 2^32)", head.length),
            );
            self.segment(tag, head, found.end, true);
            return found.end;
        }
        if real != u64::from(head.length) || !found.damaged {
            self.note(
                DamageKind::BadLength,
                head.at,
                name,
                "length",
                format!("{real} bytes of sub-records"),
                head.length.to_string(),
            );
        }
        self.segment(tag, head, found.end, true);
        self.found_at = found.damaged.then_some(found.end);
        found.end
    }

    /// The file ends inside this sub-record, so there is nothing more to find.
    fn cut_inside(&mut self, cut: &Stop) {
        if let StopReason::RunsOver { tag, want, have } = cut.reason {
            self.note(
                DamageKind::Truncated,
                cut.at,
                tag.name(),
                "length",
                format!("{want} bytes"),
                format!("{have} bytes to the end of the file"),
            );
            self.map.skipped += have;
        }
    }

    /// Whether this id is a class, in the part of the file read so far.
    fn knows(&self, id: u64) -> bool {
        self.classes.is_empty() || self.classes.contains(&id)
    }

    fn plausible(&self, at: u64) -> bool {
        let len = self.data.len() as u64;
        let is_empty_heap = Head::read(self.data, at).is_some_and(|head| head.is_empty_heap(len));
        is_empty_heap || chain_is_plausible(self.data, self.ids, at, &|id| self.knows(id))
    }

    fn next_record(&self, from: u64, to: u64) -> Option<u64> {
        find_record(self.data, self.ids, from, to, &|id| self.knows(id))
    }

    fn sound_at(&self, at: u64) -> bool {
        Head::read(self.data, at).is_some_and(|h| h.is_sound(self.data, self.ids))
    }

    fn segment(&mut self, tag: RecordTag, head: &Head, end: u64, repaired: bool) {
        // A HEAP_DUMP is a separate snapshot; segments belong together until HEAP_DUMP_END. What a search in damaged
        // bytes has taken for a HEAP_DUMP, with a length that is wrong, too, is the rest of the dump before it.
        let empty = end == head.body();
        let is_rest = repaired && self.found_at == Some(head.at) && self.map.snapshots > 0;
        if tag == RecordTag::HeapDump && !is_rest {
            self.map.snapshots += u32::from(!empty || self.map.snapshots == 0);
            self.open_run = false;
        } else if !self.open_run && !is_rest {
            self.map.snapshots += 1;
            self.open_run = true;
        }
        self.map.segments.push(Segment {
            at: FileOffset(head.at),
            body: head.body(),
            end,
            snapshot: self.map.snapshots.saturating_sub(1),
            repaired,
        });
    }

    fn record(
        &mut self,
        tag: Option<RecordTag>,
        head: &Head,
        visit: &mut impl FnMut(&RawRecord<'a>),
    ) -> u64 {
        let len = self.data.len() as u64;
        let possible = head.is_possible(self.ids);
        if possible && head.end() <= len && (self.boundary(head.end()) || !self.misled(head)) {
            self.visit(head, head.end(), visit);
            if tag == Some(RecordTag::HeapDumpEnd) {
                self.open_run = false;
            }
            return head.end();
        }
        // Truncated by the end of the file, or a wrong length: the latter if a plausible record follows.
        let next = self.next_record(head.body(), len);
        let name = &record_name(head.tag);
        match next {
            Some(next) => {
                self.note(
                    DamageKind::BadLength,
                    head.at,
                    name,
                    "length",
                    format!("{} bytes to the next record", next - head.body()),
                    head.length.to_string(),
                );
                if matches!(tag, Some(RecordTag::Utf8 | RecordTag::Trace)) {
                    self.visit(head, next, visit);
                } else {
                    self.map.skipped += next - head.at;
                }
                self.found_at = Some(next);
                next
            }
            None => {
                self.note(
                    DamageKind::Truncated,
                    head.at,
                    name,
                    "length",
                    format!("{} bytes", head.length),
                    format!("{} bytes to the end of the file", len - head.body()),
                );
                if tag == Some(RecordTag::Utf8) {
                    // Half a name is not used, but the record is counted.
                    self.counts[head.tag as usize] += 1;
                } else {
                    self.visit(head, head.end().min(len), visit);
                }
                self.map.skipped += len - head.at;
                len
            }
        }
    }

    /// Whether the length of this record hides another one. No valid record follows it, but the length is wrong only
    /// if a plausible record begins inside it.
    fn misled(&self, head: &Head) -> bool {
        let end = head.end();
        if self.plausible(end) {
            return false;
        }
        self.next_record(head.body(), end).is_some()
    }

    fn visit(&mut self, head: &Head, end: u64, visit: &mut impl FnMut(&RawRecord<'a>)) {
        self.counts[head.tag as usize] += 1;
        self.look_at(head, end);
        visit(&RawRecord {
            at: FileOffset(head.at),
            tag: head.tag,
            time_us: head.time_us,
            length: head.length,
            body: &self.data[head.body() as usize..end as usize],
        });
    }

    /// Adds classes, and checks the one count that can contradict the record's length.
    fn look_at(&mut self, head: &Head, end: u64) {
        let body = &self.data[head.body() as usize..end as usize];
        let mut cursor = Cursor::new(body, self.ids);
        match head.known() {
            Some(RecordTag::LoadClass) => {
                let class = cursor.u4().and_then(|_| cursor.id());
                self.classes.extend(class.map(|id| id.0));
            }
            Some(RecordTag::Trace) => {
                let claimed = cursor.bytes(8).and_then(|_| cursor.u4());
                let there = cursor.remaining() / self.ids.bytes();
                if let Some(claimed) = claimed.filter(|n| *n as usize != there) {
                    self.note(
                        DamageKind::BadLength,
                        head.at,
                        "TRACE",
                        "number of frames",
                        format!("{there}, as many as the record has"),
                        claimed.to_string(),
                    );
                }
            }
            _ => {}
        }
    }

    fn unknown(&mut self, head: &Head, visit: &mut impl FnMut(&RawRecord<'a>)) -> u64 {
        let len = self.data.len() as u64;
        if self.data[head.at as usize..].iter().all(|b| *b == 0) {
            self.note(
                DamageKind::Skipped,
                head.at,
                "file",
                "",
                "a record or the end of the file",
                format!("{} zero bytes to the end", len - head.at),
            );
            self.map.skipped += len - head.at;
            return len;
        }
        if head.end() <= len && (head.end() == len || self.plausible(head.end())) {
            self.note(
                DamageKind::UnknownTag,
                head.at,
                "file",
                "record tag",
                "a record tag",
                format!("0x{:02x} with {} bytes, skipped", head.tag, head.length),
            );
            self.visit(head, head.end(), visit);
            return head.end();
        }
        let next = self.next_record(head.at + 1, len).unwrap_or(len);
        self.note(
            DamageKind::Skipped,
            head.at,
            "file",
            "record tag",
            "a record tag",
            format!(
                "0x{:02x}; {} bytes skipped to the next record",
                head.tag,
                next - head.at
            ),
        );
        self.map.skipped += next - head.at;
        self.found_at = Some(next);
        next
    }
}

/// Whether every LF has a CR before it, and there are enough of them to decide.
fn looks_like_text_transfer(data: &[u8]) -> bool {
    let window = &data[..data.len().min(4 << 20)];
    let mut line_feeds = 0u32;
    for (i, byte) in window.iter().enumerate() {
        if *byte == b'\n' {
            if i == 0 || window[i - 1] != b'\r' {
                return false;
            }
            line_feeds += 1;
        }
    }
    line_feeds >= 8
}
