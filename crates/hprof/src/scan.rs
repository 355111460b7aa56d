//! Resynchronization in a damaged file: whether a position is a record, and where the next one begins.

use crate::record::{RECORD_HEAD, length_is_possible};
use crate::{
    FileOffset, HeapTag, HeapVisitor, IdSize, PRIVATE_TAGS, RecordTag, Stop, StopReason, walk,
};

/// The head of a possible top-level record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) at: u64,
    pub(crate) tag: u8,
    pub(crate) time_us: u32,
    pub(crate) length: u32,
}

impl Head {
    /// Reads tag, time and length; `None` when fewer than nine bytes are left.
    pub(crate) fn read(data: &[u8], at: u64) -> Option<Head> {
        let bytes: &[u8; 9] = data.get(at as usize..)?.first_chunk()?;
        Some(Head {
            at,
            tag: bytes[0],
            time_us: u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]),
            length: u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]),
        })
    }

    pub(crate) fn body(&self) -> u64 {
        self.at + RECORD_HEAD
    }

    pub(crate) fn end(&self) -> u64 {
        self.body() + u64::from(self.length)
    }

    pub(crate) fn known(&self) -> Option<RecordTag> {
        RecordTag::from_u8(self.tag)
    }

    /// A heap record of length 0 before the end of the file.
    pub(crate) fn is_empty_heap(&self, file: u64) -> bool {
        self.known().is_some_and(RecordTag::is_heap) && self.length == 0 && self.end() < file
    }

    /// A tag that is reserved for private records.
    pub(crate) fn is_private(&self) -> bool {
        PRIVATE_TAGS.contains(&self.tag)
    }

    /// A known or private tag with a length that it can have.
    pub(crate) fn is_possible(&self, ids: IdSize) -> bool {
        match self.known() {
            Some(tag) => length_is_possible(tag, u64::from(self.length), ids),
            None => self.is_private() && self.length < 1 << 28,
        }
    }

    /// A possible head whose record the file has.
    pub(crate) fn is_sound(&self, data: &[u8], ids: IdSize) -> bool {
        self.is_possible(ids) && self.end() <= data.len() as u64
    }
}

/// Whether a record may have this tag byte.
pub(crate) fn is_record_tag(byte: u8) -> bool {
    RecordTag::from_u8(byte).is_some() || PRIVATE_TAGS.contains(&byte)
}

/// How many consecutive records of the format must be valid before a position counts as a record boundary.
const CHAIN: usize = 4;
/// The most private records among them. They do not count, because arbitrary bytes, text above all, often look like one.
const PRIVATE_IN_CHAIN: usize = 64;
/// The most microseconds from a private record to the next record.
const SOON: u32 = 1 << 20;

/// True when valid records follow one another from `at` (up to the end of the file, if it is near). A heap record may
/// be truncated by the end of the file, but its first sub-records must be readable.
pub(crate) fn chain_is_plausible(
    data: &[u8],
    ids: IdSize,
    mut at: u64,
    known_class: &dyn Fn(u64) -> bool,
) -> bool {
    let (mut known, mut private) = (0, 0);
    let mut before = None;
    while known < CHAIN && private <= PRIVATE_IN_CHAIN {
        if at == data.len() as u64 {
            return known > 0 || private > 1;
        }
        let Some(head) = Head::read(data, at) else {
            return known > 1;
        };
        if !head.is_possible(ids) || before.is_some_and(|us| head.time_us.wrapping_sub(us) > SOON) {
            return false;
        }
        before = head.is_private().then_some(head.time_us);
        if head.known().is_some_and(RecordTag::is_heap) {
            return heap_chain_is_plausible(data, ids, head.body(), head.end(), known_class);
        }
        if head.end() > data.len() as u64 {
            return false;
        }
        match head.is_private() {
            true => private += 1,
            false => known += 1,
        }
        at = head.end();
    }
    known == CHAIN
}

/// How many consecutive sub-records must be readable before a position inside a segment counts as a boundary.
const SUB_CHAIN: u64 = 8;

struct CountAndCheck<'a> {
    seen: u64,
    objects: u64,
    bad: bool,
    known_class: &'a dyn Fn(u64) -> bool,
}

impl HeapVisitor for CountAndCheck<'_> {
    fn root(&mut self, _: FileOffset, root: crate::Root) {
        self.seen += 1;
        self.bad |= root.object.is_null();
    }
    fn class(&mut self, _: FileOffset, class: &crate::ClassDump<'_>) {
        self.seen += 1;
        self.objects += 1;
        self.bad |= !(self.known_class)(class.id.0);
    }
    fn instance(&mut self, _: FileOffset, i: crate::Instance<'_>) {
        self.seen += 1;
        self.objects += 1;
        self.bad |= i.id.is_null() || !(self.known_class)(i.class.0);
    }
    fn object_array(&mut self, _: FileOffset, a: crate::ObjectArray<'_>) {
        self.seen += 1;
        self.objects += 1;
        self.bad |= a.id.is_null() || !(self.known_class)(a.class.0);
    }
    fn primitive_array(&mut self, _: FileOffset, a: crate::PrimitiveArray<'_>) {
        self.seen += 1;
        self.objects += 1;
        self.bad |= a.id.is_null();
    }
    fn heap_info(&mut self, _: FileOffset, _: u32, _: crate::ObjectId) {
        self.seen += 1;
    }
}

/// True when the bytes from `at` are a sequence of sub-records: [`SUB_CHAIN`] of them, or exactly up to `end`.
pub(crate) fn heap_chain_is_plausible(
    data: &[u8],
    ids: IdSize,
    mut at: u64,
    end: u64,
    known_class: &dyn Fn(u64) -> bool,
) -> bool {
    let mut check = CountAndCheck {
        seen: 0,
        objects: 0,
        bad: false,
        known_class,
    };
    let end = end.min(data.len() as u64);
    while check.seen < SUB_CHAIN && at < end {
        match walk(data, ids, at, at + 1, end, &mut check) {
            Ok(next) => at = next,
            Err(stop) => return at_file_end(data, &stop, &check),
        }
        if check.bad {
            return false;
        }
    }
    check.seen >= SUB_CHAIN || (at == end && check.seen > 0)
}

/// A sub-record truncated by the end of the file does not invalidate the sequence before it.
fn at_file_end(data: &[u8], stop: &Stop, check: &CountAndCheck<'_>) -> bool {
    matches!(stop.reason, StopReason::RunsOver { have, .. }
        if stop.at + have == data.len() as u64 && check.seen > 1)
}

/// Searches `from..to` for the next plausible top-level record.
pub(crate) fn find_record(
    data: &[u8],
    ids: IdSize,
    from: u64,
    to: u64,
    known_class: &dyn Fn(u64) -> bool,
) -> Option<u64> {
    let last = (data.len() as u64).checked_sub(RECORD_HEAD - 1)?;
    (from..to.min(last)).find(|&at| {
        is_record_tag(data[at as usize]) && chain_is_plausible(data, ids, at, known_class)
    })
}

/// Searches `from..end` for the next plausible sub-record of a segment.
pub(crate) fn find_sub_record(
    data: &[u8],
    ids: IdSize,
    from: u64,
    end: u64,
    known_class: &dyn Fn(u64) -> bool,
) -> Option<u64> {
    let end = end.min(data.len() as u64);
    (from..end).find(|&at| {
        // Roots are too easily found in arbitrary bytes, so the sequence must start with an object.
        matches!(data[at as usize], 0x20..=0x23)
            && HeapTag::from_u8(data[at as usize]).is_some()
            && heap_chain_is_plausible(data, ids, at, end, known_class)
    })
}

/// Whether a plausible sub-record begins in the contents of another one, whose length is then wrong. `end` is that of
/// the segment.
pub fn hides_sub_record(
    data: &[u8],
    ids: IdSize,
    contents: std::ops::Range<u64>,
    end: u64,
    known_class: &dyn Fn(u64) -> bool,
) -> bool {
    let found = find_sub_record(data, ids, contents.start, end, known_class);
    found.is_some_and(|at| at < contents.end)
}

/// The result of a search for the true end of a heap record.
#[derive(Debug)]
pub(crate) struct TrueEnd {
    /// The offset where the sub-records end.
    pub(crate) end: u64,
    /// Some sub-records could not be read; the walk of the segment reports them.
    pub(crate) damaged: bool,
    /// The last sub-record, which the end of the file truncates; its contents are not searched.
    pub(crate) cut: Option<Stop>,
}

struct Nothing;
impl HeapVisitor for Nothing {}

/// Walks the sub-records of a heap record whose length word is wrong, continuing after damage, and returns the true
/// end: where the length agrees modulo 2^32 and a valid record follows, where a top-level record begins instead of a
/// sub-record, or where a sub-record begins that the end of the file truncates.
pub(crate) fn true_heap_end(
    data: &[u8],
    ids: IdSize,
    head: &Head,
    known_class: &dyn Fn(u64) -> bool,
) -> TrueEnd {
    let len = data.len() as u64;
    let mut at = head.body();
    let mut damaged = false;
    while at < len {
        let low = (at - head.body()) as u32;
        // The end of the file may truncate a private record after a heap record whose length is right.
        let boundary = Head::read(data, at).is_some_and(|next| {
            next.is_sound(data, ids)
                || at == head.end() && !damaged && next.is_private() && next.is_possible(ids)
        });
        if low == head.length && boundary && at > head.body() {
            break;
        }
        let byte = data[at as usize];
        let top = is_record_tag(byte);
        let both = top && HeapTag::from_u8(byte).is_some();
        // The length of a heap record may have overflowed to 0. After damage that does not count, because a tag before
        // some zeros is too easily found in arbitrary bytes.
        let next = || !damaged && Head::read(data, at).is_some_and(|h| h.is_empty_heap(len));
        let chain = || chain_is_plausible(data, ids, at, known_class);
        if top && (!both || at > head.body()) && (next() || chain()) {
            break;
        }
        match walk(data, ids, at, at + 1, len, &mut Nothing) {
            Ok(next) => at = next,
            Err(stop) if is_cut(&stop, head, len) => {
                return TrueEnd {
                    end: stop.at,
                    damaged,
                    cut: Some(stop),
                };
            }
            Err(stop) => {
                damaged = true;
                let sub = find_sub_record(data, ids, stop.at + 1, len, known_class);
                let to = sub.unwrap_or(len);
                match find_record(data, ids, stop.at, to, known_class) {
                    Some(record) => {
                        return TrueEnd {
                            end: record,
                            damaged,
                            cut: None,
                        };
                    }
                    None => at = to,
                }
            }
        }
    }
    TrueEnd {
        end: at.min(len),
        damaged,
        cut: None,
    }
}

/// Whether a sub-record that reaches past the end of the file is truncated by it, so that its length is correct. This
/// requires that it fits into its segment, which then also reaches past the end of the file. The bytes after it are
/// its contents, even if they look like records: a `byte[]` with a dump in it. The length of a class is the sum of
/// many counts, any of which may be wrong, so it is not conclusive.
fn is_cut(stop: &Stop, head: &Head, len: u64) -> bool {
    matches!(stop.reason, StopReason::RunsOver { tag, want, .. }
        if tag != HeapTag::ClassDump && head.end() > len && stop.at + want <= head.end())
}
