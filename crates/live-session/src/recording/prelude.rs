//! The beginning of each heap dump: the header of the stream, and the records that define its names and numbers, without
//! those of threads that have ended and of classes that were unloaded.

use crate::persist::threads::Threads;
use hprof::RecordTag;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Bytes of tag, time and length.
const HEAD: usize = 9;

/// The records so far.
#[derive(Debug, Default)]
pub(super) struct Prelude {
    threads: Threads,
    /// The records in order: each loaded class is a part, and so are the records between two of them.
    parts: BTreeMap<u64, Vec<u8>>,
    /// The part that takes the next record.
    open: u64,
    /// The parts of loaded classes, by the agent's numbers.
    classes: FxHashMap<[u8; 4], u64>,
}

impl Prelude {
    /// The header of the stream.
    pub(super) fn header(&mut self, bytes: &[u8]) {
        let rest = self.parts.entry(self.open).or_default();
        rest.extend_from_slice(bytes);
    }

    /// Adds a record of a stream whose ids have so many bytes.
    pub(super) fn record(&mut self, tag: RecordTag, record: &[u8], ids: usize) {
        let body = record.get(HEAD..).unwrap_or_default();
        let serial = body.first_chunk::<4>().copied();
        match (tag, serial) {
            (RecordTag::LoadClass, Some(serial)) if !self.classes.contains_key(&serial) => {
                // Class, object and stack come before the name.
                let name = body.get(8 + ids..8 + 2 * ids);
                let mut class = self.threads.own_name(name);
                let mut rest = self.parts.remove(&self.open).unwrap_or_default();
                self.threads.record(tag.into(), record, ids, &mut rest);
                class.extend(rest.drain(rest.len() - record.len()..));
                if !rest.is_empty() {
                    self.parts.insert(self.open, rest);
                }
                self.classes.insert(serial, self.open + 1);
                self.parts.insert(self.open + 1, class);
                self.open += 2;
            }
            (RecordTag::UnloadClass, Some(serial)) => {
                // The agent reports the end of a class only if no other record refers to it.
                let part = self.classes.remove(&serial);
                part.map(|part| self.parts.remove(&part));
            }
            _ => {
                let rest = self.parts.entry(self.open).or_default();
                self.threads.record(tag.into(), record, ids, rest);
            }
        }
    }

    /// Writes everything that is needed now.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        self.parts
            .values()
            .try_for_each(|part| to.write_all(part))?;
        to.write_all(&self.threads.running())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::SHARED_NAMES;

    fn record(tag: RecordTag, words: &[u32], text: &str) -> Vec<u8> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        body.extend(text.bytes());
        let mut out = vec![tag as u8, 0, 0, 0, 0];
        out.extend((body.len() as u32).to_be_bytes());
        out.extend(body);
        out
    }

    fn written(prelude: &Prelude) -> Vec<u8> {
        let mut out = Vec::new();
        prelude.write(&mut out).unwrap();
        out
    }

    #[test]
    fn unloaded_classes_leave_nothing() {
        use RecordTag::{Frame, LoadClass, UnloadClass, Utf8};
        let mut prelude = Prelude::default();
        let mut expected = b"header".to_vec();
        prelude.header(&expected);
        let add = |prelude: &mut Prelude, tag, words: &[u32], text: &str| {
            let record = record(tag, words, text);
            prelude.record(tag, &record, 4);
            record
        };
        for n in 0..SHARED_NAMES as u32 {
            expected.extend(add(&mut prelude, Utf8, &[n], "shared"));
        }
        for n in 10_000..60_000 {
            add(&mut prelude, Utf8, &[n], "Script");
            add(&mut prelude, LoadClass, &[n, n, 0, n], "");
            // The name of a class may be a shared one.
            add(&mut prelude, LoadClass, &[100_000 + n, n, 0, 7], "");
            for class in [n, 100_000 + n, 99] {
                add(&mut prelude, UnloadClass, &[class], "");
            }
        }
        assert!(written(&prelude) == expected);
        assert_eq!((prelude.parts.len(), prelude.classes.len()), (1, 0));
        // A class between others, with a name before it that is not its own.
        add(&mut prelude, Utf8, &[70_000], "Script");
        add(&mut prelude, LoadClass, &[70_000, 1, 0, 70_000], "");
        expected.extend(add(&mut prelude, Utf8, &[70_001], "method"));
        expected.extend(add(&mut prelude, LoadClass, &[70_001, 1, 0, 7], ""));
        expected.extend(add(&mut prelude, Frame, &[1, 70_001, 7, 7, 70_001, 3], ""));
        add(&mut prelude, UnloadClass, &[70_000], "");
        assert!(written(&prelude) == expected);
        assert_eq!(prelude.classes.len(), 1);
    }
}
