//! The kinds of damage by name: each at a place of its choice, and what a reader must do about it.

use super::fields::{Fields, Record, What};
use super::random::Random;
use super::shapes;
use super::{Base, Must};
use testkit::dump::{gzip, gzip_members, zip};

/// Makes the bytes; `None` when the dump has no place for such damage.
pub type Make = fn(&Base, &mut Random) -> Option<Vec<u8>>;

/// A kind of damage.
pub struct Kind {
    /// `cut-sub`.
    pub name: &'static str,
    /// What a reader must do, wherever the damage is.
    pub must: Must,
    /// Makes the bytes.
    pub make: Make,
}

/// Every kind by name; what only stands in one field is in [`super::field`].
pub const KINDS: &[Kind] = &[
    kind("empty", Must::Error, |_, _| Some(Vec::new())),
    kind("header-only", Must::NoObjects, |b, _| {
        Some(b.data[..b.fields.header].to_vec())
    }),
    kind("cut-header", Must::Error, |b, r| {
        Some(b.data[..1 + r.below(b.fields.header - 1)].to_vec())
    }),
    kind("cut-top", Must::Census, |b, r| {
        let record = r.of(&b.fields.top);
        Some(b.data[..record.at + 1 + r.below(record.len - 1)].to_vec())
    }),
    kind("cut-sub", Must::Census, |b, r| {
        let record = r.of(&b.fields.sub);
        Some(b.data[..record.at + 1 + r.below(record.len - 1)].to_vec())
    }),
    kind("short-segment", Must::Damaged, short_segment),
    kind("id-width", Must::ErrorOrDamaged, |b, r| {
        let width = *r.of(&[0, 1, 2, 3, 5, 7, 16, u32::MAX, 0x8000_0008]);
        Some(b.patched(b.fields.header - 12, &width.to_be_bytes()))
    }),
    kind("magic", Must::Anything, magic),
    kind("gzip", Must::Same, |b, _| Some(gzip(&b.data))),
    kind("gzip-cut", Must::Damaged, |b, _| {
        let packed = gzip(&b.data);
        Some(packed[..packed.len() - 20].to_vec())
    }),
    kind("gzip-damaged", Must::Anything, |b, r| {
        let mut packed = gzip(&b.data);
        for _ in 0..1 + r.below(3) {
            let at = r.below(packed.len());
            packed[at] ^= 1 << r.below(8);
        }
        Some(packed)
    }),
    kind("gzip-members", Must::Same, |b, r| {
        let bytes = 1 + r.below(b.data.len());
        Some(gzip_members(&b.data, bytes.max(64)))
    }),
    kind("gzip-members-damaged", Must::Anything, |b, r| {
        let mut packed = gzip_members(&b.data, 300);
        let at = r.below(packed.len());
        packed[at] ^= 1 << r.below(8);
        Some(packed)
    }),
    kind("gzip-false-members", Must::Anything, false_members),
    kind("gzip-zeros", Must::SameOrNoted, |b, _| {
        let mut packed = gzip(&b.data);
        packed.resize(packed.len() + 4096, 0);
        Some(packed)
    }),
    kind("gzip-bomb", Must::Anything, |b, r| {
        let mut long = b.data.to_vec();
        long.resize(long.len() + (1 << (10 + r.below(14))), 0);
        Some(gzip(&gzip(&long)))
    }),
    kind("zip", Must::Same, |b, _| Some(zip(&b.data, "heap.hprof"))),
    kind("zip-damaged", Must::Anything, |b, r| {
        let mut packed = zip(&b.data, "heap.hprof");
        for _ in 0..1 + r.below(3) {
            let at = r.below(packed.len());
            packed[at] = r.word() as u8;
        }
        Some(packed)
    }),
    kind("segment-length", Must::Damaged, |b, r| {
        let segments: Vec<Record> = b.fields.segments().collect();
        let record = r.of(&segments);
        let length = (record.len - 9) as u32;
        let wrong = [0, 1, length - 1, length + 1, i32::MAX as u32, u32::MAX];
        Some(b.patched(record.at + 5, &r.of(&wrong).to_be_bytes()))
    }),
    kind("record-length", Must::Damaged, |b, r| {
        let records: Vec<_> = b.fields.top.iter().filter(|t| t.tag <= 5).collect();
        let length = *r.of(&[3u32, u32::MAX]);
        Some(b.patched(r.of(&records).at + 5, &length.to_be_bytes()))
    }),
    kind("unknown-record", Must::SameOrNoted, |b, r| {
        let at = r.of(&b.fields.top).at;
        Some(b.inserted(at, b"\x77\0\0\0\0\0\0\0\x05hello"))
    }),
    kind("unknown-record-huge", Must::Damaged, |b, r| {
        let at = r.of(&b.fields.top).at;
        Some(b.inserted(at, b"\x77\0\0\0\0\xff\xff\xff\xf0"))
    }),
    kind("unknown-tag", Must::Damaged, |b, r| {
        let tag = *r.of(&[0x00, 0x09, 0x24, 0x7f, 0x91]);
        let body = [&[tag], &b.id(0x1234)[..], &[0; 16]].concat();
        Some(b.in_segment(r, &body))
    }),
    kind("rare-tag", Must::SameOrNoted, |b, r| {
        let tag = *r.of(&[0xff, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x90]);
        Some(b.in_segment(r, &[&[tag], &b.id(0x1234)[..]].concat()))
    }),
    kind("rare-monitor", Must::SameOrNoted, |b, r| {
        let body = [&[0x8e], &b.id(0x1234)[..], &[0, 0, 0, 1, 0, 0, 0, 1]].concat();
        Some(b.in_segment(r, &body))
    }),
    kind("array-without-data", Must::SameButBytes, |b, r| {
        let body = [&[0xc3], &b.id(0x1234)[..], &[0, 0, 0, 0, 0, 0, 0, 7, 8]].concat();
        Some(b.in_segment(r, &body))
    }),
    kind("super-self", Must::Read, |b, r| b.chained(r, 1)),
    kind("super-cycle", Must::Read, |b, r| b.chained(r, 2)),
    kind("super-cycle-all", Must::Read, |b, r| {
        b.chained(r, usize::MAX)
    }),
    kind("class-twice", Must::Read, |b, r| b.again(r, 0x20, 1)),
    kind("object-twice", Must::Read, |b, r| b.again(r, 0x21, 3)),
    kind("root-twice", Must::SameOrNoted, |b, r| {
        b.again(r, 0x05, 300)
    }),
    kind("field-types", Must::Damaged, |b, r| {
        let fields = [&[0, 0, 0, 0, 0, 2], &b.id(1)[..], &[0x63], &b.id(2), &[0]];
        Some(b.in_segment(r, &b.class_with(&fields.concat())))
    }),
    kind("class-65535-fields", Must::Read, |b, r| {
        let one = [&b.id(1)[..], &[11 - r.below(2) as u8 * 9]].concat();
        let fields = [&[0, 0, 0, 0, 0xff, 0xff], &one.repeat(65_535)[..]].concat();
        Some(b.in_segment(r, &b.class_with(&fields)))
    }),
    kind("instance-short", Must::Read, |b, r| {
        let all: Vec<Record> = b.fields.subs(0x21).collect();
        let record = r.of(&all);
        let head = 1 + 2 * b.fields.ids + 4;
        let have = record.len - head - 4;
        let keep = r.below(have.max(1));
        let mut body = b.data[record.at..record.at + record.len].to_vec();
        body.truncate(head + 4 + keep);
        body[head..head + 4].copy_from_slice(&(keep as u32).to_be_bytes());
        Some(b.replaced(*record, &body))
    }),
    kind("roots-to-nothing", Must::SameOrNoted, |b, r| {
        let root = [&[0xff], &b.id(0xdead_0000)[..]].concat();
        Some(b.in_segment(r, &root.repeat(1000)))
    }),
    kind("no-roots", Must::Read, |b, _| {
        let keep = |s: &Record| matches!(s.tag, 0x20..=0x23 | 0xc3 | 0xfe);
        Some(b.with_subs(&|s| if keep(s) { 1 } else { 0 }))
    }),
    kind("no-strings", Must::Read, |b, _| Some(b.without(0x01))),
    kind("no-class-records", Must::Read, |b, _| Some(b.without(0x02))),
    kind("heap-first", Must::Same, |b, _| {
        let heap = |t: &&Record| matches!(t.tag, 0x0c | 0x1c | 0x2c);
        let (first, then): (Vec<_>, Vec<_>) = b.fields.top.iter().partition(heap);
        Some(b.of_records(first.into_iter().chain(then)))
    }),
    kind("reversed", Must::SameOrNoted, |b, _| {
        Some(b.of_records(b.fields.top.iter().rev()))
    }),
    kind("text", Must::Read, |b, r| {
        let hard: &[&[u8]] = &[
            &[0xc0, 0x80, 0xed, 0xa0, 0x80, 0xff, 0xfe, 0x1b],
            b"<script>alert(1)</script>\"'&;\n\t,",
            b"\x1b]0;x\x07\x1b[2J",
        ];
        b.with_text(r, hard)
    }),
    kind("text-8-mib", Must::SameOrNoted, |b, r| {
        let at = r.of(&b.fields.top).at;
        let length = (b.fields.ids + (8 << 20)) as u32;
        let head = [&[1, 0, 0, 0, 0], &length.to_be_bytes()[..], &b.id(0x5151)].concat();
        Some(b.inserted(at, &[head, vec![b'A'; 8 << 20]].concat()))
    }),
    kind("text-twice", Must::SameOrNoted, |b, r| {
        let texts: Vec<_> = b.fields.top.iter().filter(|t| t.tag == 1).collect();
        let one = r.of(&texts);
        let bytes = &b.data[one.at..one.at + one.len];
        Some(b.inserted(one.at, &bytes.repeat(2)))
    }),
    kind("segments-of-one", Must::Same, segments_of_one),
    kind("segments-empty", Must::Same, |b, _| {
        let at = b.fields.segments().next()?.at;
        Some(b.inserted(at, &b"\x1c\0\0\0\0\0\0\0\0".repeat(10_000)))
    }),
    kind("heap-twice", Must::Read, |b, _| {
        let at = b.fields.segments().next()?.at;
        Some([&b.data[..], &b.data[at..]].concat())
    }),
    kind("no-end", Must::CensusOrWhole, |b, _| {
        let end = b.fields.segments().last()?;
        Some(b.data[..end.at + end.len].to_vec())
    }),
    kind("junk-tail", Must::SameDamaged, |b, r| {
        // A tag that exists might be a record.
        let junk = (0..999).map(|_| 0x80 | r.word() as u8);
        Some(b.data.iter().copied().chain(junk).collect())
    }),
    kind("zero-tail", Must::SameDamaged, |b, _| {
        Some([&b.data[..], &[0; 100_000]].concat())
    }),
    kind("frames-huge", Must::Read, |b, r| {
        let counts: Vec<_> = b
            .fields
            .with(What::Count)
            .filter(|f| f.width == 4)
            .collect();
        (!counts.is_empty()).then(|| b.patched(r.of(&counts).at, &[0xff; 4]))
    }),
    kind("record-moved", Must::Anything, |b, r| {
        let from = r.of(&b.fields.top);
        let copy = &b.data[from.at..from.at + from.len];
        Some(b.inserted(r.of(&b.fields.top).at, copy))
    }),
    kind("sub-moved", Must::Anything, |b, r| {
        let from = r.of(&b.fields.sub);
        let copy = &b.data[from.at..from.at + from.len];
        Some(b.inserted(r.of(&b.fields.sub).at, copy))
    }),
    kind("taken-out", Must::Anything, |b, r| {
        let from = r.below(b.data.len());
        let until = (from + *r.of(&[1, 8, 1000])).min(b.data.len());
        Some([&b.data[..from], &b.data[until..]].concat())
    }),
    kind("noise", Must::Anything, |b, r| {
        let mut data = b.data.to_vec();
        for _ in 0..*r.of(&[1, 3, 20, 200]) {
            let at = r.below(data.len());
            data[at] ^= 1 << r.below(8);
        }
        Some(data)
    }),
    kind("noise-run", Must::Anything, |b, r| {
        let mut data = b.data.to_vec();
        let (at, length) = (r.below(data.len()), *r.of(&[4, 64, 4096]));
        data[at..]
            .iter_mut()
            .take(length)
            .for_each(|x| *x = r.word() as u8);
        Some(data)
    }),
    kind("words", Must::Anything, |b, r| {
        let mut data = b.data.to_vec();
        for _ in 0..1 + r.below(4) {
            let at = r.below(data.len() - 4);
            let word = *r.of(&[0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX]);
            data[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        Some(data)
    }),
    kind("superclasses", Must::Read, |b, r| {
        let classes = long(r, 60_000);
        Some(shapes::superclasses(b.id_size, classes, r.below(3)))
    }),
    kind("wide-superclass", Must::Read, |b, r| {
        let fields = 1 + r.below(65_535);
        let classes = long(r, 20_000);
        Some(shapes::wide_superclass(b.id_size, fields, classes))
    }),
    kind("list", Must::Read, |b, r| {
        let objects = long(r, 300_000);
        Some(shapes::list(b.id_size, objects, r.below(2) == 0))
    }),
    kind("star", Must::Read, |b, r| {
        let objects = long(r, 100_000);
        Some(shapes::star(b.id_size, objects, r.below(4)))
    }),
    kind("ids-in-one-bucket", Must::Read, |b, r| {
        let objects = long(r, 60_000);
        Some(shapes::one_bucket(b.id_size, objects))
    }),
    kind("nested", Must::Read, |b, r| {
        let depth = long(r, 20_000);
        Some(shapes::nested(b.id_size, depth, r.below(4)))
    }),
    kind("heap-infos", Must::Read, |b, r| {
        let infos = long(r, 200_000);
        Some(shapes::heap_infos(b.id_size, infos))
    }),
];

const fn kind(name: &'static str, must: Must, make: Make) -> Kind {
    Kind { name, must, make }
}

/// A size, mostly small: each power of two as often as the one before.
fn long(r: &mut Random, most: usize) -> usize {
    // The largest ones take a second each.
    let bits = if r.one_in(1000) { 64 } else { 1 + r.below(9) };
    let end = 1usize.checked_shl(bits as u32).unwrap_or(usize::MAX);
    if end >= most { most } else { 1 + r.below(end) }
}

fn short_segment(b: &Base, r: &mut Random) -> Option<Vec<u8>> {
    let record = *r.of(&b.fields.sub);
    let segment = b.fields.top[record.top];
    let keep = record.at + 1 + r.below(record.len - 1);
    let mut data = b.data[..keep].to_vec();
    let length = (keep - segment.at - 9) as u32;
    data[segment.at + 5..segment.at + 9].copy_from_slice(&length.to_be_bytes());
    data.extend_from_slice(&b.data[segment.at + segment.len..]);
    Some(data)
}

fn magic(b: &Base, r: &mut Random) -> Option<Vec<u8>> {
    let long = [b"JAVA PROFILE ", &[b'1'; 100_000][..], b"\0"].concat();
    let names: &[&[u8]] = &[
        b"JAVA PROFILE 1.0\0",
        b"JAVA PROFILE 1.0.4\0",
        b"JAVA PROFILE 9.9.9\0",
        b"java profile 1.0.2\0",
        b"\xef\xbb\xbfJAVA PROFILE 1.0.2\0",
        b"JAVA PROFILE 1.0.2",
        &long,
    ];
    Some([r.of(names), &b.data[b.fields.header - 12..]].concat())
}

/// A damaged member and then heads of members that are none.
fn false_members(b: &Base, r: &mut Random) -> Option<Vec<u8>> {
    let mut packed = gzip(&b.data);
    let at = 12 + r.below(packed.len() - 12);
    packed[at] ^= 0xff;
    let head = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c, 0x4a, 0x4e, 0x49,
    ];
    let heads = long(r, 60_000);
    packed.extend(head.repeat(heads));
    Some(packed)
}

fn segments_of_one(b: &Base, _: &mut Random) -> Option<Vec<u8>> {
    let mut out = b.data[..b.fields.header].to_vec();
    for record in &b.fields.top {
        let subs = b.fields.sub.iter().filter(|s| s.top == record.top);
        let mut subs = subs.peekable();
        if subs.peek().is_none() {
            out.extend_from_slice(&b.data[record.at..record.at + record.len]);
        }
        for sub in subs {
            out.extend_from_slice(b"\x1c\0\0\0\0");
            out.extend_from_slice(&(sub.len as u32).to_be_bytes());
            out.extend_from_slice(&b.data[sub.at..sub.at + sub.len]);
        }
    }
    Some(out)
}

impl Base {
    /// The bytes with some of them written over.
    pub fn patched(&self, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut data = self.data.to_vec();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        data
    }

    /// The bytes with more of them; no length reports this.
    fn inserted(&self, at: usize, bytes: &[u8]) -> Vec<u8> {
        [&self.data[..at], bytes, &self.data[at..]].concat()
    }

    /// An id in the width of the dump.
    pub fn id(&self, id: u64) -> Vec<u8> {
        id.to_be_bytes()[8 - self.fields.ids..].to_vec()
    }

    /// The dump with its sub-records each so many times, lengths corrected.
    fn with_subs(&self, times: &dyn Fn(&Record) -> usize) -> Vec<u8> {
        let mut out = self.data[..self.fields.header].to_vec();
        let mut subs = self.fields.sub.iter().peekable();
        for record in &self.fields.top {
            let from = out.len();
            if subs.peek().is_none_or(|s| s.top != record.top) {
                out.extend_from_slice(&self.data[record.at..record.at + record.len]);
                continue;
            }
            out.extend_from_slice(&self.data[record.at..record.at + 9]);
            while let Some(sub) = subs.next_if(|s| s.top == record.top) {
                for _ in 0..times(sub) {
                    out.extend_from_slice(&self.data[sub.at..sub.at + sub.len]);
                }
            }
            let length = (out.len() - from - 9) as u32;
            out[from + 5..from + 9].copy_from_slice(&length.to_be_bytes());
        }
        out
    }

    /// Another sub-record at the beginning of a segment, whose length reports this.
    fn in_segment(&self, r: &mut Random, body: &[u8]) -> Vec<u8> {
        let segments: Vec<Record> = self.fields.segments().collect();
        let segment = r.of(&segments);
        let mut data = self.inserted(segment.at + 9, body);
        let length = (segment.len - 9 + body.len()) as u32;
        data[segment.at + 5..segment.at + 9].copy_from_slice(&length.to_be_bytes());
        data
    }

    /// A sub-record replaced by another one, the segment's length corrected.
    fn replaced(&self, record: Record, body: &[u8]) -> Vec<u8> {
        let end = record.at + record.len;
        let mut data = [&self.data[..record.at], body, &self.data[end..]].concat();
        let segment = self.fields.top[record.top];
        let length = (segment.len - 9 + body.len() - record.len) as u32;
        data[segment.at + 5..segment.at + 9].copy_from_slice(&length.to_be_bytes());
        data
    }

    /// One sub-record with this tag more often.
    fn again(&self, r: &mut Random, tag: u8, times: usize) -> Option<Vec<u8>> {
        let all: Vec<Record> = self.fields.subs(tag).collect();
        let one = r.of(all.get(..)?).at;
        Some(self.with_subs(&|s| if s.at == one { 1 + times } else { 1 }))
    }

    /// A class dump that ends with these bytes: constants, statics, fields.
    fn class_with(&self, tail: &[u8]) -> Vec<u8> {
        let ids = [0u64; 6].map(|id| self.id(id)).concat();
        let head = [&[0x20], &self.id(0x77777)[..], &[0; 4], &ids, &[0, 0, 0, 8]];
        [&head.concat()[..], tail].concat()
    }

    /// Superclasses of some classes in a circle.
    fn chained(&self, r: &mut Random, classes: usize) -> Option<Vec<u8>> {
        let all: Vec<_> = self.fields.with(What::Super).collect();
        let first = r.below(all.len());
        let count = classes.min(all.len());
        let mut data = self.data.to_vec();
        for n in 0..count {
            let one = all[(first + n) % all.len()];
            let above = all[(first + (n + 1) % count) % all.len()].owner;
            data[one.at..one.at + one.width].copy_from_slice(&self.id(above));
        }
        Some(data)
    }

    fn without(&self, tag: u8) -> Vec<u8> {
        self.of_records(self.fields.top.iter().filter(|t| t.tag != tag))
    }

    fn of_records<'a>(&self, records: impl Iterator<Item = &'a Record>) -> Vec<u8> {
        let mut out = self.data[..self.fields.header].to_vec();
        for record in records {
            out.extend_from_slice(&self.data[record.at..record.at + record.len]);
        }
        out
    }

    /// A string record with another text, as long as that is.
    fn with_text(&self, r: &mut Random, texts: &[&[u8]]) -> Option<Vec<u8>> {
        let all: Vec<_> = self.fields.top.iter().filter(|t| t.tag == 1).collect();
        let (one, text) = (r.of(all.get(..)?), r.of(texts));
        let (body, end) = (one.at + 9 + self.fields.ids, one.at + one.len);
        let mut data = [&self.data[..body], text, &self.data[end..]].concat();
        let length = (self.fields.ids + text.len()) as u32;
        data[one.at + 5..one.at + 9].copy_from_slice(&length.to_be_bytes());
        Some(data)
    }
}

/// True when a dump has everything that the kinds look for.
pub fn is_rich(fields: &Fields) -> bool {
    [0x20, 0x21, 0x22, 0x23, 0x05]
        .iter()
        .all(|tag| fields.subs(*tag).next().is_some())
}
