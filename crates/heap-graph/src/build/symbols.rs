//! The top-level records with names: strings, loaded classes, frames, traces, threads.

use hprof::{
    Frame, MeasuredSizes, ObjectId, RawRecord, Record, RecordTag, Serial, decode_modified_utf8,
    readable_class_name,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Names and stacks of one file. Strings are kept as offsets into the file.
#[derive(Default)]
pub(crate) struct Symbols<'a> {
    /// String id and its bytes, sorted by id after [`finish`](Self::finish).
    pub(crate) strings: Vec<(u64, &'a [u8])>,
    /// Class object id, name id, class serial.
    pub(crate) loaded: Vec<(u64, u64, u32)>,
    pub(crate) frames: FxHashMap<u64, Frame>,
    /// Trace serial, thread serial, frame ids.
    pub(crate) traces: Vec<(Serial, Serial, Vec<ObjectId>)>,
    /// Object and trace of the threads that were started and have not ended, by thread serial.
    pub(crate) started: BTreeMap<Serial, (ObjectId, Serial)>,
    /// Whether local variables in the dump are conservative: all words of a stack that look like references.
    pub(crate) conservative_locals: bool,
    /// The sizes of objects, if the dump has them.
    pub(crate) sizes: Option<MeasuredSizes>,
    /// Whether only class names are needed.
    pub(crate) names_only: bool,
}

impl<'a> Symbols<'a> {
    pub(crate) fn visit(&mut self, record: &RawRecord<'a>, ids: hprof::IdSize) {
        if record.tag == RecordTag::Utf8 as u8 {
            let id = hprof::read_id(record.body, ids);
            let bytes = record.body.get(ids.bytes()..).unwrap_or_default();
            self.conservative_locals |= bytes == hprof::CONSERVATIVE_LOCALS.as_bytes();
            if let Some(sizes) = MeasuredSizes::parse(bytes) {
                self.sizes = Some(sizes);
            }
            self.strings.push((id.0, bytes));
            return;
        }
        if self.names_only && record.tag != RecordTag::LoadClass as u8 {
            return;
        }
        match record.decode(ids) {
            Some(Record::LoadClass {
                serial,
                class,
                name,
                ..
            }) => {
                self.loaded.push((class.0, name.0, serial.0));
            }
            Some(Record::Frame(frame)) => {
                self.frames.insert(frame.id.0, frame);
            }
            Some(Record::Trace {
                serial,
                thread,
                frames,
            }) => {
                self.traces.push((serial, thread, frames));
            }
            Some(Record::StartThread {
                thread,
                object,
                trace,
                ..
            }) => {
                self.started.entry(thread).or_insert((object, trace));
            }
            Some(Record::EndThread { thread }) => {
                self.started.remove(&thread);
            }
            _ => {}
        }
    }

    /// Sorts for look-up. Of equal ids the first stays first.
    pub(crate) fn finish(&mut self) {
        if !self.strings.is_sorted_by_key(|s| s.0) {
            self.strings.sort_by_key(|s| s.0);
        }
        self.loaded.sort_by_key(|c| c.0);
        self.loaded.dedup_by_key(|c| c.0);
        self.traces.sort_by_key(|t| t.0);
    }

    /// The text of a string id.
    pub(crate) fn text(&self, id: u64) -> Option<String> {
        let at = self.strings.partition_point(|s| s.0 < id);
        let (found, bytes) = self.strings.get(at)?;
        (*found == id).then(|| decode_modified_utf8(bytes).into_owned())
    }

    /// The text of a string id, or the id itself.
    pub(crate) fn text_or_id(&self, id: ObjectId) -> String {
        self.text(id.0)
            .unwrap_or_else(|| format!("string@{:x}", id.0))
    }

    /// Readable name and class serial of a class id.
    pub(crate) fn class_name(&self, id: u64) -> (String, Serial) {
        let found = self
            .loaded
            .binary_search_by_key(&id, |c| c.0)
            .ok()
            .map(|i| self.loaded[i]);
        let serial = Serial(found.map_or(0, |c| c.2));
        let name = found
            .and_then(|c| self.text(c.1))
            .map(|raw| readable_class_name(&raw));
        (name.unwrap_or_else(|| format!("class@{id:x}")), serial)
    }

    /// The id of the class of a raw name; 0 if there is none.
    pub(crate) fn class_id(&self, raw: &[u8]) -> u64 {
        let strings: Vec<u64> = self
            .strings
            .iter()
            .filter(|s| s.1 == raw)
            .map(|s| s.0)
            .collect();
        self.loaded
            .iter()
            .find(|c| strings.contains(&c.1))
            .map_or(0, |c| c.0)
    }

    /// True if the file names this class id, or names no class at all.
    pub(crate) fn knows_class(&self, id: u64) -> bool {
        self.loaded.is_empty() || self.loaded.binary_search_by_key(&id, |c| c.0).is_ok()
    }
}
