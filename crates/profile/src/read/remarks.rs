//! What the agent says in the binary form in names that nothing refers to, because every reader of files accepts them.

use crate::profile::Profile;
use hprof::{ObjectId, Record, decode_modified_utf8};
use private_records::SAMPLE_INTERVAL;

/// Notes, and the CPU time of a sample.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    notes: Vec<(ObjectId, String)>,
    sample_interval: Option<u64>,
}

impl Remarks {
    pub(super) fn text(&mut self, id: ObjectId, bytes: &[u8]) {
        if let Some(text) = bytes.strip_prefix(b"NOTE: ") {
            self.notes
                .push((id, decode_modified_utf8(text).into_owned()));
        } else if let Some(number) = bytes.strip_prefix(SAMPLE_INTERVAL.as_bytes()) {
            let number = std::str::from_utf8(number).ok();
            self.sample_interval = number.and_then(|number| number.parse().ok());
        }
    }

    /// A thread or a method may be called like a note.
    pub(super) fn record(&mut self, record: &Record<'_>) {
        if self.notes.is_empty() {
            return;
        }
        let used = match record {
            Record::StartThread { name, group, .. } => [*name, *group],
            Record::Frame(frame) => [frame.method, frame.source],
            _ => return,
        };
        self.notes.retain(|(id, _)| !used.contains(id));
    }

    pub(super) fn finish(self, profile: &mut Profile) {
        profile.agent_notes = self.notes.into_iter().map(|(_, text)| text).collect();
        if let (Some(samples), Some(interval)) = (&mut profile.samples, self.sample_interval) {
            samples.interval_ns = interval;
        }
    }
}
