//! Selects the records of threads in the agent's stream that are still needed: a program may start and end threads
//! without end, and nothing refers to most of those that have ended.

use hprof::RecordTag;
use private_records::Tag;
use profile::SHARED_NAMES;
use std::collections::BTreeMap;

/// Bytes of tag, time and length.
const HEAD: usize = 9;

/// A thread by the agent's number.
type Serial = [u8; 4];

/// The records of running threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// The number of names so far.
    names: usize,
    /// The last record, if it is a name that may be that of the next thread or class only.
    name: Vec<u8>,
    /// The start of each running thread, with the name if no other record has it.
    running: BTreeMap<Serial, Vec<u8>>,
}

impl Threads {
    /// Takes the next record of a stream whose ids have so many bytes, and appends to `out` what is needed from now on.
    pub(crate) fn record(&mut self, tag: Tag, record: &[u8], ids: usize, out: &mut Vec<u8>) {
        let body = record.get(HEAD..).unwrap_or_default();
        let serial = |at: usize| -> Option<Serial> { body.get(at..at + 4)?.try_into().ok() };
        if tag == Tag::Format(RecordTag::StartThread)
            && let Some(thread) = serial(0)
        {
            // Thread, object and stack come before the name.
            let mut start = self.own_name(body.get(8 + ids..8 + 2 * ids));
            out.append(&mut self.name);
            start.extend_from_slice(record);
            self.running.insert(thread, start);
            return;
        }
        out.append(&mut self.name);
        match tag {
            Tag::Format(RecordTag::Utf8) => {
                self.names += 1;
                if self.names > SHARED_NAMES {
                    self.name = record.to_vec();
                    return;
                }
            }
            Tag::Format(RecordTag::EndThread) => {
                let start = serial(0).and_then(|thread| self.running.remove(&thread));
                if start.is_some() {
                    return;
                }
            }
            Tag::Format(RecordTag::Trace) => {
                // The stack of a thread: its name is needed as long as the stack.
                let start = serial(4).and_then(|thread| self.running.remove(&thread));
                out.extend(start.unwrap_or_default());
            }
            _ => {}
        }
        out.extend_from_slice(record);
    }

    /// Takes the record of the last name if it may be that of the next thread or class only and has this id.
    pub(crate) fn own_name(&mut self, id: Option<&[u8]>) -> Vec<u8> {
        let own = self.name.get(HEAD..).unwrap_or_default();
        match id.is_some_and(|id| own.starts_with(id) && !id.is_empty()) {
            true => std::mem::take(&mut self.name),
            false => Vec::new(),
        }
    }

    /// The records of running threads.
    pub(crate) fn running(&self) -> Vec<u8> {
        let starts = self.running.values().flatten();
        starts.chain(&self.name).copied().collect()
    }

    /// Appends the records of threads that run for some time; their ends are appended later.
    pub(crate) fn settle(&mut self, out: &mut Vec<u8>) {
        for (_, start) in std::mem::take(&mut self.running) {
            out.extend(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tag: RecordTag, words: &[u32], text: &str) -> Vec<u8> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        body.extend(text.bytes());
        let mut out = vec![tag as u8, 0, 0, 0, 0];
        out.extend((body.len() as u32).to_be_bytes());
        out.extend(body);
        out
    }

    /// What is kept of these records.
    fn kept(threads: &mut Threads, records: &[(RecordTag, &[u32], &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, words, text) in records {
            let record = record(*tag, words, text);
            threads.record(Tag::Format(*tag), &record, 4, &mut out);
        }
        out
    }

    #[test]
    fn a_thread_that_has_ended_leaves_nothing_unless_a_stack_has_it() {
        use RecordTag::{EndThread, StartThread, Trace, Utf8};
        let mut threads = Threads::default();
        for n in 0..SHARED_NAMES as u32 {
            let name = (Utf8, &[n][..], "name");
            assert_eq!(kept(&mut threads, &[name]), record(Utf8, &[n], "name"));
        }
        // Names of the first threads may be those of other things, too.
        let first = (StartThread, &[1, 0, 0, 7, 8, 9][..], "");
        assert_eq!(kept(&mut threads, &[first, (EndThread, &[1], "")]), [0; 0]);
        for n in 10_000..20_000 {
            let started = [
                (Utf8, &[n][..], "Thread-n"),
                (StartThread, &[n, 0, 0, n, 8, 9], ""),
            ];
            assert_eq!(kept(&mut threads, &started), [0; 0]);
            let both = [started[0], started[1]].map(|(tag, words, text)| record(tag, words, text));
            assert_eq!(threads.running(), both.concat());
            assert_eq!(kept(&mut threads, &[(EndThread, &[n], "")]), [0; 0]);
            assert!(threads.running().is_empty());
        }
        // One with a stack, and one that runs for some time.
        let start: [(RecordTag, &[u32], &str); 2] = [
            (StartThread, &[5, 0, 0, 7, 8, 9], ""),
            (Trace, &[70, 5, 0], ""),
        ];
        let both = start.map(|(tag, words, text)| record(tag, words, text));
        assert_eq!(kept(&mut threads, &start), both.concat());
        let mut out = kept(&mut threads, &[(StartThread, &[6, 0, 0, 7, 8, 9], "")]);
        threads.settle(&mut out);
        assert_eq!(out, record(StartThread, &[6, 0, 0, 7, 8, 9], ""));
        for thread in [5, 6] {
            let end = kept(&mut threads, &[(EndThread, &[thread], "")]);
            assert_eq!(end, record(EndThread, &[thread], ""));
        }
        // Another name is kept as soon as something else follows it.
        let names: [(RecordTag, &[u32], &str); 2] = [(Utf8, &[30], "a"), (Utf8, &[31], "b")];
        assert_eq!(kept(&mut threads, &names), record(Utf8, &[30], "a"));
        assert_eq!(threads.running(), record(Utf8, &[31], "b"));
    }
}
