//! Splits the agent's stream while it arrives: records become a profile, allocation sites a snapshot, and each heap
//! dump a separate file that every heap tool opens, because the names, classes and stacks before it are written into
//! it, too.

use super::prelude::Prelude;
use crate::persist::journal_filter::Kept;
use hprof::{Header, HeaderError, RawRecord, RecordTag};
use live_analysis::class_filters::Answers;
use live_analysis::references::{Held, held};
use private_records::{PrivateTag, Tag};
use profile::{NameId, Profile, StreamReader, TraceId};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use thiserror::Error;
use vmpi::{ClassOptions, Share};

/// Bytes of tag, time and length.
const HEAD: usize = 9;
/// The header is a short text and three words.
const MOST_HEADER: usize = 256;
/// A record that is not a heap dump and is longer than this is invalid.
const MOST_BODY: usize = 256 << 20;

/// Why a stream cannot be read any further.
#[derive(Debug, Error)]
pub enum TapError {
    /// It is not a binary profile.
    #[error("the agent does not send the binary form: {0}")]
    Header(HeaderError),
    /// A record claims an invalid length.
    #[error("a record of the agent claims {0} bytes")]
    Length(u64),
}

/// A part of a stream that was received.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrived {
    /// A table of allocation sites, which was added to the profile.
    Sites,
    /// A heap dump begins.
    DumpBegun,
    /// The number of JNI references, by class and stack; the table was added to the profile.
    ReferenceTable,
    /// Each JNI reference that exists.
    References,
    /// CPU samples, which were added to those of the profile.
    Samples,
    /// Contention of monitors, which was added to that of the profile.
    Contention,
    /// Requested live objects, with the agent's numbers for stacks.
    Listing(Box<vmpi::Listing>),
    /// How large and how full live objects are, with the agent's numbers for classes and stacks.
    Fills(Box<vmpi::Fills>),
    /// Data that is missing or not measured as requested, in the agent's text.
    Note(String),
    /// A complete heap dump at this path, with the references of native code.
    Dump(PathBuf, Held),
    /// A heap dump could not be stored, for this reason.
    DumpFailed(String),
}

/// A dump being written.
struct Storing {
    /// `None` after an error: the rest of the dump is skipped.
    file: Option<(PathBuf, BufWriter<File>)>,
    held: Held,
    /// A dump of version 1.0.1 is one record without an end marker.
    single: bool,
}

/// Creates the file for the next heap dump.
pub type NextDump = Box<dyn FnMut() -> io::Result<(PathBuf, File)> + Send + Sync>;

/// Parses a stream: pieces of any size are passed in, and received parts are returned.
pub struct Tap {
    waiting: Vec<u8>,
    reader: Option<StreamReader>,
    /// Whether the header of this stream has been received.
    is_open: bool,
    /// The data that a later server needs.
    kept: Kept,
    /// The header and the records that are not part of one heap dump or one table.
    prelude: Prelude,
    storing: Option<Storing>,
    /// Remaining bytes of a heap segment.
    segment: u64,
    next_dump: NextDump,
    answers: Answers,
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap")
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl Tap {
    /// A tap that stores heap dumps in the files of `next_dump`.
    pub fn new(next_dump: NextDump) -> Tap {
        Tap {
            waiting: Vec::new(),
            reader: None,
            is_open: false,
            kept: Kept::default(),
            prelude: Prelude::default(),
            storing: None,
            segment: 0,
            next_dump,
            answers: Answers::default(),
        }
    }

    /// Continues with another stream of the same agent; the recording so far stays.
    pub fn go_on(&mut self, next_dump: NextDump) {
        self.waiting.clear();
        self.is_open = false;
        self.kept = Kept::default();
        self.prelude = Prelude::default();
        self.storing = None;
        self.segment = 0;
        self.next_dump = next_dump;
    }

    /// The stream has ended. If a heap dump is not complete, returns a message; what was stored of it stays, because the
    /// program may have ended, too, and no other dump can be taken.
    pub(crate) fn end_of_stream(&mut self) -> Option<String> {
        let (path, mut file) = self.storing.take()?.file?;
        let stored = match file.flush() {
            Ok(()) => "the agent's connection ended".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(format!("{} is incomplete: {stored}", path.display()))
    }

    /// The received data that a later server needs.
    pub(crate) fn kept(&mut self) -> &mut Kept {
        &mut self.kept
    }

    /// The recording so far.
    pub fn profile(&self) -> Option<&Profile> {
        self.reader.as_ref().map(StreamReader::profile)
    }

    /// A class by the agent's number; the empty name if it is unknown.
    pub(crate) fn class(&self, serial: hprof::Serial) -> NameId {
        let reader = self.reader.as_ref();
        reader.map_or(NameId::default(), |reader| reader.class(serial))
    }

    /// A stack by the agent's number.
    pub(crate) fn trace(&self, serial: hprof::Serial) -> Option<TraceId> {
        self.reader.as_ref()?.trace(serial)
    }

    /// Answers of the program's factories about classes so far.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Stores these answers from rows of nine bytes. Without rows, the earlier answers are void.
    fn class_options(&mut self, body: &[u8]) {
        let Some(reader) = &self.reader else { return };
        if body.is_empty() {
            self.answers.clear();
        }
        for row in body.chunks_exact(9) {
            let word =
                |at: usize| u32::from_be_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
            let share = Share::new(f64::from(word(5)) / 1e6).unwrap_or_default();
            let options = ClassOptions::from_bits(row[4] & 31, share);
            let answer = (row[4] & 1 << 7 == 0).then_some(options);
            self.answers
                .insert(reader.class(hprof::Serial(word(0))), answer);
        }
    }

    /// Processes the next bytes.
    ///
    /// # Errors
    /// The stream cannot be read any further.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Arrived>, TapError> {
        let mut arrived = Vec::new();
        let mut bytes = bytes;
        if self.segment > 0 {
            let used = usize::try_from(self.segment)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            self.store(&bytes[..used], &mut arrived);
            self.segment -= used as u64;
            bytes = &bytes[used..];
            self.end_of_single(&mut arrived);
        }
        self.waiting.extend_from_slice(bytes);
        let mut at = 0;
        if !self.is_open {
            at = self.header()?;
        }
        if self.is_open {
            while let Some(used) = self.record(at, &mut arrived)? {
                at += used;
            }
        }
        self.waiting.drain(..at);
        Ok(arrived)
    }

    /// Reads the header if it is complete, and returns its length.
    fn header(&mut self) -> Result<usize, TapError> {
        let text = self.waiting.iter().position(|byte| *byte == 0);
        let whole = text.is_some_and(|end| self.waiting.len() >= end + 13);
        if !whole && self.waiting.len() < MOST_HEADER && text.is_none_or(|end| end < MOST_HEADER) {
            return Ok(0);
        }
        let header = Header::parse(&self.waiting).map_err(TapError::Header)?;
        let length = usize::try_from(header.len).unwrap_or(self.waiting.len());
        let header_bytes = self.waiting.get(..length).unwrap_or_default();
        self.prelude.header(header_bytes);
        self.kept.header(header_bytes);
        match &mut self.reader {
            Some(reader) => {
                reader.go_on(&header);
                let names = &reader.profile().names;
                self.answers.retain(|name, _| !names.get(*name).is_empty());
            }
            None => self.reader = Some(StreamReader::new(&header)),
        }
        self.is_open = true;
        Ok(length)
    }

    /// Handles the record at `at` if enough of it has been received, and returns the number of bytes used.
    fn record(&mut self, at: usize, arrived: &mut Vec<Arrived>) -> Result<Option<usize>, TapError> {
        let Some(head) = self.waiting.get(at..at + HEAD) else {
            return Ok(None);
        };
        let word = |n: usize| u32::from_be_bytes([head[n], head[n + 1], head[n + 2], head[n + 3]]);
        let (tag, time_us, length) = (head[0], word(1), word(5));
        let known = Tag::from_u8(tag);
        if let Some(Tag::Format(tag)) = known
            && tag.is_heap()
        {
            return Ok(Some(self.segment(at, length, tag, arrived)));
        }
        if length as usize > MOST_BODY {
            return Err(TapError::Length(u64::from(length)));
        }
        let end = at + HEAD + length as usize;
        let Some(record) = self.waiting.get(at..end) else {
            return Ok(None);
        };
        let record = record.to_vec();
        let raw = RawRecord {
            at: hprof::FileOffset(0),
            tag,
            time_us,
            length,
            body: &record[HEAD..],
        };
        if let Some(reader) = &mut self.reader {
            let serial = raw
                .body
                .first_chunk()
                .filter(|_| known == Some(Tag::Format(RecordTag::UnloadClass)));
            let unloaded =
                serial.map(|serial| reader.class(hprof::Serial(u32::from_be_bytes(*serial))));
            reader.record(&raw);
            // Its name is removed if no other class has it; the number is given to another name then.
            let is_removed = |name: &NameId| reader.profile().names.get(*name).is_empty();
            if let Some(name) = unloaded.filter(is_removed) {
                self.answers.remove(&name);
            }
        }
        match known {
            Some(Tag::Format(tag)) => self.of_format(tag, &record, arrived),
            Some(Tag::Private(tag)) => self.of_agent(tag, &record[HEAD..], arrived),
            None => {}
        }
        if let Some(tag) = known {
            self.kept.record(tag, record);
        }
        Ok(Some(HEAD + length as usize))
    }

    /// Handles a record of the format that is not a heap dump.
    fn of_format(&mut self, tag: RecordTag, record: &[u8], arrived: &mut Vec<Arrived>) {
        match tag {
            RecordTag::AllocSites if self.is_cut() => {}
            RecordTag::AllocSites => arrived.push(Arrived::Sites),
            RecordTag::CpuSamples => arrived.push(Arrived::Samples),
            RecordTag::HeapDumpEnd => {
                self.store(record, arrived);
                self.end(arrived);
            }
            _ if tag.is_definition() => {
                let ids = self.reader.as_ref().map_or(0, |it| it.id_size().bytes());
                self.prelude.record(tag, record, ids);
                self.store(record, arrived);
                if tag == RecordTag::Utf8 {
                    arrived.extend(self.note(&record[HEAD..]));
                }
            }
            _ => {}
        }
    }

    /// Handles a private record of the agent.
    fn of_agent(&mut self, tag: PrivateTag, body: &[u8], arrived: &mut Vec<Arrived>) {
        match tag {
            PrivateTag::WideAllocSites => arrived.push(Arrived::Sites),
            PrivateTag::JniReferences => arrived.push(Arrived::ReferenceTable),
            PrivateTag::JniHandles => arrived.push(Arrived::References),
            PrivateTag::MonitorTimes => arrived.push(Arrived::Contention),
            PrivateTag::ClassOptions => self.class_options(body),
            PrivateTag::Instances => {
                let listing = vmpi::Listing::decode(body);
                arrived.extend(listing.map(|listing| Arrived::Listing(Box::new(listing))));
            }
            PrivateTag::Fills => {
                let fills = vmpi::Fills::decode(body);
                arrived.extend(fills.map(|fills| Arrived::Fills(Box::new(fills))));
            }
            _ => {}
        }
    }

    /// A note of the agent, if the body of a name record is one: a name that no record refers to (`NOTE: ...`).
    fn note(&self, body: &[u8]) -> Option<Arrived> {
        let ids = self.reader.as_ref()?.id_size().bytes();
        let text = body.get(ids..)?.strip_prefix(b"NOTE: ")?;
        let text = hprof::decode_modified_utf8(text).into_owned();
        Some(Arrived::Note(text))
    }

    /// Whether the numbers of the last table were too large for its fields: a table with wide numbers follows it.
    fn is_cut(&self) -> bool {
        let table = self.profile().and_then(|profile| profile.sites.as_ref());
        let is_full = |site: &profile::Site| {
            let allocated = site.allocated;
            allocated.bytes.max(allocated.objects) == u64::from(u32::MAX)
        };
        table.is_some_and(|table| table.sites().iter().any(is_full))
    }

    /// Begins a segment, and stores the part of it that has been received.
    fn segment(
        &mut self,
        at: usize,
        length: u32,
        tag: RecordTag,
        arrived: &mut Vec<Arrived>,
    ) -> usize {
        if self.storing.is_none() {
            let mut storing = Storing {
                file: None,
                held: self.profile().map(held).unwrap_or_default(),
                single: tag == RecordTag::HeapDump,
            };
            match (self.next_dump)() {
                Ok((path, file)) => {
                    let mut file = BufWriter::with_capacity(1 << 20, file);
                    let begun = self.prelude.write(&mut file);
                    storing.file = Some((path, file));
                    arrived.push(Arrived::DumpBegun);
                    arrived.extend(begun.err().map(|error| storing.fail(&error)));
                }
                Err(error) => arrived.push(storing.fail(&error)),
            }
            self.storing = Some(storing);
        }
        let rest = self.waiting.len() - at - HEAD;
        let there = rest.min(length as usize);
        let bytes = self.waiting[at..at + HEAD + there].to_vec();
        self.store(&bytes, arrived);
        self.segment = u64::from(length) - there as u64;
        self.end_of_single(arrived);
        HEAD + there
    }

    fn end_of_single(&mut self, arrived: &mut Vec<Arrived>) {
        let single = self.storing.as_ref().is_some_and(|storing| storing.single);
        if single && self.segment == 0 {
            self.end(arrived);
        }
    }

    /// Adds to the dump that is being written, if there is one.
    fn store(&mut self, bytes: &[u8], arrived: &mut Vec<Arrived>) {
        if let Some(storing) = &mut self.storing
            && let Some((_, file)) = &mut storing.file
            && let Err(error) = file.write_all(bytes)
        {
            arrived.push(storing.fail(&error));
        }
    }

    fn end(&mut self, arrived: &mut Vec<Arrived>) {
        let Some(mut storing) = self.storing.take() else {
            return;
        };
        let flushed = storing.file.as_mut().map(|(_, file)| file.flush());
        if let Some(Err(error)) = flushed {
            arrived.push(storing.fail(&error));
        }
        if let Some((path, _)) = storing.file {
            arrived.push(Arrived::Dump(path, storing.held));
        }
    }
}

impl Storing {
    /// Removes what was written: a part of a dump must not look like one.
    fn fail(&mut self, error: &io::Error) -> Arrived {
        let Some((path, file)) = self.file.take() else {
            return Arrived::DumpFailed(error.to_string());
        };
        // Without the attempt to write the rest.
        drop(file.into_parts());
        let _ = fs::remove_file(&path);
        Arrived::DumpFailed(format!("{}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut out = vec![tag, 0, 0, 0, 0];
        out.extend((body.len() as u32).to_be_bytes());
        out.extend(body);
        out
    }

    /// Bytes of the header.
    const HEADER: usize = 31;

    /// A stream with a name, a class, a stack, its sites, and a dump in two segments.
    fn stream() -> (Vec<u8>, Vec<u8>) {
        let mut prelude = b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        prelude.extend(record(0x01, b"\0\0\0\x01Thing"));
        prelude.extend(record(
            0x02,
            &[0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1],
        ));
        prelude.extend(record(0x05, &[0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0]));
        let mut sites = vec![0u8; 34];
        sites[33] = 1;
        sites.push(0);
        for n in [9u32, 3, 32, 2, 80, 5] {
            sites.extend(n.to_be_bytes());
        }
        let mut whole = prelude.clone();
        whole.extend(record(0x06, &sites));
        let dump = [
            record(0x1c, &[5, 0, 0, 0, 7]),
            record(0x1c, &[]),
            record(0x2c, &[]),
        ]
        .concat();
        whole.extend(&dump);
        whole.extend(record(0x06, &sites));
        (whole, [prelude, dump].concat())
    }

    #[test]
    fn a_stream_in_any_pieces_gives_its_sites_and_a_dump_that_stands_alone() {
        let (whole, dump) = stream();
        for size in [1, 2, 7, 64, 4096] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("d.hprof");
            let target = path.clone();
            let mut tap = Tap::new(Box::new(move || {
                Ok((target.clone(), File::create(&target)?))
            }));
            let mut arrived = Vec::new();
            for piece in whole.chunks(size) {
                arrived.extend(tap.push(piece).unwrap());
            }
            let expected = [
                Arrived::Sites,
                Arrived::DumpBegun,
                Arrived::Dump(path.clone(), Vec::new()),
                Arrived::Sites,
            ];
            assert_eq!(arrived, expected, "pieces of {size}");
            assert_eq!(std::fs::read(&path).unwrap(), dump, "pieces of {size}");
            let profile = tap.profile().unwrap();
            let site = profile.sites.as_ref().unwrap().sites()[0];
            assert_eq!(profile.names.get(site.class), "Thing");
            assert_eq!((site.live.objects, site.live.bytes), (2, 32));
            assert_eq!((site.allocated.objects, site.allocated.bytes), (5, 80));
        }
    }

    #[test]
    fn a_dump_that_cannot_be_stored_is_skipped_and_the_stream_continues() {
        let (whole, dump) = stream();
        let folder = tempfile::tempdir().unwrap();
        let mut files = 0;
        let target = folder.path().to_owned();
        let mut tap = Tap::new(Box::new(move || {
            files += 1;
            let path = target.join(format!("{files}.hprof"));
            match files {
                // The disk is full before the file exists, and while it is written.
                1 => Err(io::Error::from(io::ErrorKind::StorageFull)),
                2 => {
                    fs::write(&path, "")?;
                    Ok((path, File::options().write(true).open("/dev/full")?))
                }
                _ => Ok((path.clone(), File::create(&path)?)),
            }
        }));
        let mut arrived = Vec::new();
        let body = &whole[HEADER..];
        for piece in [&whole, body, body] {
            arrived.push(tap.push(piece).unwrap());
        }
        let failed = |one: &Arrived| matches!(one, Arrived::DumpFailed(_));
        let last = folder.path().join("3.hprof");
        assert!(
            arrived[..2].iter().all(|all| all.iter().any(failed)),
            "{arrived:?}"
        );
        let text = format!("{:?}", arrived[1]);
        assert!(text.contains("2.hprof: No space left on device"), "{text}");
        for all in &arrived {
            assert_eq!(
                (all.first(), all.last()),
                (Some(&Arrived::Sites), Some(&Arrived::Sites))
            );
        }
        assert!(arrived[2].contains(&Arrived::Dump(last.clone(), Vec::new())));
        assert!(fs::read(&last).unwrap().ends_with(&dump[dump.len() - 20..]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_dump_that_is_cut_is_reported_and_stays() {
        let (whole, dump) = stream();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.hprof");
        let target = path.clone();
        let mut tap = Tap::new(Box::new(move || {
            Ok((target.clone(), File::create(&target)?))
        }));
        let end = record(0x2c, &[]);
        let at = whole.windows(end.len()).position(|part| part == end);
        let arrived = tap.push(&whole[..at.unwrap()]).unwrap();
        assert_eq!(arrived, [Arrived::Sites, Arrived::DumpBegun]);
        let why = tap.end_of_stream().unwrap();
        assert_eq!(
            why,
            format!(
                "{} is incomplete: the agent's connection ended",
                path.display()
            )
        );
        assert_eq!(fs::read(&path).unwrap(), dump[..dump.len() - end.len()]);
        assert_eq!(tap.end_of_stream(), None);
    }

    #[test]
    fn what_is_no_profile_is_refused_and_nothing_is_allocated_for_claims() {
        let none = || Tap::new(Box::new(|| Err(io::Error::other("no dump"))));
        assert!(matches!(
            none().push(&[b'x'; 300]),
            Err(TapError::Header(_))
        ));
        let mut bytes = b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        bytes.extend([1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert!(matches!(none().push(&bytes), Err(TapError::Length(_))));
    }

    #[test]
    fn a_note_arrives_as_text_and_is_no_name() {
        let (mut stream, _) = stream();
        stream.extend(record(0x01, b"\0\0\0\x02NOTE: memory= is reached"));
        stream.extend(record(0x01, b"\0\0\0\x03NOTES"));
        stream.extend(record(0x01, b"\0"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.hprof");
        let mut tap = Tap::new(Box::new(move || Ok((path.clone(), File::create(&path)?))));
        let arrived = tap.push(&stream).unwrap().into_iter();
        let notes = arrived.filter(|event| matches!(event, Arrived::Note(_)));
        let notes: Vec<_> = notes.collect();
        assert_eq!(notes, [Arrived::Note("memory= is reached".to_owned())]);
    }

    #[test]
    fn results_of_factories_are_forgotten_with_their_classes() {
        let mut tap = Tap::new(Box::new(|| Err(io::Error::other("no dump"))));
        let send = |tap: &mut Tap, tag: Tag, words: &[u32], rest: &[u8]| {
            let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            body.extend(rest);
            tap.push(&record(tag.byte(), &body)).unwrap();
        };
        let off = [128, 0, 0, 0, 0];
        let load = |tap: &mut Tap, n: u32, name: &str| {
            send(tap, RecordTag::Utf8.into(), &[n], name.as_bytes());
            send(tap, RecordTag::LoadClass.into(), &[n, n, 0, n], &[]);
            send(tap, PrivateTag::ClassOptions.into(), &[n], &off);
        };
        tap.push(&stream().0[..HEADER]).unwrap();
        for n in 1..1000 {
            load(&mut tap, n, &format!("Script{n}"));
        }
        // Another class of the same name.
        load(&mut tap, 2000, "Script999");
        for n in 1..1000u32 {
            let record = record(RecordTag::UnloadClass as u8, &n.to_be_bytes());
            tap.push(&record).unwrap();
        }
        let names = |tap: &Tap| -> Vec<String> {
            let names = &tap.profile().unwrap().names;
            let answers = tap.answers().keys();
            answers.map(|name| names.get(*name).to_owned()).collect()
        };
        assert_eq!(names(&tap), ["Script999"]);
        // Another stream sends those that hold.
        tap.go_on(Box::new(|| Err(io::Error::other("no dump"))));
        tap.push(&stream().0[..HEADER]).unwrap();
        assert!(names(&tap).is_empty());
        load(&mut tap, 1, "Other");
        assert_eq!(names(&tap), ["Other"]);
        tap.push(&record(PrivateTag::ClassOptions as u8, &[]))
            .unwrap();
        assert!(names(&tap).is_empty());
    }
}
