//! The notes of the agent in a profile.

use hprof::{IdSize, ObjectId, Record};

/// The first notes of the agent in a profile. With them the agent reports dropped data and features that the VM lacks,
/// which explain missing numbers.
pub(crate) fn notes_of_the_agent(profile: &[u8]) -> Vec<String> {
    const SHOWN: usize = 20;
    let mut notes = match hprof::Header::parse(profile) {
        Ok(header) => notes_in_records(profile, header.id_size),
        Err(_) => notes_in_text(profile),
    };
    notes.truncate(SHOWN);
    notes
}

/// Notes in the text form: lines at its end.
fn notes_in_text(profile: &[u8]) -> Vec<String> {
    if profile.iter().take(64).any(|byte| *byte == 0) {
        return Vec::new();
    }
    let lines = profile.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| line.strip_prefix(b"NOTE: "))
        .map(|text| String::from_utf8_lossy(text.trim_ascii_end()).into_owned())
        .collect()
}

/// Notes in the binary form: names that nothing refers to. A thread may have such a name.
fn notes_in_records(profile: &[u8], ids: IdSize) -> Vec<String> {
    let mut found: Vec<(ObjectId, String)> = Vec::new();
    let mapped = hprof::map_file(profile, |raw| {
        let used = match raw.decode(ids) {
            Some(Record::Utf8 { id, bytes }) => {
                if let Some(text) = bytes.strip_prefix(b"NOTE: ") {
                    found.push((id, hprof::decode_modified_utf8(text).into_owned()));
                }
                return;
            }
            Some(Record::StartThread { name, group, .. }) => [name, group],
            Some(Record::Frame(frame)) => [frame.method, frame.source],
            _ => return,
        };
        found.retain(|(id, _)| !used.contains(id));
    });
    drop(mapped);
    found.into_iter().map(|(_, text)| text).collect()
}
